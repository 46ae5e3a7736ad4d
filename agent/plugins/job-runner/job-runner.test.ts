import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Command, Exec as ExecBody } from "../../../proto/gen/agent/v1/agent.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { createExec, type Exec } from "../../commands/exec.ts";
import { hostUsers } from "../../commands/host-user.ts";
import type { Host } from "../../policies/host.ts";
import type { Outcome } from "../../policies/plugin.ts";
import { jobRunners } from "./job-runner.ts";

let folder: string;
let exec: Exec;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-job-"));
  exec = createExec({ clock: realClock, folder: join(folder, "running"), environment: { PATH: process.env["PATH"] } });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function runAs(user: string, members: Partial<ExecBody>): Promise<Outcome & { readonly output: string }> {
  const host: Partial<Host> = {
    exec,
    clock: realClock,
    users: hostUsers(exec),
    depots: { folder: () => folder, ensure: () => Promise.reject(new Error("no depots here")) },
  };
  const body = { $case: "execAs" as const, value: { exec: ExecBody.fromPartial(members), user } };
  const task = {
    command: Command.fromPartial({ id: "c", body }),
    remainingMs: 20_000,
    signal: new AbortController().signal,
  };
  const runner = jobRunners.find(({ kind }) => kind === "execAs");
  const outcome = (await runner?.run(task, host as Host)) as Outcome;
  const output = (outcome.last ?? []).flatMap(({ body }) => (body.$case === "output" ? [body.value.data] : []));
  return { ...outcome, output: Buffer.concat(output).toString().trim() };
}

test("a command for a user who is not on the host is not run", async () => {
  await expect(runAs("odp-is-not-there", { line: "echo ran" })).rejects.toMatchObject({
    message: "This host has no user odp-is-not-there.",
  });
});

// Only root can become another user.
describe.runIf(process.getuid?.() === 0)("of root, a command for another user", () => {
  test("runs as that user, outside of the folders of the agent", async () => {
    expect(await runAs("nobody", { line: "id -un; pwd", stdin: Buffer.from("x") })).toMatchObject({
      state: "ok",
      output: "nobody\n/",
    });
  });

  test("is not run in a depot that the user may not read", async () => {
    await expect(runAs("nobody", { line: "echo ran", depot: "web" })).rejects.toMatchObject({ code: "denied" });
  });
});
