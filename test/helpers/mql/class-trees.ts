import type { Random } from "../../../common/time.ts";
import type { Row, Value } from "../../../common/value.ts";
import type { ClassSpec, ColumnSpec, ColumnType } from "../../../controller/areas/objects/index.ts";

const TEXTS = [
  "",
  "v",
  "it's",
  "''",
  '"',
  "\\",
  "\\'",
  "a\nb;\r\n",
  "；",
  "中文 主机",
  "😀👍🏽",
  "\u0000",
  "\t",
  "-- no",
  "/* no */",
  "`",
  "=1+1",
  "@x",
  "null",
  "true",
  "1",
  '{"a":1}',
  "begin",
  "\u2028",
];
const NAMES = [
  "host",
  "size_1",
  "主机",
  "a b",
  "group",
  "select",
  "key",
  "index",
  "end",
  "set",
  "order",
  "limit",
  "a-b",
  "values",
  "type",
];
const SCALARS: readonly ColumnType[] = [
  "varchar",
  "text",
  "int",
  "bigint",
  "smallint",
  "long",
  "varint",
  "float",
  "double",
  "boolean",
  "timestamp",
  "date",
  "blob",
  "uuid",
  "inet",
];
const ELEMENTS: readonly ColumnType[] = ["varchar", "int", "bigint", "double", "boolean", "date", "uuid"];
const UNINDEXED: ReadonlySet<ColumnType> = new Set(["blob", "bucket", "bitlog"]);

export interface FilledClass {
  readonly spec: ClassSpec;
  readonly rows: readonly Row[];
}

/** Random classes below a path, parents first, with random objects for every column type. */
export class ClassTreeGenerator {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Labels of the classes begin with the label of the root, which should therefore be unique. */
  tree(root: string, rowsPerClass: number): readonly FilledClass[] {
    const label = root.slice(root.lastIndexOf("/") + 1);
    const top = this.#spec(root, [], NAMES.slice(0, 8));
    const below = [`${root}/${label}_leaf`, `${root}/${label}_叶`, `${root}/${label}_leaf/${label}_deep`];
    const specs = [
      top,
      ...below.map((path) => this.#spec(path, top.columns, path.endsWith("deep") ? [] : NAMES.slice(8))),
    ];
    return specs.map((spec) => ({
      spec,
      rows: Array.from({ length: rowsPerClass }, (_, at) => this.#row(at, this.#columnsOf(spec, specs))),
    }));
  }

  value(column: ColumnSpec): Value {
    switch (column.type) {
      case "list":
      case "set":
        return this.#some(0, 3, () => this.#element(column.elements?.[0]));
      case "map":
        return Object.fromEntries(this.#some(0, 3, () => [this.#pick(TEXTS), this.#element(column.elements?.[1])]));
      case "enum":
        return this.#pick(Object.keys(column.labels ?? {}));
      case "bucket":
      case "bitlog":
        return this.#pick<Value>([[[1, 2.5]], { a: [1, null], __proto__x: "'" }, [], 7, '"a text"']);
      default:
        return this.#scalar(column.type);
    }
  }

  #columnsOf(spec: ClassSpec, all: readonly ClassSpec[]): readonly ColumnSpec[] {
    return all
      .filter(({ path }) => spec.path === path || spec.path.startsWith(`${path}/`))
      .flatMap(({ columns }) => columns);
  }

  #spec(path: string, inherited: readonly ColumnSpec[], names: readonly string[]): ClassSpec {
    const columns = names.filter(() => this.#random.next() < 0.8).map((name) => this.#column(name));
    const indexes = [...inherited, ...columns]
      .filter((column) => !UNINDEXED.has(column.type) && this.#random.next() < 0.2)
      .map(({ name }) => name);
    return { path, columns, indexes, options: this.#options() };
  }

  #options(): ClassSpec["options"] & object {
    return {
      keyMode: this.#pick(["manu", "uuid"]),
      ...(this.#coin() ? { ttlSeconds: 86_400 * 365 } : {}),
      ...(this.#coin() ? { autosearch: true } : {}),
      ...(this.#coin() ? { alias: this.#pick(TEXTS), remedy: this.#pick(TEXTS) } : {}),
      ...(this.#coin() ? { hints: { partition: "by 'day'", largepartition: true, buckets: 7 } } : {}),
    };
  }

  #column(name: string): ColumnSpec {
    const title = this.#coin() ? { title: this.#pick(TEXTS) } : {};
    const roll = this.#random.next();
    if (roll < 0.6) return { name, type: this.#pick(SCALARS), ...title };
    if (roll < 0.7) return { name, type: "enum", labels: { "1": ["up", "it's up"], "0": ["down"] }, ...title };
    if (roll < 0.8)
      return { name, type: "map", ...(this.#coin() ? { elements: ["varchar", this.#pick(ELEMENTS)] } : {}), ...title };
    if (roll < 0.9)
      return {
        name,
        type: this.#pick(["list", "set"]),
        ...(this.#coin() ? { elements: [this.#pick(ELEMENTS)] } : {}),
        ...title,
      };
    return { name, type: this.#pick(["bucket", "bitlog"]), ...title };
  }

  #row(at: number, columns: readonly ColumnSpec[]): Row {
    const row: Row = { id: `${this.#pick(["k", "k:", "中:", "it's ", "B;"])}${at}` };
    for (const column of columns) if (this.#random.next() < 0.7) row[column.name] = this.value(column);
    return row;
  }

  #element(type: ColumnType | undefined): Value {
    return type === undefined
      ? this.#pick<Value>(["x", "2", 2, 1.5e300, 12_345_678_901_234_567_000, true, { deep: ["'"] }])
      : this.#scalar(type);
  }

  #scalar(type: ColumnType): Value {
    const number = Math.floor(this.#random.next() * 40_000) - 20_000;
    switch (type) {
      case "int":
      case "smallint":
        return number;
      case "bigint":
      case "long":
        return this.#pick<Value>([number, "9223372036854775807", "-9223372036854775808", "9007199254740993"]);
      case "varint":
        return this.#pick<Value>([number, `-${"9".repeat(60)}`]);
      case "float":
      case "double":
        return this.#pick([number, -0.1, 5e-324, 1.7976931348623157e308, 12_345_678_901_234_567_000, 1e21]);
      case "boolean":
        return this.#coin();
      case "timestamp":
        return this.#pick([1_700_000_000_123, -1, 0, 253_402_300_799_999]);
      case "date":
        return this.#pick(["2024-02-29", "1969-12-31"]);
      case "blob":
        return Buffer.from(this.#random.bytes(Math.floor(this.#random.next() * 9))).toString("base64");
      case "uuid":
        return "0189f7e0-0000-7000-8000-00000000000a";
      case "inet":
        return this.#pick(["10.0.0.1", "fe80::1"]);
      default:
        return this.#pick(TEXTS);
    }
  }

  #some<T>(least: number, most: number, make: () => T): T[] {
    return Array.from({ length: least + Math.floor(this.#random.next() * (most - least + 1)) }, make);
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#random.next() * choices.length)] as T;
  }

  #coin(): boolean {
    return this.#random.next() < 0.5;
  }
}
