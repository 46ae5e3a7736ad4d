import { appendFile, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, it } from "vitest";
import { LogAgent } from "../../../test/helpers/hosts/log-agent.ts";

const DEADLINE_MS = 20_000;

let folder: string;
let logs: string;
let agent: LogAgent;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-folder-"));
  logs = join(folder, "logs");
  const spec = { name: "p", kind: "log" as const, rule: "/r", dir: logs, match: "." };
  agent = await LogAgent.start(folder, join(folder, "outbox"), { spec, log: () => undefined });
});

afterEach(async () => {
  await agent.stop();
  await rm(folder, { recursive: true, force: true });
});

it("a policy whose folder is not there says so, and runs as soon as it is", async () => {
  await becomes(`failed: The folder ${logs} is not there.`);
  await mkdir(logs);
  await appendFile(join(logs, "app.log"), "line\n");
  await becomes("running");
  await until("the line is read", async () => (await agent.lines()).includes("line"));
});

it("a folder that goes away is told, and one that comes back", async () => {
  await mkdir(logs);
  await becomes("running");
  await rename(logs, join(folder, "aside"));
  await becomes(`failed: The folder ${logs} is not there.`);
  await rename(join(folder, "aside"), logs);
  await becomes("running");
});

it("a file in the place of the folder is told", async () => {
  await appendFile(logs, "");
  await until("it fails", () =>
    Promise.resolve(agent.state?.startsWith(`failed: The folder ${logs} cannot be read`) ?? false),
  );
});

function becomes(state: string): Promise<void> {
  return until(state, () => Promise.resolve(agent.state === state));
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + DEADLINE_MS; !(await holds()); await pause(5)) {
    if (performance.now() > end) throw new Error(`Not in time: ${what}; it is ${agent.state}.`);
  }
}
