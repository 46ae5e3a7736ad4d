import { afterAll, beforeAll, expect, test } from "vitest";
import { mapLimited } from "../../../common/concurrency.ts";
import { AppError, isAppError } from "../../../common/errors.ts";
import type { Random } from "../../../common/time.ts";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";
import { realClock, seededRandom } from "../../../test/helpers/time/clock.ts";
import { onCluster } from "../../../test/helpers/engines/engine.ts";
import { prove } from "../../../test/helpers/runs/evidence.ts";
import { openTestIngest, recordsEntry, TestOutbox } from "../../../test/helpers/areas/ingest.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { Turns } from "../../../test/helpers/time/turns.ts";
import { TIMES } from "../../../test/helpers/time/times.ts";
import type { Stores } from "../../store/engine.ts";
import { PIN_REFUSED } from "../hosts/index.ts";
import type { Unrestricted } from "../objects/index.ts";
import type { IngestService } from "./index.ts";

const ADMIN = testPrincipal();
const LINES = "--class=/matrix/line\n--parser=csv\n--fields=name,n\n";
const OTHER = "--class=/matrix/other\n--parser=csv\n--fields=name,n\n";
const KEYED = "--class=/matrix/keyed\n--parser=csv\n--fields=name,n\n";

let world: Awaited<ReturnType<typeof openTestIngest>>;
beforeAll(async () => {
  world = await openTestIngest();
});
afterAll(() => world[Symbol.asyncDispose]());

let streams = 0;
const newSource = () => ({ tenant: "matrix", host: "web-1", streamId: `stream-${String(++streams).padStart(4, "0")}` });

/** A controller that stands still before the first of its writes of objects, until it is let go. */
function pausable() {
  let wake: () => void = () => undefined;
  let reached: () => void = () => undefined;
  const asleep = new Promise<void>((resolve) => (reached = resolve));
  const awake = new Promise<void>((resolve) => (wake = resolve));
  const objects: Unrestricted<"ingest"> = {
    unrestricted: {
      async ingest(...call) {
        reached();
        await awake;
        return world.objects.unrestricted.ingest(...call);
      },
    },
  };
  return { controller: world.controller({ objects }), asleep, wake };
}

const namesIn = async (path: string, prefix: string) =>
  (await world.rows(path)).map((row) => String(row["name"])).filter((name) => name.startsWith(prefix));

test("who wakes after another went on writes the very rows that were written meanwhile, though the rule was edited", async () => {
  const [source, key] = [newSource(), "/matrix/rules/edited"];
  const outbox = new TestOutbox(source);
  await world.rules.put(ADMIN, key, LINES);
  const entries = [1, 2, 3].map((sequence) => recordsEntry(sequence, [`e${sequence},${sequence}`], key));
  const a = pausable();
  const accepting = outbox.send(a.controller, entries.slice(0, 2));
  await a.asleep;
  await world.rules.put(ADMIN, key, OTHER);
  const b = world.controller();
  await outbox.send(b, entries);
  a.wake();
  await accepting;
  expect([await namesIn("/matrix/line", "e"), await namesIn("/matrix/other", "e")]).toEqual([["e1", "e2"], ["e3"]]);
});

test("a batch whose text is kept no more is pinned anew by its agent, and what was stored of it is written over", async () => {
  const [source, key] = [newSource(), "/matrix/rules/gone"];
  const outbox = new TestOutbox(source);
  await world.rules.put(ADMIN, key, LINES);
  const entries = [recordsEntry(1, ["gone,1"], key)];
  await outbox.send(world.controller(), entries);
  const { kv } = await world.engine.tenant("matrix");
  const { digest } = await world.rules.load(ADMIN, key);
  await world.rules.put(ADMIN, key, `${LINES}--comment=changed meanwhile\n`);
  await kv.delete(`rule-text/${digest}`);
  const again = outbox.send(world.controller(), entries);
  await expect(again).rejects.toMatchObject({ details: { reason: PIN_REFUSED } });
  outbox.forget();
  await outbox.send(world.controller(), entries);
  expect(await namesIn("/matrix/line", "gone")).toEqual(["gone"]);
});

