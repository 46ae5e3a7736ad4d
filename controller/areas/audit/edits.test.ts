import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AUDIT_EXPIRY_SLACK_MS, AUDIT_KEEP_SECONDS, AUDIT_MARK_INTERVAL_MS } from "../../../common/limits.ts";
import { AuditWorld, madePlain, REGISTER_KEY, type Controller } from "../../../test/helpers/areas/audit-world.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { TEST_SECRETS } from "../../../test/helpers/time/runtime.ts";
import { TIMES } from "../../../test/helpers/time/times.ts";
import { secretBox } from "../../secrets/index.ts";
import { hashOf, type AuditRecord } from "./chain.ts";
import type { Head } from "./heads.ts";

/**
 * Random histories of controllers, and random edits of their trails. An oracle that knows the original trail decides
 * which edits must be found. Two kinds cannot be found: cutting off the end of a run that no head covers, and removing
 * entries that are about to expire.
 */

const SEEDS = onCluster ? 40 : TIMES > 1 ? 150 * TIMES : 60;
const EDITS = 6;

let engine: TestEngine;
beforeAll(async () => {
  engine = await openTestEngine();
});
afterAll(() => engine.close());

type Draw = (below: number) => number;

interface History {
  readonly world: AuditWorld;
  /** The original trail, newest first. */
  readonly made: readonly AuditRecord[];
  /** Values of the register since earlier runs have heads, oldest first. */
  readonly registers: readonly Uint8Array[];
  readonly sinceMs: number;
}

const SPANS = [0, 1, 1_000, 30_000, 61_000, 3_600_000, 20 * 3_600_000, 40 * 24 * 3_600_000];

/** Up to two runs of earlier versions, then runs of up to three controllers, some of which are killed. */
async function history(draw: Draw): Promise<History> {
  const world = new AuditWorld(engine);
  const kv = await world.kv();
  await world.forgetHeads();
  await earlierRuns(world, draw);
  const registers: Uint8Array[] = [];
  const alive: Controller[] = [];
  const seal = async (controllers: readonly Controller[]): Promise<void> => {
    for (const controller of controllers) {
      await controller.audit.writeHeads();
      await controller.anchor();
    }
    const entry = await kv.get(REGISTER_KEY);
    if (entry) registers.push(entry.value);
  };
  const begin = async (): Promise<void> => {
    const controller = world.controller();
    controller.audit.maintain(world.tenant);
    await controller.audit.adopted();
    alive.push(controller);
    await world.write(controller, 1 + draw(3));
    // Its first head is still being written.
    await seal([controller]);
  };
  await begin();
  for (let step = 4 + draw(16); step > 0; step--) {
    const spanMs = SPANS[draw(SPANS.length)] ?? 0;
    world.clock.advance(spanMs);
    if (spanMs > 60_000) await seal(alive);
    if (alive.length === 0 || (alive.length < 3 && draw(4) === 0)) await begin();
    else if (draw(6) === 0) {
      const ended = alive.splice(draw(alive.length), 1);
      if (draw(2) === 0) await seal(ended);
    } else await world.write(alive[draw(alive.length)] as Controller, 1 + draw(4));
  }
  // A killed controller seals nothing more; the others seal their last entries.
  for (const controller of alive) if (draw(3) > 0) await seal([controller]);
  if (draw(3) === 0) world.clock.advance((AUDIT_KEEP_SECONDS - draw(60) * 24 * 3_600) * 1_000);
  const keptMs = world.clock.nowMs() - AUDIT_KEEP_SECONDS * 1_000;
  const made = world.trail.records.filter(({ timeMs }) => timeMs > keptMs).reverse();
  return { world, made, registers, sinceMs: keptMs + AUDIT_EXPIRY_SLACK_MS };
}

async function earlierRuns(world: AuditWorld, draw: Draw): Promise<void> {
  for (let runs = draw(3); runs > 0; runs--) {
    const before = world.trail.records.length;
    const earlier = world.controller({ hasHeads: false });
    for (let step = 1 + draw(4); step > 0; step--) {
      await world.write(earlier, 1 + draw(3));
      world.clock.advance(SPANS[1 + draw(SPANS.length - 1)] ?? 0);
    }
    if (draw(2) === 0) world.trail.records.push(...madePlain(world.trail.records.splice(before)));
    world.clock.advance(1);
  }
}

/** One change of a trail, newest entry first. */
function edited(records: readonly AuditRecord[], draw: Draw): readonly AuditRecord[] {
  const at = draw(records.length);
  const other = draw(records.length);
  const [one, two] = [records[at], records[other]];
  if (one === undefined || two === undefined) return records;
  const ofRun = (record: AuditRecord): boolean => record.run === one.run;
  switch (draw(10)) {
    case 0:
      return records.filter(() => draw(4) > 0);
    case 1:
      return records.filter((record) => !ofRun(record));
    case 2:
      return records.filter((record) => !ofRun(record) || record.sequence > one.sequence);
    case 3:
      return records.filter((record) => !ofRun(record) || record.sequence < one.sequence);
    case 4:
      return records.filter((record) => record !== one);
    case 5:
      return records.with(at, changed(one, draw));
    case 6:
      return records.toSpliced(other, 0, one);
    case 7:
      return records.toSpliced(at, 0, added(one, draw));
    case 8:
      return records.with(at, two).with(other, one);
    default:
      return one === two ? records : records.with(at, { ...one, run: two.run, sequence: two.sequence });
  }
}

function changed(record: AuditRecord, draw: Draw): AuditRecord {
  const members = ["user", "action", "object", "outcome", "previous", "hash", "run"] as const;
  const member = members[draw(members.length + 2)];
  if (member !== undefined) return { ...record, [member]: `${record[member]}0` };
  return draw(2) === 0 ? { ...record, timeMs: record.timeMs - 1 } : { ...record, sequence: record.sequence + 1 };
}

