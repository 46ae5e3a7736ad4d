import { expect, test } from "vitest";
import { tokens } from "../../../common/text/tokens.ts";
import { wildcard } from "../../../common/text/wildcard.ts";
import type { Row, Value } from "../../../common/value.ts";
import { realClock, seededRandom } from "../../../test/helpers/time/clock.ts";
import { openTestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { TIMES } from "../../../test/helpers/time/times.ts";
import { ObjectService, type Edit, type Pushdown } from "./index.ts";

const admin = testPrincipal();
const CLASSES = ["/matrix/m", "/matrix/m/a", "/matrix/m/a/b", "/matrix/m/c"] as const;
const WORDS = ["disk", "full", "db", "磁盘", "空间", "ok", "late"];
const PATTERNS = ["d*", "*l*", "*k", "di*k", "never*"];

/** Objects as plain rows, and conditions checked one by one. */
class Model {
  readonly objects = new Map<string, { readonly class: string; row: Row }>();

  matching(root: string, subtree: boolean, where: readonly Pushdown[]): string[] {
    const found = [...this.objects].filter(([, object]) => {
      const inside = object.class === root || (subtree && object.class.startsWith(`${root}/`));
      return inside && where.every((pushdown) => holds(object.row, pushdown));
    });
    return found.map(([id]) => id).sort();
  }
}

function holds(row: Row, pushdown: Pushdown): boolean {
  if (pushdown.kind === "words") {
    const borne = new Set(tokens(typeof row.note === "string" ? row.note : ""));
    return pushdown.words.every((word) => tokens(word).every((token) => borne.has(token)));
  }
  if (pushdown.kind === "pattern")
    return tokens(typeof row.note === "string" ? row.note : "").some(wildcard(pushdown.pattern));
  const value = row[pushdown.column];
  if (pushdown.kind === "range")
    return typeof value === "number" && value >= (pushdown.from ?? -Infinity) && value <= (pushdown.to ?? Infinity);
  const borne = Array.isArray(value) ? (value as readonly Value[]) : [value];
  return borne.some((element) => pushdown.values.some((wanted) => wanted === element));
}

class Dice {
  readonly #random;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  upTo(count: number): number {
    return Math.floor(this.#random.next() * count);
  }

  of<T>(list: readonly T[]): T {
    return list[this.upTo(list.length)]!;
  }

  some<T>(list: readonly T[]): T[] {
    return list.filter(() => this.#random.next() < 0.4);
  }
}

async function createClasses(service: ObjectService): Promise<void> {
  const options = { autosearch: true, keyMode: "manu" as const };
  const columns = [
    { name: "k", type: "varchar" as const },
    { name: "n", type: "int" as const },
    { name: "note", type: "text" as const },
  ];
  await service.createClass(admin, { path: CLASSES[0], columns, indexes: ["k", "n"], options });
  await service.createClass(admin, {
    path: CLASSES[1],
    columns: [{ name: "p", type: "set", elements: ["int"] }],
    indexes: ["p"],
    options,
  });
  await service.createClass(admin, {
    path: CLASSES[2],
    columns: [{ name: "d", type: "double" }],
    indexes: ["d"],
    options,
  });
  await service.createClass(admin, {
    path: CLASSES[3],
    columns: [{ name: "d", type: "int" }],
    indexes: ["d"],
    options,
  });
}

function someRow(dice: Dice, path: string): Row {
  const row: Row = {};
  if (dice.upTo(2) === 0) row.k = dice.of(["x", "y", "z"]);
  if (dice.upTo(2) === 0) row.n = dice.upTo(20);
  if (dice.upTo(2) === 0) row.note = dice.some(WORDS).join(" ");
  if (dice.upTo(2) === 0) row.tags = dice.some(["t1", "t2", "t3"]);
  if (path.startsWith(CLASSES[1]) && dice.upTo(2) === 0) row.p = dice.some([1, 2, 3, 4]);
  if ((path === CLASSES[2] || path === CLASSES[3]) && dice.upTo(2) === 0) row.d = dice.upTo(5);
  return row;
}

function someWhere(dice: Dice): Pushdown[] {
  const all: readonly Pushdown[] = [
    { kind: "equals", column: "k", values: dice.some(["x", "y", "z"]) },
    { kind: "equals", column: "tags", values: dice.some(["t1", "t2", "t3"]) },
    { kind: "equals", column: "p", values: dice.some([1, 2, 3, 4]) },
    { kind: "equals", column: "d", values: [dice.upTo(5)] },
    { kind: "range", column: "n", from: dice.upTo(10), to: 5 + dice.upTo(15) },
    { kind: "range", column: "d", from: dice.upTo(5) },
    { kind: "words", words: [dice.of(WORDS)] },
    { kind: "pattern", pattern: dice.of(PATTERNS) },
  ];
  return dice.some(all).slice(0, 3);
}

async function step(service: ObjectService, model: Model, dice: Dice): Promise<void> {
  const path = dice.of(CLASSES);
  const id = `${path.slice(path.lastIndexOf("/") + 1)}:${dice.upTo(6)}`;
  const known = model.objects.get(id);
  const action = dice.upTo(10);
  if (action < 4) {
    const row = someRow(dice, path);
    await service.unrestricted.insert(admin, path, [{ id, ...row }]);
    model.objects.set(id, { class: path, row: { ...known?.row, ...row } });
  } else if (action < 8) {
    const tag = dice.of(["t1", "t2", "t3"]);
    const edits: Edit[] = [
      { column: "tags", operation: dice.of(["add", "take"] as const), value: tag },
      { column: "n", operation: "set", value: dice.of([undefined, 3, 7]) },
    ];
    expect(await service.unrestricted.update(admin, { id }, edits)).toBe(known !== undefined);
    if (known !== undefined) known.row = updated(known.row, edits, tag);
  } else {
    expect(await service.unrestricted.remove(admin, [{ id }])).toBe(known === undefined ? 0 : 1);
    model.objects.delete(id);
  }
}

function updated(row: Row, edits: readonly Edit[], tag: string): Row {
  const next: Row = { ...row };
  const before = (row.tags as readonly string[] | undefined) ?? [];
  const without = before.filter((other) => other !== tag);
  if (edits[0]?.operation === "add") next.tags = [...without, tag];
  else if (row.tags !== undefined) next.tags = without;
  const n = edits[1]?.value;
  if (n === undefined) delete next.n;
  else next.n = n;
  return next;
}

async function compare(service: ObjectService, model: Model, dice: Dice): Promise<void> {
  const root = dice.of([...CLASSES, "/matrix"]);
  const subtree = dice.upTo(3) > 0;
  const where = someWhere(dice);
  const found: string[] = [];
  for await (const page of service.unrestricted.read(admin, {
    class: root,
    subtree,
    where,
    expected: dice.of([1, 20, 500]),
  })) {
    for (const object of page) {
      expect(plain(object.values)).toEqual(plain(model.objects.get(object.id)?.row ?? {}));
      if (where.every((pushdown) => holds(object.values, pushdown))) found.push(object.id);
    }
  }
  expect(found.sort(), JSON.stringify({ root, subtree, where })).toEqual(model.matching(root, subtree, where));
}

/** Sets have no order; one that was emptied element by element may be empty or not set. */
function plain(row: Row): Row {
  const { tags, ...rest } = row;
  const sorted = [...((tags ?? []) as readonly string[])].sort();
  return sorted.length === 0 ? rest : { ...rest, tags: sorted };
}

/** The first of these seeds in every run; `npm run soak` takes all. */
function inEveryRun(seeds: readonly number[]): readonly number[] {
  return TIMES > 1 ? seeds : seeds.slice(0, 1);
}

async function run(seed: number, steps: number, faultySeed?: number): Promise<void> {
  await using engine = await openTestEngine(faultySeed === undefined ? {} : { faultySeed });
  const service = new ObjectService({
    stores: engine,
    runtime: { ...testRuntime(realClock), random: seededRandom(seed) },
  });
  const dice = new Dice(seed);
  const model = new Model();
  await createClasses(service);
  for (let at = 0; at < steps; at++) {
    await step(service, model, dice);
    await compare(service, model, dice);
  }
  await service.close();
}

test.each(inEveryRun([1, 2, 3]))("reads answer what a plain evaluator answers, each object once (seed %i)", (seed) =>
  run(seed, 250),
);

test.each(inEveryRun([4, 5]))("the same on a store that fails, delays and answers in odd pages (seed %i)", (seed) =>
  run(seed, 120, seed),
);

test.each(inEveryRun([6, 7, 8]))(
  "two controllers on a failing store lose nothing that was answered with ok, and replays add nothing (seed %i)",
  async (seed) => {
    await using engine = await openTestEngine({ faultySeed: seed });
    const services = [seed, seed + 100].map(
      (own) => new ObjectService({ stores: engine, runtime: { ...testRuntime(realClock), random: seededRandom(own) } }),
    );
    const [one, two] = services as [ObjectService, ObjectService];
    const columns = [
      { name: "k", type: "varchar" as const },
      { name: "m", type: "map" as const },
    ];
    const path = "/matrix/shared";
    await one.createClass(admin, { path, columns, indexes: ["m"], options: { keyMode: "manu" } });
    await two.createClass(admin, { path: "/matrix/log", kind: "record", columns }, { ifNotExists: true });
    await one.createClass(admin, { path: "/matrix/log", kind: "record", columns }, { ifNotExists: true });
    await one.unrestricted.insert(admin, path, [{ id: "x" }]);
    const names = Array.from({ length: 60 }, (_, at) => `e${at}`);
    const outcomes = await Promise.allSettled(
      names.map((name, at) =>
        services[at % 2]!.unrestricted.update(admin, { id: "shared:x" }, [
          { column: "tags", operation: "add", value: name },
          { column: "m", operation: "add", value: { [name]: at } },
        ]),
      ),
    );
    const kept = names.filter((_, at) => outcomes[at]?.status === "fulfilled");
    expect(kept.length).toBeGreaterThan(50);
    const [object] = await two.unrestricted.get(admin, [{ id: "shared:x" }]);
    expect(object?.values.tags).toEqual(expect.arrayContaining(kept));
    expect(Object.keys(object?.values.m as Row)).toEqual(expect.arrayContaining(kept));
    const nowMs = realClock.nowMs();
    const records = names.map((name, at) => ({ values: { k: name }, timeMs: nowMs - at, identity: `stream/${at}` }));
    await one.unrestricted.ingest(admin, "/matrix/log", records);
    await two.unrestricted.ingest(admin, "/matrix/log", records);
    const read: Value[] = [];
    for await (const page of two.unrestricted.read(admin, { class: "/matrix/log", subtree: false, newestFirst: true }))
      read.push(...page.map((row) => row.values.k ?? null));
    expect(read).toEqual(names);
    for (const service of services) await service.close();
  },
);