test.each([
  ["was removed", undefined, LINES],
  ["came to be", LINES, undefined],
])("a rule that %s in between does not make a record and an error of one line", async (what, after, before) => {
  const [source, key, name] = [newSource(), `/matrix/rules/${what.replace(" ", "-")}`, what.slice(0, 3)];
  const outbox = new TestOutbox(source);
  if (before !== undefined) await world.rules.put(ADMIN, key, before);
  const a = pausable();
  const entries = [recordsEntry(1, [`${name},1`], key)];
  const accepting = outbox.send(a.controller, entries);
  await a.asleep;
  await (after === undefined ? world.rules.remove(ADMIN, key) : world.rules.put(ADMIN, key, after));
  await outbox.send(world.controller(), entries);
  a.wake();
  await accepting;
  const errors = (await world.rows("/matrix/consolelog/rule")).filter((row) => row["name"] === key);
  expect([await namesIn("/matrix/line", name), errors.length]).toEqual(before === undefined ? [[], 1] : [[name], 0]);
});

test("an old entry that is written late does not overwrite what a newer one made of a keyed object", async () => {
  const [source, key] = [newSource(), "/matrix/rules/keyed"];
  const outbox = new TestOutbox(source);
  await world.rules.put(ADMIN, key, KEYED);
  const a = pausable();
  const entries = [recordsEntry(1, ["late,1"], key), recordsEntry(2, ["late,2", "late,3"], key)];
  const accepting = outbox.send(a.controller, entries.slice(0, 1));
  await a.asleep;
  await outbox.send(world.controller(), entries);
  await world.objects.unrestricted.update(ADMIN, { id: "keyed:late" }, [{ column: "n", operation: "set", value: 4 }]);
  a.wake();
  await accepting;
  expect((await world.rows("/matrix/keyed")).filter((row) => row["name"] === "late")).toEqual([{ name: "late", n: 4 }]);
});

test("of two controllers the clock that is ahead decides, and the writes of a stream go on rising", async () => {
  const [source, key] = [newSource(), "/matrix/rules/ahead"];
  const outbox = new TestOutbox(source);
  await world.rules.put(ADMIN, key, KEYED);
  const ahead = world.controller({ clock: { ...realClock, nowMs: () => realClock.nowMs() + 600_000 } });
  await outbox.send(ahead, [recordsEntry(1, ["ahead,1"], key)]);
  await outbox.send(world.controller(), [recordsEntry(2, ["ahead,2"], key)]);
  expect((await world.rows("/matrix/keyed")).filter((row) => row["name"] === "ahead")).toEqual([
    { name: "ahead", n: 2 },
  ]);
});

/** Seeds that once found a fault. */
const KEPT_SEEDS: readonly number[] = [];
const HISTORIES = onCluster ? 12 : TIMES > 1 ? 500 * TIMES : 80;
const HISTORIES_MAX_MS = 240_000 * TIMES;
const SIDE_BY_SIDE = 16;

test(
  `every line is stored once and keyed objects end as the last line says, whoever stores it at once with whom (${HISTORIES} histories)`,
  async () => {
    const base = Number(process.env.ODP_TEST_SEED ?? Date.now() % 1_000_000_000);
    console.log(`histories of one stream: seeds from ${base} (ODP_TEST_SEED=<seed> begins with that one)`);
    const seeds = [...KEPT_SEEDS, ...Array.from({ length: HISTORIES }, (_, at) => base + at)];
    const histories = await mapLimited(seeds, SIDE_BY_SIDE, (seed) => new History(seed).run());
    const found = {
      line: await counted("/matrix/line"),
      other: await counted("/matrix/other"),
      errors: await errorsByFirst(),
      keyed: await values("/matrix/keyed"),
    };
    for (const history of histories) history.check(found);
    const total = (pick: (history: History) => number) => histories.reduce((sum, history) => sum + pick(history), 0);
    const evidence = {
      engine: onCluster ? "cluster" : "embedded",
      histories: histories.length,
      seeds: `${base} to ${base + HISTORIES - 1}`,
      lines: total((one) => one.lines),
      sessions: total((one) => one.sessions),
      sideBySide: total((one) => one.sideBySide),
    };
    expect(evidence.sideBySide).toBeGreaterThan(0);
    prove("ingest-same-rows", evidence);
  },
  HISTORIES_MAX_MS,
);

