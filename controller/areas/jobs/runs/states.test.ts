import { afterAll, beforeAll, expect, test } from "vitest";
import {
  heldWork,
  openJobRuns,
  type SentCommand,
  type TestController,
} from "../../../../test/helpers/jobs/job-runs.ts";
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

/** Hosts whose commands run until a test ends them. */
function hostsHeld() {
  const ends = new Map<string, (outcome: Partial<CommandOutcome>) => void>();
  return {
    begun: (host: string) => expect.poll(() => ends.has(host), PATIENCE).toBe(true),
    end: (host: string, outcome: Partial<CommandOutcome> = { code: 0 }) => ends.get(host)?.(outcome),
    dispatch: ({ host }: SentCommand) =>
      new Promise<Partial<CommandOutcome>>((resolve) => void ends.set(host, resolve)),
  };
}

/** Starts a job on the controller `a`. `stateOf` asks another controller. */
async function start(job: object, options: TestController = {}) {
  const name = `job-${crypto.randomUUID()}`;
  await scene.jobs.save(ADMIN, { name, exec: ["x"], host: ["h1", "h2"], ...job });
  const a = scene.controller("a", { ...options, sees: ["b"] });
  const b = scene.controller("b", { ...options, sees: ["a"] });
  const { runId, finished } = await a.execute(ADMIN, name, {});
  const stateOf = (principal = ADMIN) => b.states.of(principal, runId);
  return { a, b, runId, finished, stateOf };
}

const hostsOf = async (run: Awaited<ReturnType<typeof start>>) => (await run.stateOf()).hosts;

test("every controller tells how many hosts run and ended, and when all have", async () => {
  const hosts = hostsHeld();
  const run = await start({}, hosts);
  await hosts.begun("h1");
  await hosts.begun("h2");
  const running = await run.stateOf();
  expect(running).toMatchObject({ runid: run.runId, state: "running", hosts: { running: 2 } });
  expect(running.job).toMatch(/^job-/);
  hosts.end("h2", { state: "failed", code: 3 });
  await expect.poll(() => hostsOf(run), PATIENCE).toEqual({ running: 1, failed: 1 });
  expect(await run.stateOf()).not.toHaveProperty("ended");
  hosts.end("h1");
  await run.finished;
  const { started = 0, ended = 0, ...rest } = await run.stateOf();
  expect(rest).toEqual({
    runid: run.runId,
    job: running.job,
    state: "ended",
    hosts: { ok: 1, failed: 1 },
    scripts: {},
  });
  expect([started, ended > 0]).toEqual([running.started, true]);
});

test("a run waits while others of its queue run, and has ended once it leaves the queue", async () => {
  const hosts = hostsHeld();
  const first = await start({ queue: "states", host: ["h9"] }, hosts);
  await hosts.begun("h9");
  const second = await start({ queue: "states" }, hosts);
  const waiting = await second.stateOf();
  expect(waiting).toEqual({
    runid: second.runId,
    job: waiting.job,
    state: "waiting",
    hosts: { waiting: 2 },
    scripts: {},
  });
  await second.b.cancelling.cancel(ADMIN, second.runId);
  await second.finished;
  expect(await second.stateOf()).toMatchObject({ state: "ended", job: waiting.job, hosts: {} });
  hosts.end("h9");
  await first.finished;
});

test("a run of one host after the other goes on between two hosts, and ends with the first one that is reached", async () => {
  const hosts = hostsHeld();
  const run = await start({ groupmode: "one", host: ["h1", "h2", "h3"] }, hosts);
  await hosts.begun("h1");
  expect(await run.stateOf()).toMatchObject({ state: "running", hosts: { running: 1, waiting: 2 } });
  hosts.end("h1", { state: "unreachable" });
  await hosts.begun("h2");
  expect(await run.stateOf()).toMatchObject({ state: "running", hosts: { unreachable: 1, running: 1, waiting: 1 } });
  hosts.end("h2");
  await run.finished;
  expect(await run.stateOf()).toMatchObject({ state: "ended", hosts: { unreachable: 1, ok: 1 } });
});

test("scripts before the first host and after the last one belong to the run; they are no hosts", async () => {
  const [begin, end] = [heldWork<undefined>(undefined), heldWork<undefined>(undefined)];
  const stages = [begin, end];
  const run = await start(
    { begin: "1", end: "1" },
    { script: () => stages.shift()?.wait() ?? Promise.resolve(undefined) },
  );
  await begin.asleep;
  expect(await run.stateOf()).toMatchObject({ state: "running", hosts: { waiting: 2 }, scripts: { running: 1 } });
  begin.release();
  await end.asleep;
  expect(await run.stateOf()).toMatchObject({ state: "running", hosts: { ok: 2 }, scripts: { ok: 1, running: 1 } });
  end.release();
  await run.finished;
  expect(await run.stateOf()).toMatchObject({ state: "ended", hosts: { ok: 2 }, scripts: { ok: 2 } });
});

test("a run whose controller died has not ended until another one has ended it", async () => {
  const asleep = heldWork<Partial<CommandOutcome>>({ state: "ok" });
  await scene.jobs.save(ADMIN, { name: "left", exec: ["x"], host: ["h1", "h2"], groupmode: "one", end: "1" });
  const { runId } = await scene.controller("dead", { dispatch: asleep.wait }).execute(ADMIN, "left", {});
  await asleep.asleep;
  const other = scene.controller("c");
  expect(await other.states.of(ADMIN, runId)).toMatchObject({ state: "running", hosts: { running: 1, waiting: 1 } });
  const heir = scene.controller("d", { script: () => Promise.resolve(undefined) });
  await heir.maintain("matrix");
  await expect.poll(() => scene.openKeys(runId), PATIENCE).toEqual([]);
  expect(await other.states.of(ADMIN, runId)).toMatchObject({ state: "ended", hosts: { ok: 1 } });
  asleep.release();
});

test("only users who see a row of the run, asked for it, or see its job are told, and of the hosts that they see", async () => {
  const hosts = hostsHeld();
  const run = await start({}, hosts);
  await hosts.begun("h2");
  const other = (data: readonly DataRule[], grants: readonly string[] = ["jobs:read", "objects:read"]): Principal => {
    return { ...ADMIN, user: "other", grants, data };
  };
  const all: DataRule = { class: "/", access: "read" };
  const rows = { class: "/matrix/jobs/jobrun", access: "read" } as const;
  for (const [principal, code] of [
    [testPrincipal("administrator", "second"), "not_found"],
    [other([all], ["jobs:run"]), "denied"],
    [other([]), "not_found"],
    [other([all, { ...rows, hidden: ["status"] }]), "not_found"],
  ] as const)
    await expect(run.stateOf(principal), code).rejects.toMatchObject({ code });
  expect(await run.stateOf(other([all, { ...rows, where: "host = 'h1'" }]))).toMatchObject({ hosts: { running: 1 } });
  for (const none of ["", "no-such-run", "../open", "01M83MW39VF2J01S46HMSW4V2M"])
    await expect(run.a.states.of(ADMIN, none)).rejects.toMatchObject({ code: "not_found" });
  hosts.end("h1");
  hosts.end("h2");
  await run.finished;
  await expect(run.stateOf(other([]))).rejects.toMatchObject({ code: "not_found" });
});
