import type { Random } from "../../../common/time.ts";
import type { Row, Value } from "../../../common/value.ts";
import type { Objects } from "../../../controller/areas/objects/index.ts";
import type { DataRule, Principal } from "../../../controller/areas/permissions/index.ts";
import { QueryService } from "../../../controller/areas/query/index.ts";
import { realClock } from "../time/clock.ts";
import { testPrincipal } from "../time/runtime.ts";

/** Random classes and objects: few and small, so that conditions match, groups have members and joins find partners. */

export const COLUMN_TYPES = {
  n1: "int",
  n2: "bigint",
  s1: "varchar",
  s2: "varchar",
  b1: "boolean",
  t1: "timestamp",
  g1: "set<varchar>",
  m1: "map<varchar,varchar>",
  x1: "text",
} as const;
export type ColumnName = keyof typeof COLUMN_TYPES;
export const COLUMN_NAMES = Object.keys(COLUMN_TYPES) as readonly ColumnName[];

/** Edge types. Each object has at most one edge of type `SINGLE`. */
export const SINGLE = "up";
export const RELATIONS = [SINGLE, "near"] as const;
type Edges = Readonly<Record<(typeof RELATIONS)[number], readonly string[]>>;
const NO_EDGES: Edges = { up: [], near: [] };

export interface PlainClass {
  readonly path: string;
  readonly label: string;
  /** Includes inherited columns and the key. */
  readonly columns: ReadonlySet<string>;
}

export interface PlainRow {
  readonly id: string;
  readonly class: PlainClass;
  readonly values: Row;
  readonly writtenMs: number;
  /** Ids, including those of removed objects. */
  readonly edges: Edges;
}

export interface World {
  readonly root: string;
  readonly classes: readonly PlainClass[];
  readonly now: readonly PlainRow[];
  /** True if its classes hold records, which have no keys and edges and never change. */
  readonly areRecords: boolean;
  /** Absent: the classes keep no versions. */
  readonly earlier: { readonly rows: readonly PlainRow[]; readonly atMs: number } | undefined;
}

const FIRST_MS = Date.UTC(2024, 0, 1);
const SECOND_MS = FIRST_MS + 3_600_000;
const WORDS = ["disk", "disc", "full", "fail", "web", "node", "warn", "red"];
const admin = testPrincipal();

export class Dice {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  below(end: number): number {
    return Math.floor(this.#random.next() * end);
  }

  chance(probability: number): boolean {
    return this.#random.next() < probability;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T;
  }

