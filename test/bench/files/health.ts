import { buffer } from "node:stream/consumers";
import { wait } from "../../../common/time.ts";
import type { Installation } from "../../e2e/installation.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { quantile, type Figure } from "../driver/frame.ts";
import { FileCalls, odpWays } from "./file-calls.ts";
import { healthTimes } from "./peer.ts";
import { largeContent, SMALL_FOLDER } from "./transfers.ts";
import { documents } from "./words.ts";

const HEALTH_GOAL_MS = 50;
const ALONE_MS = 2_000;
const DOCUMENTS = 2;
const DOCUMENT_CHARACTERS = 300_000;

/** p99 of /healthz beside long work with files. */
export async function healthFigures(odp: Installation, tell: (figure: Figure) => void): Promise<void> {
  const session = await odp.session();
  const calls = new FileCalls({ port: odp.port, atOnce: 1, ways: odpWays("/bench", session) });
  const p99 = async (beside: string, work: () => Promise<unknown>): Promise<void> =>
    tell({
      name: `p99 of /healthz ${beside}`,
      unit: "ms",
      ours: quantile(await healthTimes(odp.port, work), 0.99),
      against: HEALTH_GOAL_MS,
      againstName: "the goal",
      kind: "most",
      goal: 1,
    });
  await p99("alone", () => wait(realClock, ALONE_MS));
  await p99("beside an upload", () => calls.write("large.bin", largeContent()));
  await p99("beside an export as a zip archive", async () => {
    const answer = await calls.send("POST", `/fs/export?srcpath=${SMALL_FOLDER}&sessionid=${session}`);
    await buffer(answer);
  });
  const names: string[] = [];
  for (let n = 0; n < DOCUMENTS; n += 1) {
    for (const [format, bytes] of await documents(DOCUMENT_CHARACTERS)) {
      const name = `documents-${n}.${format}`;
      await calls.write(name, { size: bytes.length, pieces: () => [bytes] });
      names.push(name);
    }
  }
  await p99("beside the extraction of documents", async () => {
    for (const name of names) await odp.ok("POST", `/fs/index/bench/${name}`);
  });
  calls.close();
}
