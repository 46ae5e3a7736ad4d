import { setImmediate } from "node:timers";
import { isAppError } from "../../../common/errors.ts";
import { tokens } from "../../../common/text/tokens.ts";
import type { Clock } from "../../../common/time.ts";
import type { Row, Value } from "../../../common/value.ts";
import { Chronicle } from "../runs/chronicle.ts";
import { realClock, seededRandom } from "../time/clock.ts";
import { Interleaving, interleaved } from "../engines/interleaving.ts";
import { testRuntime } from "../time/runtime.ts";
import { ObjectService, type ObjectRow, type Pushdown } from "../../../controller/areas/objects/index.ts";
import { type Lane, engine } from "./race-world.ts";
import { SOURCES, COLUMNS, Dice, pieces, type Subject, type Step } from "./race-steps.ts";
import { type Plan, PLANS } from "./race-plans.ts";

/** Histories of one object: controllers carry out a plan in a seeded order, and what is there in the end is judged. */

/** Clock offsets of two or three controllers: the second is five seconds behind. */
const OFFSETS_MS = [0, -5_000, 40] as const;

interface Judgement {
  readonly storeCalls: number;
  readonly complaints: readonly string[];
  readonly text: string;
}

export interface HistoryOptions {
  /** Name of the object. */
  readonly name?: string;
  /** Writers are all in one controller. */
  readonly alone?: boolean;
  readonly plans?: readonly Plan[];
}

/** Runs one history. The same seed and lane give the same history. */
export async function history(
  seed: number,
  lane: Lane,
  { name = "h", alone = false, plans = PLANS }: HistoryOptions = {},
): Promise<Judgement> {
  const dice = new Dice(seed);
  const turns = new Interleaving(seededRandom(seed + 0x5eed));
  const services: ObjectService[] = [];
  const others = 1 + Math.floor(dice.next() * 2);
  for (const offsetMs of OFFSETS_MS.slice(0, alone ? 1 : 1 + others)) {
    // Now and then one goes away in the middle of what it does.
    const stores = interleaved(engine, turns, dice.next() < 0.15 ? Math.floor(dice.next() * 8) : Infinity);
    const service = new ObjectService({
      stores,
      runtime: { ...testRuntime(steppingClock(offsetMs)), random: seededRandom(seed + services.length) },
    });
    await service.catalog(lane.admin);
    services.push(service);
  }
  const subject = { ...lane, id: `race:${name}${seed}` };
  const chronicle = new Chronicle();
  const steps = dice.of(plans)(dice, services, subject);
  await turns.run(
    steps.map((step) => () => note(chronicle, { ...step, name: `${services.indexOf(step.by)} ${step.name}` })),
  );
  for (const service of services) await service.close();
  return {
    storeCalls: turns.steps,
    complaints: await judged(subject, chronicle),
    text: `seed ${seed}\n${chronicle.text()}`,
  };
}

/** Stands still but for a step at each look; short waits take no time. */
function steppingClock(offsetMs: number): Clock {
  let nowMs = Date.UTC(2026, 0, 1) + offsetMs;
  return {
    nowMs: () => (nowMs += 1),
    monotonicMs: () => performance.now(),
    after(delayMs, callback) {
      if (delayMs >= 1_000) return realClock.after(delayMs, callback);
      const immediate = setImmediate(callback);
      return () => clearImmediate(immediate);
    },
  };
}

async function note(chronicle: Chronicle, step: Step): Promise<void> {
  const end = chronicle.begin(step.name, step.intended);
  try {
    end(await step.run());
  } catch (error) {
    if (!isAppError(error, "unavailable", "unknown_outcome")) throw error;
  }
}

async function judged(subject: Subject, chronicle: Chronicle): Promise<string[]> {
  const judge = new ObjectService({ stores: engine, runtime: testRuntime(realClock) });
  const [row] = await judge.unrestricted.get(subject.admin, [{ id: subject.id }]);
  const edges = row === undefined ? [] : await edgesOf(subject, row, "out");
  const sources = row === undefined ? [] : await edgesOf(subject, row, "in");
  const found = new Map([
    ...COLUMNS.flatMap((column) => pieces(column, column === "knows" ? edges : row?.values[column])),
    ...SOURCES.map((source): [string, string | undefined] => [
      source,
      sources.includes(`${subject.id}${source}`) ? "there" : undefined,
    ]),
  ]);
  const complaints = [
    ...chronicle.complaints({ alive: row !== undefined, found }),
    ...(row === undefined ? [] : await indexComplaints(judge, subject, { row, unanswered: chronicle.unanswered() })),
  ];
  await judge.close();
  return complaints;
}

/** Other ends. */
async function edgesOf({ tenant }: Subject, row: ObjectRow, direction: "in" | "out"): Promise<string[]> {
  const { objects } = await engine.tenant(tenant);
  const { items } = await objects.edges({ cid: row.class.cid, id: row.id.slice("race:".length) }, direction, {
    limit: 100,
  });
  return items.map(({ from, to }) => `race:${direction === "in" ? from.id : to.id}`);
}

/**
 * Every indexed value, number and word that the object has must find it; but words of a write that was never answered.
 */
async function indexComplaints(
  judge: ObjectService,
  { admin, path }: Subject,
  { row, unanswered }: { readonly row: ObjectRow; readonly unanswered: readonly string[] },
): Promise<string[]> {
  const open = new Set(unanswered.flatMap(tokens));
  const { a, b, s, m, one, two } = row.values;
  const conditions: Pushdown[] = [
    ...(typeof a === "number"
      ? [{ kind: "equals", column: "a", values: [a] } as const, { kind: "range", column: "a", from: a, to: a } as const]
      : []),
    ...(typeof b === "string" ? [{ kind: "equals", column: "b", values: [b] } as const] : []),
    ...(Array.isArray(s)
      ? (s as readonly Value[]).map((element) => ({ kind: "equals", column: "s", values: [element] }) as const)
      : []),
    ...Object.keys((m ?? {}) as Row).map((key) => ({ kind: "equals", column: "m", values: [key] }) as const),
    ...tokens(`${String(one ?? "")} ${String(two ?? "")}`)
      .filter((word) => !open.has(word))
      .map((word) => ({ kind: "words", words: [word] }) as const),
    { kind: "range", column: "vtime", from: row.vtimeMs, to: row.vtimeMs },
  ];
  const complaints: string[] = [];
  for (const condition of conditions) {
    let hit = false;
    for await (const page of judge.unrestricted.read(admin, { class: path, subtree: false, where: [condition] }))
      hit ||= page.some((each) => each.id === row.id);
    if (!hit) complaints.push(`not found by ${JSON.stringify(condition)}: ${JSON.stringify(row.values)}`);
  }
  return complaints;
}