  some<T>(choices: readonly T[], probability: number): T[] {
    return choices.filter(() => this.chance(probability));
  }
}

/** A value for the column as objects have it. Conditions compare with such values and their elements. */
export function drawnValue(name: ColumnName, dice: Dice): Value {
  const letters = dice.some(["x", "y", "z"], 0.5);
  switch (COLUMN_TYPES[name]) {
    case "int":
    case "bigint":
      return dice.below(8) - 2;
    case "varchar":
      return `${dice.pick(["a", "b", "ab"])}${dice.below(4)}`;
    case "boolean":
      return dice.chance(0.5);
    case "timestamp":
      return FIRST_MS + dice.below(6) * 86_400_000;
    case "set<varchar>":
      return letters;
    case "map<varchar,varchar>":
      return Object.fromEntries(letters.map((letter) => [letter, dice.pick(["1", "2"])]));
    case "text":
      return Array.from({ length: 1 + dice.below(4) }, () => dice.pick(WORDS)).join(" ");
  }
}

const OBJECTS = 14;

/** Creates a world below a class of its own. Not every object database supports versions and records. */
export async function makeWorld(
  objects: Objects,
  name: string,
  { dice, canKeepVersions }: { readonly dice: Dice; readonly canKeepVersions: boolean },
): Promise<World> {
  const keepsVersions = dice.chance(0.4) && canKeepVersions;
  for (const type of RELATIONS) await objects.createEdgeType(admin, { name: type, remedy: "" }, { ifNotExists: true });
  const areRecords = canKeepVersions && !keepsVersions && dice.chance(0.3);
  const classes = await makeClasses(objects, name, { dice, keepsVersions, areRecords });
  const rows = new Map<string, PlainRow>();
  for (let at = 0; at < OBJECTS; at += 1)
    await write(objects, rows, { id: undefined, view: dice.pick(classes), atMs: FIRST_MS + at, dice, areRecords });
  if (areRecords) return { root: `/matrix/${name}`, classes, now: [...rows.values()], areRecords, earlier: undefined };
  const earlier = keepsVersions
    ? { rows: [...rows.values()].map((row) => ({ ...row })), atMs: FIRST_MS + 60_000 }
    : undefined;
  for (const [at, row] of [...rows.values()].filter(() => dice.chance(0.3)).entries()) {
    await write(objects, rows, { id: row.id, view: row.class, atMs: SECOND_MS + at, dice, areRecords });
  }
  for (const row of dice.some([...rows.values()], 0.1)) {
    await objects.unrestricted.remove(admin, [{ id: row.id }]);
    rows.delete(row.id);
  }
  return { root: `/matrix/${name}`, classes, now: [...rows.values()], areRecords, earlier };
}

async function makeClasses(
  objects: Objects,
  name: string,
  of: { readonly dice: Dice; readonly keepsVersions: boolean; readonly areRecords: boolean },
): Promise<readonly PlainClass[]> {
  const { dice, keepsVersions, areRecords } = of;
  const query = new QueryService({ objects, runtime: { clock: realClock } });
  const kept = areRecords ? "kind=record" : `version=${keepsVersions}`;
  const classes: PlainClass[] = [];
  for (let at = 0; at < 4; at += 1) {
    const parent = at === 0 ? undefined : dice.pick(classes);
    const label = at === 0 ? name : `${name}c${at}`;
    const own = dice.some(COLUMN_NAMES, at === 0 ? 0.5 : 0.4).filter((column) => !parent?.columns.has(column));
    const indexed = dice.some(own, 0.5);
    const path = `${parent?.path ?? "/matrix"}/${label}`;
    const members = [
      ...(parent ? [] : ["k varchar"]),
      ...own.map((column) => `${column} ${COLUMN_TYPES[column]}`),
      ...(parent || areRecords ? [] : ["keys(k)"]),
    ];
    const index = indexed.length > 0 ? [`index(${indexed.join(", ")})`] : [];
    await query.rows(
      admin,
      `create class ${path} (${[...members, ...index].join(", ")}) with ${kept}, autosearch=${dice.chance(0.5)}`,
    );
    classes.push({ path, label, columns: new Set(["k", "tags", ...(parent?.columns ?? []), ...own]) });
  }
  return classes;
}

interface Written {
  /** Absent: a new object. */
  readonly id: string | undefined;
  readonly view: PlainClass;
  readonly atMs: number;
  readonly dice: Dice;
  readonly areRecords: boolean;
}

async function write(objects: Objects, rows: Map<string, PlainRow>, written: Written): Promise<void> {
  const { id, view, atMs, dice, areRecords } = written;
  const known = id === undefined ? undefined : rows.get(id);
  const k = known?.values.k ?? `k${rows.size}`;
  const columns = COLUMN_NAMES.filter((name) => view.columns.has(name));
  const values: Row = {
    k,
    ...Object.fromEntries(dice.some(columns, known ? 0.4 : 0.75).map((name) => [name, drawnValue(name, dice)])),
  };
  const edges = areRecords ? {} : drawnEdges([...rows.keys()], dice);
  const [whole = ""] = await objects.unrestricted.insert(admin, view.path, [{ ...values, ...edges }], { atMs });
  rows.set(whole, {
    id: whole,
    class: view,
    values: { ...known?.values, ...values },
    writtenMs: atMs,
    edges: { ...(known?.edges ?? NO_EDGES), ...edges },
  });
}

/** Edge types that are absent keep their edges. */
function drawnEdges(ids: readonly string[], dice: Dice): Partial<Edges> {
  return {
    ...(dice.chance(0.7) ? { up: dice.some(ids, 0.2).slice(0, 1) } : {}),
    ...(dice.chance(0.5) ? { near: dice.some(ids, 0.2) } : {}),
  };
}

/** The rights of a caller: the visible columns of each class and the visible objects. */
export interface PlainRights {
  readonly principal: Principal;
  readonly isReadable: (path: string) => boolean;
  readonly hidden: ReadonlySet<string>;
}

export function drawnRights(world: World, rule: string | undefined, dice: Dice): PlainRights {
  const hidden = dice.some(COLUMN_NAMES, dice.chance(0.3) ? 0.2 : 0);
  const shut = dice.chance(0.2) ? dice.pick(world.classes).path : undefined;
  const data: DataRule[] = [
    {
      class: "/",
      access: "read",
      ...(rule === undefined ? {} : { where: rule }),
      ...(hidden.length > 0 ? { hidden } : {}),
    },
  ];
  if (shut !== undefined) data.push({ class: shut, access: "none" });
  const isShut = (path: string) => shut !== undefined && (path === shut || path.startsWith(`${shut}/`));
  return { principal: { ...admin, data }, isReadable: (path) => !isShut(path), hidden: new Set(hidden) };
}