/** An entry made by an attacker without the key. */
function added(record: AuditRecord, draw: Draw): AuditRecord {
  const stranger = secretBox([Buffer.alloc(32, 9)]);
  const run = draw(2) === 0 ? record.run : "ab".repeat(12);
  const body = { ...record, run, sequence: draw(2) === 0 ? 1 : record.sequence + 1, user: "forged" };
  const [plain] = madePlain([body]) as [AuditRecord];
  if (draw(2) === 0) return plain;
  const hash = hashOf(body, stranger);
  return { ...body, hash: draw(2) === 0 ? hash : hash.replace(stranger.keyId, TEST_SECRETS.keyId) };
}

type Verdict = "found" | "sound" | "either";

/** The required result of a verification of these records, newest first, with these heads. */
function verdictOf(
  { made, sinceMs }: History,
  records: readonly AuditRecord[],
  heads: ReadonlyMap<string, Head>,
): Verdict {
  const known = new Set(made);
  if (new Set(records).size < records.length || records.some((record) => !known.has(record))) return "found";
  if (records.some((record, at) => record.timeMs > (records[at - 1]?.timeMs ?? Infinity))) return "found";
  const verdicts = [...new Set(made.map(({ run }) => run))].map((run) => {
    const of = (list: readonly AuditRecord[]) => list.filter((record) => record.run === run);
    return verdictOfRun({ made: of(made), left: of(records), head: heads.get(run), sinceMs });
  });
  return verdicts.find((one) => one === "found") ?? verdicts.find((one) => one === "either") ?? "sound";
}

interface RunOf {
  readonly made: readonly AuditRecord[];
  readonly left: readonly AuditRecord[];
  readonly head: Head | undefined;
  readonly sinceMs: number;
}

function verdictOfRun({ made, left, head, sinceMs }: RunOf): Verdict {
  const last = head !== undefined && head.timeMs > sinceMs ? head.last : 0;
  const present = left.map(({ sequence }) => sequence);
  const [from, to] = [Math.min(...present), Math.max(...present)];
  const gone = made.filter((record) => !left.includes(record));
  if (present.length === 0) return gone.some(({ sequence }) => sequence <= last) ? "found" : "sound";
  const verdicts = gone.map(({ sequence, timeMs }): Verdict => {
    if (sequence > to) return sequence <= last ? "found" : "sound";
    if (sequence > from || timeMs > sinceMs + AUDIT_MARK_INTERVAL_MS) return "found";
    return timeMs > sinceMs ? "either" : "sound";
  });
  return verdicts.find((one) => one === "found") ?? verdicts.find((one) => one === "either") ?? "sound";
}

describe.each([{ anchored: true }, { anchored: false }])("of random edits, anchored: $anchored", ({ anchored }) => {
  test("every one is found, and what was not edited is sound", { timeout: 600_000 * TIMES }, async () => {
    const verdicts = { found: 0, sound: 0, either: 0 };
    for (let seed = 1; seed <= SEEDS; seed++) {
      const random = seededRandom(seed);
      const draw: Draw = (below) => Math.floor(random.next() * below);
      const past = await history(draw);
      const { world, made } = past;
      const heads = await world.storedHeads();
      const set = (records: readonly AuditRecord[]): void =>
        void world.trail.records.splice(0, Infinity, ...[...records].reverse());
      set(made);
      const untouched = await world.verify({ anchored });
      expect(untouched.problems, `seed ${seed}, untouched`).toEqual([]);
      const uncovered = made.filter(({ run, sequence }) => sequence > (heads.get(run)?.last ?? 0));
      expect(untouched.uncovered, `seed ${seed}, uncovered`).toBe(uncovered.length);
      for (let edit = 0; edit < EDITS; edit++) {
        let records = edited(made, draw);
        if (draw(3) === 0) records = edited(records, draw);
        const verdict = verdictOf(past, records, heads);
        verdicts[verdict]++;
        set(records);
        const { problems } = await world.verify({ anchored });
        if (verdict !== "either")
          expect(problems.length > 0 ? "found" : "sound", `seed ${seed}, edit ${edit}`).toBe(verdict);
      }
      set(made);
      await editHeads(past, { anchored, seed, draw });
    }
    expect(verdicts.found).toBeGreaterThan(verdicts.sound);
    expect(verdicts.sound).toBeGreaterThan(0);
  });
});

interface HeadEdit {
  readonly anchored: boolean;
  readonly seed: number;
  readonly draw: Draw;
}

/** Removed or changed heads are always found; heads restored to an earlier state only with an anchor. */
async function editHeads({ world, made, registers }: History, { anchored, seed, draw }: HeadEdit): Promise<void> {
  const kv = await world.kv();
  const now = registers.at(-1) as Uint8Array;
  const version = await world.version();
  if (!made.some(({ run }) => run.startsWith("h"))) return;
  const flipped = Uint8Array.from(now);
  flipped[1 + draw(now.length - 1)]! ^= 1;
  for (const value of [undefined, flipped]) {
    if (value) await kv.put(REGISTER_KEY, value);
    else await kv.delete(REGISTER_KEY);
    const { first } = await world.verify({ anchored });
    expect(first?.kind, `seed ${seed}, heads ${value ? "changed" : "removed"}`).toBe("heads");
  }
  await kv.put(REGISTER_KEY, registers[draw(registers.length)] ?? now);
  if ((await world.version()) === version || !anchored) return;
  const { problems } = await world.verify({ anchored });
  expect(problems.join(), `seed ${seed}, heads put back`).toContain("they were put back or removed");
}
