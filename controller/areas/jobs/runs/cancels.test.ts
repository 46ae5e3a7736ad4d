import { afterAll, beforeAll, expect, test } from "vitest";
import { heldWork, openJobRuns, type SentCommand } from "../../../../test/helpers/jobs/job-runs.ts";
import { Mortality, mortalStores } from "../../../../test/helpers/engines/mortal.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { CommandOutcome } from "../../hosts/index.ts";
import type { DataRule, Principal } from "../../permissions/index.ts";

const ADMIN = testPrincipal();
const PATIENCE = { timeout: 30_000 };

let scene: Awaited<ReturnType<typeof openJobRuns>>;
beforeAll(async () => {
  scene = await openJobRuns();
});
afterAll(() => scene[Symbol.asyncDispose]());

/** Hosts whose commands run until they are cancelled or a test ends them. */
function patient() {
  const ends = new Map<string, (outcome: Partial<CommandOutcome>) => void>();
  const sent: SentCommand[] = [];
  return {
    sent,
    end: (host: string) => ends.get(host)?.({ state: "ok", code: 0 }),
    dispatch: (command: SentCommand) => {
      sent.push(command);
      return new Promise<Partial<CommandOutcome>>((resolve) => {
        const cancelled = () => resolve({ state: "cancelled", message: "ended by SIGTERM", signal: "SIGTERM" });
        ends.set(command.host, resolve);
        command.signal?.addEventListener("abort", cancelled, { once: true });
        if (command.signal?.aborted) cancelled();
      });
    },
  };
}

async function start(job: object = {}, hosts = patient()) {
  const name = `job-${crypto.randomUUID()}`;
  await scene.jobs.save(ADMIN, { name, exec: ["x"], host: ["h1", "h2"], ...job });
  const a = scene.controller("a", { ...hosts, sees: ["b"] });
  const b = scene.controller("b", { ...hosts, sees: ["a"] });
  const execution = await a.execute(ADMIN, name, {});
  return { a, b, hosts, name, ...execution };
}

const begun = (hosts: ReturnType<typeof patient>, count: number) =>
  expect.poll(() => hosts.sent.length, PATIENCE).toBe(count);

test("any controller cancels a run on all its hosts, as often as it is asked; who and how is told", async () => {
  const { b, hosts, runId, finished } = await start();
  await begun(hosts, 2);
  expect([await b.cancelling.cancel(ADMIN, runId), await b.cancelling.cancel(ADMIN, runId)]).toEqual([true, true]);
  const end = { state: "cancelled", signal: "SIGTERM", message: "ended by SIGTERM (cancelled by administrator)" };
  expect(await finished).toMatchObject([end, end]);
  expect(await scene.rowsOf(runId)).toMatchObject([
    { status: "cancelled", signal: "SIGTERM" },
    { status: "cancelled", signal: "SIGTERM", message: end.message },
  ]);
  expect(await b.cancelling.cancel(ADMIN, runId)).toBe(false);
  await b.maintain("matrix");
  expect((await (await scene.engine.tenant("matrix")).kv.list("jobs/cancel/")).entries).toEqual([]);
});

test("one host of a run is cancelled, the others go on", async () => {
  const { b, hosts, runId, finished } = await start();
  await begun(hosts, 2);
  expect(await b.cancelling.cancel(ADMIN, runId, "h2")).toBe(true);
  await expect
    .poll(async () => (await scene.rowsOf(runId)).map(({ status }) => status), PATIENCE)
    .toEqual(["running", "cancelled"]);
  expect(await b.cancelling.cancel(ADMIN, runId, "h2")).toBe(false);
  await expect(b.cancelling.cancel(ADMIN, runId, "h3")).rejects.toMatchObject({ code: "not_found" });
  hosts.end("h1");
  expect(await finished).toMatchObject([{ state: "ok" }, { state: "cancelled" }]);
});

test("what waits in a queue is taken out of it, and what comes later in a sequence is not begun", async () => {
  const first = await start({ queue: "cancels", groupmode: "sequence" });
  await begun(first.hosts, 1);
  const second = await start({ queue: "cancels" });
  expect(await second.b.cancelling.cancel(ADMIN, second.runId)).toBe(true);
  expect(await second.finished).toMatchObject([{ host: "h1", state: "cancelled" }, { host: "h2" }]);
  expect(await scene.rowsOf(second.runId)).toMatchObject([{ host: "-", status: "cancelled" }]);
  expect(await first.b.cancelling.cancel(ADMIN, first.runId)).toBe(true);
  expect(await first.finished).toMatchObject([{ state: "cancelled" }, { state: "cancelled" }]);
  expect([first.hosts.sent[1]?.signal?.aborted, second.hosts.sent]).toEqual([true, []]);
  expect([await scene.openKeys(first.runId), await scene.openKeys(second.runId)]).toEqual([[], []]);
});

test("a host that failed is not tried again after the cancel", async () => {
  let tries = 0;
  const asleep = heldWork<Partial<CommandOutcome>>({ state: "failed" });
  const hosts = { ...patient(), dispatch: () => (tries++, asleep.wait()) };
  const { b, runId, finished } = await start({ host: ["h1"], retry: 3, retrydelay: 3_600 }, hosts);
  await asleep.asleep;
  asleep.release();
  await expect.poll(async () => (await openTries(runId)) > 0, PATIENCE).toBe(true);
  expect(await b.cancelling.cancel(ADMIN, runId)).toBe(true);
  expect(await finished).toMatchObject([
    { state: "cancelled", message: expect.stringContaining("before it was tried") as string },
  ]);
  expect(tries).toBe(1);
});

