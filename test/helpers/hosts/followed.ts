import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LogPolicySpec } from "../../../common/api/policies.ts";
import { LogAgent } from "./log-agent.ts";
import { eventually } from "../programs/programs.ts";

const DEADLINE_MS = 30_000;

/** A record with the heading line that the agent sends with it. */
export interface FollowedRecord {
  readonly text: string;
  readonly heading: string | undefined;
}

/**
 * Returns the records that the agent's code reads from a file under a log policy, with a rotation between the texts.
 */
export async function followedRecords(
  texts: readonly string[],
  options: Pick<LogPolicySpec, "delimiter" | "delimitereol" | "attrs">,
): Promise<readonly FollowedRecord[]> {
  const folder = await mkdtemp(join(tmpdir(), "odp-followed-"));
  const dir = join(folder, "logs");
  const path = join(dir, "app.log");
  await mkdir(dir);
  await writeFile(path, texts[0] ?? "");
  const spec = { name: "p", kind: "log", rule: "/matrix/rules/p", dir, match: "^app\\.log$", ...options } as const;
  const agent = await LogAgent.start(folder, join(folder, "outbox"), { spec, log: () => undefined });
  try {
    let serial = -1;
    for (const [at, text] of texts.entries()) {
      if (at > 0) {
        await rename(path, `${path}.${at}`);
        await writeFile(path, text);
      }
      // A line end after the end of a record is ignored.
      const end = Buffer.byteLength(text.trimEnd());
      serial = await eventually("the file is read to its end", DEADLINE_MS, () => readLife(agent, { end, serial }));
    }
    const entries = await agent.records();
    return entries.flatMap(({ records, heading }) => records.map((record) => ({ text: record.toString(), heading })));
  } finally {
    await agent.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Number of the life that follows the one of `serial` and was read to `end`. */
function readLife(agent: LogAgent, behind: { readonly end: number; readonly serial: number }): number | undefined {
  const lives = agent.lives().map((life) => JSON.parse(life) as { readonly serial: number; readonly offset: number });
  return lives.find(({ serial, offset }) => serial > behind.serial && offset >= behind.end)?.serial;
}
