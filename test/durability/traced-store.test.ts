import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { seededRandom } from "../helpers/time/clock.ts";
import { prove } from "../helpers/runs/evidence.ts";
import { storeFolder } from "../helpers/runs/folders.ts";
import { TIMES } from "../helpers/time/times.ts";
import type { Acknowledged } from "../tools/crash/acknowledged.ts";
import { diskAfter, dump } from "../tools/crash/images.ts";
import { inspect } from "../tools/crash/inspect.ts";
import { canTrace, readTrace, startTraced, type Timed } from "../tools/crash/strace.ts";

const ANSWERS = 400;
/** Number of calls that create the first environment, and some more. */
const FIRST_MOMENTS = 60;
const IMAGES = 25 * TIMES;
const seed = Number(process.env.ODP_TEST_SEED ?? Date.now() % 1_000_000_000);
const WRITER = join(import.meta.dirname, "../tools/crash/child.ts");

let folder = "";
let store: string;
let events: readonly Timed[];

beforeAll(async () => {
  if (!canTrace()) return;
  console.log(`traced store: seed ${seed}`);
  folder = await realpath(await mkdtemp(join(tmpdir(), "odp-traced-")));
  store = join(folder, "store");
  const trace = join(folder, "trace");
  const command = [process.execPath, "--import", "tsx", WRITER, store, "1", String(seed), String(ANSWERS)];
  const output = join(folder, "said");
  await startTraced({ command, file: trace, output }).ended;
  events = await readTrace(trace, store, output);
}, 300_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

test.runIf(canTrace())(
  "the flush of a commit lies between its pages and the page that names them, and before the answer",
  () => {
    const data = join(store, "tenants/matrix/lmdb/data.mdb");
    let unflushed = 0;
    let commits = 0;
    for (const event of events) {
      if (event.kind === "sync" && event.path === data) unflushed = 0;
      if (event.kind !== "write" || event.path !== data) continue;
      if (!event.through) unflushed++;
      else expect(unflushed, `pages unflushed at commit ${++commits}`).toBe(0);
    }
    expect(commits).toBeGreaterThan(20);
  },
);

test.runIf(canTrace())(
  `${IMAGES} disks as a power cut may leave them: the store opens, has all it answered, and nothing torn`,
  { timeout: IMAGES * 10_000 },
  async () => {
    const random = seededRandom(seed);
    for (let image = 0; image < IMAGES; image++)
      await inspectAt(Math.floor(random.next() * (events.length + 1)), image);
    prove("embedded-power-cut", {
      part: "LMDB, contents and streams of a traced process",
      images: IMAGES,
      seed,
      calls: events.length,
    });
  },
);

test.runIf(canTrace())(
  "a store whose making was cut off at any of its first moments is made anew",
  { timeout: FIRST_MOMENTS * 10_000 },
  async () => {
    for (let moment = 0; moment < FIRST_MOMENTS; moment++) await inspectAt(moment, moment);
  },
);

async function inspectAt(moment: number, image: number): Promise<void> {
  const happened = events.slice(0, moment);
  const left = await storeFolder("odp-image-");
  await dump(await diskAfter(happened, store, seed + image), store, left);
  expect({ seed, image, moment, findings: await inspect(left, answered(happened)) }).toEqual({
    seed,
    image,
    moment,
    findings: [],
  });
  await rm(left, { recursive: true });
}

function answered(happened: readonly Timed[]): Acknowledged[] {
  const said = happened.map((event) => (event.kind === "said" ? event.text : "")).join("");
  return said
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Acknowledged);
}