async function openTries(runId: string): Promise<number> {
  const { kv } = await scene.engine.tenant("matrix");
  const [entry] = (await kv.list(`jobs/open/${runId}/`)).entries;
  return Buffer.from(entry?.value ?? []).includes("failures") ? 1 : 0;
}

test("a cancel holds for the controller that takes the run over: its host is told, though it was sent the command before", async () => {
  const slept = heldWork<Partial<CommandOutcome>>({ state: "timeout" });
  const a = scene.controller("a", { dispatch: slept.wait });
  const caller = new AbortController();
  const param = JSON.stringify({ cmd: "x", "HOST!": "h1" });
  const { runId, finished } = await a.execute(ADMIN, "remote_command@system/common", { param, signal: caller.signal });
  await slept.asleep;
  // Its caller disconnects, and its controller stops.
  caller.abort();
  const { kv } = await scene.engine.tenant("matrix");
  await expect.poll(async () => (await kv.list(`jobs/cancel/${runId}`)).entries.length, PATIENCE).toBe(1);
  const hosts = patient();
  await scene.controller("b", hosts).maintain("matrix");
  await expect.poll(() => scene.openKeys(runId), PATIENCE).toEqual([]);
  expect(hosts.sent).toMatchObject([{ mayRun: true, commandId: `job/${runId}/h1/0` }]);
  slept.release();
  expect(await finished).toMatchObject([{ state: "cancelled" }]);
});

test.each([true, false])(
  "a controller killed at any write of a cancelled run (made: %s) leaves one end",
  async (isWritten) => {
    await scene.jobs.save(ADMIN, { name: `killed-${String(isWritten)}`, exec: ["x"], host: ["h1"] });
    let lives = 0;
    for (let writes = 1; lives === 0; writes++) {
      const mortality = new Mortality(writes, isWritten);
      const { keys } = mortalStores(scene.engine, () => mortality);
      const hosts = patient();
      const a = scene.controller("a", { ...hosts, stores: keys });
      const b = scene.controller("b", hosts);
      const execution = await a.execute(ADMIN, `killed-${String(isWritten)}`, {});
      const { runId } = execution;
      const over = execution.finished.then(() => lives++);
      await b.cancelling.cancel(ADMIN, runId);
      await Promise.race([over, mortality.died]);
      const [row] = await scene.rowsOf(runId);
      // A run with a decided end cannot be cancelled, even if its controller did not close it.
      if (row?.status === "cancelled") expect(await b.cancelling.cancel(ADMIN, runId, "h1")).toBe(false);
      for (let life = 0; life < 2; life++) await scene.controller(`c${life}`, hosts).maintain("matrix");
      await expect.poll(() => scene.openKeys(runId), PATIENCE).toEqual([]);
      expect(await scene.rowsOf(runId)).toMatchObject([{ host: "h1", status: "cancelled" }]);
    }
    expect(lives).toBe(1);
  },
);

test("of a cancel and an end at the same time one stands, everywhere", async () => {
  for (let round = 0; round < 20; round++) {
    const { b, hosts, runId, finished } = await start({ host: ["h1"] });
    await begun(hosts, 1);
    const asked = b.cancelling.cancel(ADMIN, runId);
    if (round % 2 === 0) await asked;
    hosts.end("h1");
    await asked;
    const [end] = await finished;
    expect(["ok", "cancelled"]).toContain(end?.state);
    expect(await scene.rowsOf(runId)).toMatchObject([{ status: end?.state }]);
  }
});

test("nobody cancels what he may not run, does not see, or sees in part; the one who asked for it always may", async () => {
  const { a, b, hosts, runId, finished } = await start();
  await begun(hosts, 2);
  const reads = ["jobs:run", "jobs:read", "objects:read"];
  const other = (data: readonly DataRule[], grants: readonly string[] = reads): Principal => {
    return { ...ADMIN, user: "other", grants, data };
  };
  const all: DataRule = { class: "/", access: "read" };
  const part: DataRule = { class: "/matrix/jobs/jobrun", access: "read", where: "host = 'h1'" };
  for (const [principal, code] of [
    [testPrincipal("viewer"), "denied"],
    [testPrincipal("administrator", "second"), "not_found"],
    [other([all], ["jobs:run"]), "denied"],
    [other([]), "not_found"],
    [other([all, part]), "not_found"],
  ] as const)
    await expect(b.cancelling.cancel(principal, runId), code).rejects.toMatchObject({ code });
  expect(hosts.sent.some(({ signal }) => signal?.aborted)).toBe(false);
  for (const none of ["", "no-such-run", "../open", "01M83MW39VF2J01S46HMSW4V2M"])
    await expect(a.cancelling.cancel(ADMIN, none)).rejects.toMatchObject({ code: "not_found" });
  expect(await b.cancelling.cancel(other([all, part]), runId, "h1")).toBe(true);
  const caller = { ...other([], ["jobs:run"]), user: ADMIN.user };
  expect(await b.cancelling.cancel(caller, runId)).toBe(true);
  expect(await finished).toMatchObject([{ state: "cancelled" }, { state: "cancelled" }]);
});
