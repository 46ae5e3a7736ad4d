import { afterAll, beforeAll, expect, test } from "vitest";
import { again, all, bytes, seedOfRun, text, uniqueCid } from "../../controller/store/contract/harness.ts";
import type { EntityChange, EntityKey, ObjectStore } from "../../controller/store/objects.ts";
import { seededRandom } from "../helpers/time/clock.ts";
import { clusterRuntime, openTestClusterEngine, type TestClusterEngine } from "../helpers/cluster/cluster.ts";
import { prove } from "../helpers/runs/evidence.ts";
import { mendRing, openRing, type Ring } from "../helpers/cluster/ring.ts";

/** Factor for the numbers of the short form; `npm run soak` sets it. */
const AGE = Number(process.env.ODP_TEST_AGE ?? 1);
const WRITERS = 4;
const OBJECTS_PER_WRITER = 12;
const ROUNDS_PER_PHASE = 3 * AGE;
const STATES = ["open", "closed", "lost"] as const;
const TARGETS = 5;
const WORDS = 4;
const LIFE_ROUNDS = 7;
/** Lifetime of a version after a later one. `long`: beyond the end of the test. `short`: expires during the test. */
const VERSION_LIFE_MS = { long: 6 * 3_600_000, short: 5_000 };
const VERSIONS_END_WAIT_MS = 120_000;
const DEADLINE_MS = 1_200_000 * AGE;
const CID = uniqueCid();

const status = (state: string): string => `a1=${CID}-${state}`;
const word = (id: string, round: number, at: number): string => `w-${CID}-${id}-${round}-${at}`;
const element = (round: number): string => `3/e${round}`;
const target = (at: number): EntityKey => ({ cid: CID, id: `target-${at}` });

/** Versions of every second object of a writer are kept. */
function lifeOf(id: string): "long" | "short" {
  return /-\d*[13579]$/.test(id) ? "short" : "long";
}

/** Every third object of a writer is changed ten minutes late, also when its agent repeats it. Its history is swept. */
const LATE_US = 600_000_000;

function delayOf(id: string): number {
  return Number(/\d+$/.exec(id)) % 3 === 0 ? LATE_US : 0;
}

/** Randomness for which every chance succeeds: each object that leaves a set is swept. */
const always = { ...clusterRuntime.random, next: () => 0 };

/** The last state that was written for an object. */
interface Known {
  readonly round: number;
  readonly timeUs: number;
  readonly alive: boolean;
  readonly state: string;
  readonly terms: readonly string[];
  readonly edges: readonly number[];
}

let ring: Ring;
let controllers: TestClusterEngine[];
const known = new Map<string, Known>();
const rounds = new Array<number>(WRITERS).fill(0);

beforeAll(async () => {
  ring = await openRing();
  const { settings } = ring;
  const first = await openTestClusterEngine({ tenants: ["matrix"], settings, random: always });
  const second = await openTestClusterEngine({ prefix: first.prefix, tenants: [], settings, random: always });
  controllers = [first, second];
});
afterAll(async () => {
  if (ring !== undefined) await mendRing(ring);
  for (const engine of [...(controllers ?? [])].reverse()) await engine[Symbol.asyncDispose]();
});

async function objectsOf(controller: number): Promise<ObjectStore> {
  return (await controllers[controller % controllers.length]!.tenant("matrix")).objects;
}

/** The next change of an object: a status, new words, a moved edge; at the end of a life its removal. */
function next(id: string, random: { next(): number }): { readonly change: EntityChange; readonly becomes: Known } {
  const before = known.get(id);
  const round = (before?.round ?? 0) + 1;
  const timeUs = Math.max(Date.now() * 1_000 - delayOf(id), (before?.timeUs ?? 0) + 1);
  const key = { cid: CID, id };
  const terms = before?.terms ?? [];
  const version = { version: bytes(String(round)), endVersionsAtMs: Date.now() + VERSION_LIFE_MS[lifeOf(id)] };
  if (before?.alive && round % LIFE_ROUNDS === 0)
    return {
      change: { key, timeUs, ...version, death: true, dropTerms: [...terms, `c${CID}`] },
      becomes: { round, timeUs, alive: false, state: "", terms: [], edges: [] },
    };
  const state = STATES[Math.floor(random.next() * STATES.length)]!;
  const to = Math.floor(random.next() * TARGETS);
  const wanted = [status(state), ...Array.from({ length: WORDS }, (_, at) => word(id, round, at))];
  const edges = [to];
  return {
    change: {
      key,
      timeUs,
      ...version,
      ...(before?.alive ? {} : { birth: true }),
      cells: new Map([
        ["1", bytes(state)],
        ["2", bytes(String(round))],
        [element(round), bytes("")],
        ...(before?.alive ? [[element(before.round), undefined] as const] : []),
      ]),
      addTerms: [...wanted, `c${CID}`],
      dropTerms: terms.filter((term) => !wanted.includes(term)),
      addEdges: edges.map((at) => ({ type: "to", to: target(at) })),
      dropEdges: (before?.edges ?? []).filter((at) => at !== to).map((at) => ({ type: "to", to: target(at) })),
    },
    becomes: { round, timeUs, alive: true, state, terms: wanted, edges },
  };
}

async function churn(writer: number, until: () => boolean): Promise<void> {
  const random = seededRandom(seed + writer);
  while (!until()) {
    const objects = await objectsOf(writer);
    const steps = Array.from({ length: OBJECTS_PER_WRITER }, (_, at) => next(`o${writer}-${at}`, random));
    await again(() => objects.change(steps.map(({ change }) => change)));
    for (const { change, becomes } of steps) known.set(change.key.id, becomes);
    rounds[writer]! += 1;
  }
}

