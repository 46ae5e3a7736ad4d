import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { bundle } from "../helpers/programs/bundle.ts";
import { Listening } from "./fuzz/listening.ts";
import { NEIGHBOUR_MARK } from "./fuzz/names.ts";
import { expectMarks, forbidden, openRound, type Round } from "./fuzz/round.ts";
import { fuzz } from "./fuzz/run.ts";
import { SUBJECTS } from "./fuzz/ways.ts";

/**
 * Random calls of every endpoint and in every way to data, by users with few rights and by the administrator of another
 * tenant. Data that they may not see contains a mark that is in no call: no answer and no frame of a socket to any call
 * may contain it. A call about hidden data must be answered like the same call about data that does not exist. Data
 * that none of them may change must be unchanged at the end.
 */

/** Number of calls in every run; `npm run soak -- --calls N` makes more. */
const CALLS = Number(process.env["ODP_FUZZ_CALLS"] ?? 5_000);
/** A new world starts after this many calls: the data they leave, such as audit entries, makes later calls slower. */
const CALLS_PER_WORLD = 10_000;
const FRAME_MAX_MS = 10_000;
/** Number of leaks in the report of a failure. */
const LEAKS_MAX = 5;

const scripts = pathToFileURL(await bundle("controller/script-worker.ts", `scripts/fuzz-${process.pid}.mjs`));
const FIRST_SEED = Number(process.env["ODP_TEST_SEED"] ?? 1);
const seeds = Array.from({ length: Math.ceil(CALLS / CALLS_PER_WORLD) }, (_, at) => FIRST_SEED + at);

test.each(seeds)("no answer has what its caller may not see (seed %i)", async (seed) => {
  await using round = await openRound(scripts);
  const before = await forbidden(round.world);
  const listening = new Listening();
  for (const by of Object.values(round.people))
    for (const socket of round.to.sockets.filter(({ path }) => path === "/websocket/:subject"))
      for (const subject of SUBJECTS) listening.socket(by, { socket, input: { subject } });
  const calls = Math.min(CALLS, CALLS_PER_WORLD);
  const leaks = await fuzz(round, { people: round.people, seed, calls, listening, leaksMax: LEAKS_MAX });
  if (leaks.length > 0) expect.fail(leaks.join("\n\n"));
  await expectFrames(round, listening);
  await expectMarks(round.world);
  expect(await forbidden(round.world)).toEqual(before);
});

/** Listeners must receive at least some frames, and none with hidden data. */
async function expectFrames({ world: { assembly }, people, to }: Round, listening: Listening): Promise<void> {
  const frame = { source: "fuzz", subject: "vault", title: "t", reply: "", msg: "open", about: undefined };
  const socket = to.sockets.find(({ path }) => path === "/websocket/:subject");
  if (socket === undefined) throw new Error("There is no socket of notifications.");
  for (const by of [people.reader, people.neighbour]) listening.socket(by, { socket, input: { subject: "vault" } });
  const before = listening.heard;
  assembly.notifications.publish("matrix", { ...frame, keyspace: "/matrix" });
  assembly.notifications.publish("second", { ...frame, keyspace: "/second", msg: NEIGHBOUR_MARK });
  await expect.poll(() => listening.heard - before, { timeout: FRAME_MAX_MS }).toBeGreaterThanOrEqual(2);
  listening.close();
  expect(listening.leaks).toEqual([]);
}
