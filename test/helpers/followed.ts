import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LogPolicySpec } from "../../common/api/policies.ts";
import { LogAgent } from "./log-agent.ts";
import { eventually } from "./programs.ts";

const DEADLINE_MS = 30_000;

/** The records that a log policy makes of a file with this text, by the code of the agent. */
export async function followedRecords(
  text: string,
  options: Pick<LogPolicySpec, "delimiter" | "delimitereol">,
): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), "odp-followed-"));
  const dir = join(folder, "logs");
  await mkdir(dir);
  await writeFile(join(dir, "app.log"), text);
  const spec = { name: "p", kind: "log", rule: "/matrix/rules/p", dir, match: "^app\\.log$", ...options } as const;
  const agent = await LogAgent.start(folder, join(folder, "outbox"), { spec, log: () => undefined });
  try {
    // A line end behind the end of a record is nothing.
    const end = Buffer.byteLength(text.trimEnd());
    const isRead = () => agent.lives().some((life) => offsetOf(life) >= end) || undefined;
    await eventually("the file is read to its end", DEADLINE_MS, isRead);
    return await agent.lines();
  } finally {
    await agent.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function offsetOf(life: string): number {
  const { offset = 0 } = JSON.parse(life) as { readonly offset?: number };
  return offset;
}