interface Found {
  readonly line: ReadonlyMap<string, number>;
  readonly other: ReadonlyMap<string, number>;
  /** Records of an entry whose rule could not be used, by the first of them. */
  readonly errors: ReadonlyMap<string, number>;
  readonly keyed: ReadonlyMap<string, unknown>;
}

async function counted(path: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const row of await world.rows(path)) counts.set(String(row["name"]), (counts.get(String(row["name"])) ?? 0) + 1);
  return counts;
}

async function errorsByFirst(): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const row of await world.rows("/matrix/consolelog/rule")) {
    const first = String(row["raw"]).split(",")[0] ?? "";
    counts.set(first, (counts.get(first) ?? 0) + Number(row["count"]));
  }
  return counts;
}

const values = async (path: string) => new Map((await world.rows(path)).map((row) => [String(row["name"]), row["n"]]));

/**
 * One agent's stream with a few entries. Its sessions move between three controllers; a session that was left goes on
 * with what it had, as a controller does that was paused. A rule is edited and removed meanwhile, calls fail and lose
 * their answers.
 */
class History {
  readonly #seed: number;
  readonly #random: Random;
  readonly #turns: Turns;
  readonly #source: ReturnType<typeof newSource>;
  readonly #rule: string;
  readonly #keyedRule: string;
  readonly #entries: readonly Entry[];
  readonly #outbox: TestOutbox;
  #storing = 0;
  readonly #controllers: readonly IngestService[];
  #current = 0;
  /** Acknowledged, as the agent knows. */
  #from = 0;
  #done = false;
  sessions = 0;
  /** Batches that two controllers were at, at the same moment. */
  sideBySide = 0;
  lines = 0;

  constructor(seed: number) {
    this.#seed = seed;
    this.#random = seededRandom(seed);
    this.#turns = new Turns(this.#random);
    this.#source = { tenant: "matrix", host: `h${seed}`, streamId: `seeded-${String(seed).padStart(10, "0")}` };
    this.#outbox = new TestOutbox(this.#source);
    this.#rule = `/matrix/rules/seeded/${seed}`;
    this.#keyedRule = "/matrix/rules/seeded/keyed";
    this.#entries = Array.from({ length: 6 + this.#upTo(6) }, (_, at) => this.#entry(at + 1));
    this.#controllers = [0, 1, 2].map(() => world.controller({ stores: this.#stores(), objects: this.#objects() }));
  }

