import { appendFile, copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LogAgent } from "../../../test/helpers/hosts/log-agent.ts";
import { eventually } from "../../../test/helpers/programs/programs.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";

const DEADLINE_MS = 30_000;

test("a rotation that begins is looked at without waiting for more changes: what its writer writes next hides how far it had come", async () => {
  const folder = await mkdtemp(join(tmpdir(), "odp-runner-"));
  const dir = join(folder, "logs");
  const log = join(dir, "app.log");
  await mkdir(dir);
  await writeFile(log, "one\n");
  const spec = { kind: "log", name: "p", rule: "/matrix/rules/a", dir, match: "^app\\.log$" } as const;
  // No time passes: changes that gather are never over.
  const agent = await LogAgent.start(folder, join(folder, "outbox"), {
    spec,
    log: () => undefined,
    clock: new TestClock(),
  });
  try {
    await eventually("the file is read", DEADLINE_MS, async () => (await agent.lines()).length || undefined);
    await appendFile(log, "two\n");
    await copyFile(log, `${log}.1`);
    await eventually("it is read again", DEADLINE_MS, async () => (await agent.lines()).length > 1 || undefined);
    expect(await agent.lines()).toEqual(["one", "two"]);
  } finally {
    await agent.stop();
    await rm(folder, { recursive: true });
  }
});