/** Another controller completes writes that a stopped controller may have left incomplete. */
async function takenOver(): Promise<void> {
  const steps = Array.from({ length: OBJECTS_PER_WRITER }, (_, at) => next(`left-${at}`, seededRandom(seed + at)));
  const changes = steps.map(({ change }) => change);
  const leaving = await openTestClusterEngine({ prefix: controllers[0]!.prefix, tenants: [], settings: ring.settings });
  const given = (await leaving.tenant("matrix")).objects.change(changes).catch(() => undefined);
  await leaving.close();
  await given;
  await again(async () => (await objectsOf(0)).change(changes));
  for (const { change, becomes } of steps) known.set(change.key.id, becomes);
}

/** The index, the edges from both ends and a full scan must agree, and match the last acknowledged state. */
async function agree(): Promise<void> {
  const objects = await objectsOf(1);
  const scanned = (await all(500, (page) => objects.scan(page))).filter(({ key }) => key.cid === CID);
  const own = scanned.filter(({ key }) => !key.id.startsWith("target-"));
  const stateOf = new Map(own.map(({ key, cells }) => [key.id, text(cells.get("1")!.value)]));
  const living = [...known].filter(([, { alive }]) => alive);
  const elements = own.map(({ key, cells }) => [key.id, cells.keys.filter((name) => name.startsWith("3/"))] as const);
  expect(new Map(elements)).toEqual(new Map(living.map(([id, { round }]) => [id, [element(round)]])));
  expect(new Map([...stateOf].sort())).toEqual(new Map(living.map(([id, { state }]) => [id, state] as const).sort()));
  const found = async (term: string): Promise<readonly string[]> =>
    (await all(50, (page) => objects.find({ terms: [term] }, page))).map(({ key }) => key.id).sort();
  expect((await found(`c${CID}`)).filter((id) => !id.startsWith("target-"))).toEqual([...stateOf.keys()].sort());
  for (const state of STATES) {
    const bearers = [...stateOf].filter(([, own]) => own === state).map(([id]) => id);
    const answered = (await found(status(state))).filter((id) => stateOf.get(id) === state);
    expect(answered, state).toEqual(bearers.sort());
  }
  for (const [id, { terms }] of living) expect(await found(terms.at(-1)!), id).toEqual([id]);
  const ends = new Set<string>();
  for (const [id] of living)
    for (const { to } of await all(50, (page) => objects.edges({ cid: CID, id }, "out", page)))
      ends.add(`${id} ${to.id}`);
  const wanted = living.flatMap(([id, { edges }]) => edges.map((at) => `${id} ${target(at).id}`));
  expect([...ends].sort()).toEqual(wanted.sort());
  const seen: string[] = [];
  for (let at = 0; at < TARGETS; at += 1)
    for (const { from, to } of await all(50, (page) => objects.edges(target(at), "in", page)))
      seen.push(`${from.id} ${to.id}`);
  expect(seen.sort()).toEqual(wanted);
}

/** Every version that has not expired must exist despite losses while it was written; expired ones must not. */
async function versionsAgree(): Promise<void> {
  const objects = await objectsOf(1);
  const versionsOf = async (id: string): Promise<readonly string[]> =>
    (await all(200, (page) => objects.history({ cid: CID, id }, {}, page))).map(({ value }) => text(value));
  const [long, short] = (["long", "short"] as const).map((life) =>
    [...known.keys()].filter((id) => lifeOf(id) === life),
  );
  for (const id of long ?? []) {
    const newest = known.get(id)?.round ?? 0;
    expect(await versionsOf(id), id).toEqual(Array.from({ length: newest }, (_, at) => String(newest - at)));
  }
  for (const id of short ?? [])
    await expect
      .poll(() => versionsOf(id), { message: id, timeout: VERSIONS_END_WAIT_MS })
      .toEqual([String(known.get(id)?.round)]);
}

const seed = seedOfRun("churn");

test(
  "indexes, edges, versions and a full scan say the same after objects came, changed and went while nodes were lost and a controller was stopped",
  async () => {
    const objects = await objectsOf(0);
    await again(() =>
      objects.change(
        Array.from({ length: TARGETS }, (_, at) => ({
          key: target(at),
          timeUs: Date.now() * 1_000,
          birth: true as const,
          addTerms: [`c${CID}`],
        })),
      ),
    );
    let ended = false;
    const work = Promise.all(Array.from({ length: WRITERS }, (_, writer) => churn(writer, () => ended)));
    const failed = work.then(
      () => undefined,
      (error: unknown) => error,
    );
    /** Waits until every writer has done this many further rounds. */
    const goOn = async (): Promise<void> => {
      const before = [...rounds];
      await expect
        .poll(() => Math.min(...rounds.map((count, writer) => count - before[writer]!)), { timeout: 240_000 * AGE })
        .toBeGreaterThanOrEqual(ROUNDS_PER_PHASE);
    };
    try {
      await goOn();
      await ring.kill("cassandra-2");
      await goOn();
      await takenOver();
      await mendRing(ring);
      await ring.pause("cassandra-3");
      await goOn();
      await mendRing(ring);
      await takenOver();
      await goOn();
    } finally {
      ended = true;
    }
    expect(await failed).toBeUndefined();
    await agree();
    await versionsAgree();
    // Requests to every node, such as those for a class or a full scan, do not need all nodes.
    await ring.kill("cassandra-1");
    await agree();
    prove("ring-churn", { seed, objects: known.size, rounds: rounds.reduce((sum, count) => sum + count, 0) });
  },
  DEADLINE_MS,
);