  async run(): Promise<this> {
    await world.rules.put(ADMIN, this.#keyedRule, KEYED);
    await world.rules.put(ADMIN, this.#rule, LINES);
    this.#turns.begin(() => this.#agent());
    this.#turns.begin(() => this.#author());
    await this.#turns.finished();
    return this;
  }

  check(found: Found): void {
    for (const { sequence, body } of this.#entries) {
      const records =
        body?.$case === "records" ? body.value.records.map((line) => line.toString().split(",")[0] ?? "") : [];
      if (this.#isKeyed(sequence)) continue;
      const [first = ""] = records;
      const stored = records.map((name) => (found.line.get(name) ?? 0) + (found.other.get(name) ?? 0));
      const errors = found.errors.get(first) ?? 0;
      const once =
        errors === 0
          ? stored.every((count) => count === 1)
          : errors === records.length && stored.every((count) => count === 0);
      expect(once, `seed ${this.#seed}, entry ${sequence}: stored ${stored.join(" ")}, as errors ${errors}`).toBe(true);
    }
    const keyed = this.#entries.filter(({ sequence }) => this.#isKeyed(sequence)).at(-1);
    if (keyed) expect(found.keyed.get(`k${this.#seed}`), `seed ${this.#seed}, keyed object`).toBe(keyed.sequence);
  }

  /** Goes from controller to controller until everything is acknowledged. */
  async #agent(): Promise<void> {
    while (!this.#done) {
      const mine = ++this.#current;
      const ingest = this.#controllers[this.#upTo(3)];
      if (ingest) this.#turns.begin(() => this.#session(ingest, mine));
      const patience = 2 + this.#upTo(12);
      for (let turns = 0; turns < patience && !this.#done && this.#current === mine; turns++)
        await this.#turns.turn(() => Promise.resolve());
    }
  }

  async #session(ingest: IngestService, mine: number): Promise<void> {
    this.sessions += 1;
    try {
      await ingest.acknowledged(this.#source);
      // Entries that arrived before the agent left are still worked on.
      for (let queued = this.#upTo(3), done = this.#from; this.#current === mine || queued-- > 0; ) {
        if (done === this.#entries.length) return void (this.#done = true);
        done = await this.#store(ingest, this.#entries.slice(done, done + 1 + this.#upTo(4)));
        this.#from = Math.max(this.#from, done);
      }
    } catch (error) {
      if (!isAppError(error, "unavailable", "unknown_outcome")) throw error;
      if (this.#current === mine) this.#current += 1;
    }
  }

  async #store(ingest: IngestService, entries: readonly Entry[]): Promise<number> {
    const batches = await this.#outbox.batches(ingest, entries);
    if (this.#storing > 0) this.sideBySide += 1;
    this.#storing += 1;
    try {
      await ingest.accept(this.#source, batches);
    } finally {
      this.#storing -= 1;
    }
    return batches.at(-1)?.entries.at(-1)?.sequence ?? 0;
  }

  async #author(): Promise<void> {
    const edits = [OTHER, undefined, LINES, OTHER];
    for (let count = this.#upTo(4); count > 0 && !this.#done; count--) {
      const pause = 3 + this.#upTo(10);
      for (let turns = 0; turns < pause; turns++) await this.#turns.turn(() => Promise.resolve());
      const text = edits[this.#upTo(edits.length)];
      await (text === undefined
        ? world.rules.remove(ADMIN, this.#rule).catch(() => undefined)
        : world.rules.put(ADMIN, this.#rule, text));
    }
  }

  #stores(): Stores {
    const call = <T>(action: () => Promise<T>) => this.#turns.turn(() => this.#perhaps(action));
    return {
      system: () => world.engine.system(),
      tenant: async (name) => {
        const store = await world.engine.tenant(name);
        const { kv } = store;
        return {
          ...store,
          kv: Object.assign(Object.create(kv) as typeof kv, {
            get: (key: string) => call(() => kv.get(key)),
            put: (...put: Parameters<typeof kv.put>) => call(() => kv.put(...put)),
          }),
        };
      },
    };
  }

  #objects(): Unrestricted<"ingest"> {
    return {
      unrestricted: {
        ingest: (...call) => this.#turns.turn(() => this.#perhaps(() => world.objects.unrestricted.ingest(...call))),
      },
    };
  }

  async #perhaps<T>(action: () => Promise<T>): Promise<T> {
    const chance = this.#random.next();
    if (chance < 0.03) throw new AppError("unavailable", "away");
    const answer = await action();
    if (chance < 0.06) throw new AppError("unknown_outcome", "perhaps");
    return answer;
  }

  #entry(sequence: number): Entry {
    if (this.#isKeyed(sequence))
      return recordsEntry(sequence, [`k${this.#seed},0`, `k${this.#seed},${sequence}`], this.#keyedRule);
    const lines = Array.from({ length: 1 + this.#upTo(3) }, (_, at) => `s${this.#seed}-${sequence}-${at},${at}`);
    this.lines += lines.length;
    return recordsEntry(sequence, lines, this.#rule);
  }

  #isKeyed(sequence: number): boolean {
    return (sequence + this.#seed) % 3 === 0;
  }

  /** 0 up to before `bound`. */
  #upTo(bound: number): number {
    return Math.floor(this.#random.next() * bound);
  }
}
