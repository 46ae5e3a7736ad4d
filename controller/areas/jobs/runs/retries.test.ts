import { Value } from "typebox/value";
import { afterAll, beforeAll, expect, test } from "vitest";
import { JobInput } from "../../../../common/api/jobs.ts";
import { heldWork, openJobRuns, said, type SentCommand } from "../../../../test/helpers/jobs/job-runs.ts";
import { Mortality, mortalStores } from "../../../../test/helpers/engines/mortal.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { CommandOutcome } from "../../hosts/index.ts";

const ADMIN = testPrincipal();
const FAILED = { state: "failed", code: 3, message: "exit code 3" } as const;

let scene: Awaited<ReturnType<typeof openJobRuns>>;
beforeAll(async () => {
  scene = await openJobRuns();
});
afterAll(() => scene[Symbol.asyncDispose]());

/** Defines a job on these hosts that tries each of them again, up to `retry` times. */
async function define(name: string, host: string[], retry: number, more: object = {}): Promise<string> {
  await scene.jobs.save(ADMIN, { name, exec: ["x"], host, retry, retrydelay: 5, ...more });
  return name;
}

/** Hosts that fail so many times, then succeed. A command that is sent again with the same id gets the same answer. */
function flaky(times: Readonly<Record<string, number>>) {
  const answers = new Map<string, Partial<CommandOutcome>>();
  const sent: string[] = [];
  const done = (host: string) => [...answers.keys()].filter((id) => id.includes(`/${host}/`)).length;
  return {
    sent,
    begun: (runId: string) => [...answers.keys()].filter((id) => id.startsWith(`job/${runId}/`)),
    dispatch: ({ host, commandId, onOutput }: SentCommand): Partial<CommandOutcome> => {
      sent.push(commandId);
      const answer = answers.get(commandId) ?? (done(host) < (times[host] ?? 0) ? FAILED : { state: "ok", code: 0 });
      answers.set(commandId, answer);
      onOutput?.(said(`${commandId.split("/").at(-1) ?? ""} `));
      return answer;
    },
  };
}

test("a host that failed is tried again, others are not; the run tells the tries and what became of each", async () => {
  const hosts = flaky({ h2: 2, h3: 9 });
  const runs = scene.controller("a", hosts);
  const { runId, finished } = await runs.execute(ADMIN, await define("again", ["h1", "h2", "h3"], 2), {});
  expect(await finished).toMatchObject([
    { host: "h1", state: "ok" },
    { host: "h2", state: "ok", tries: 3 },
    { host: "h3", state: "failed", code: 3, tries: 3 },
  ]);
  const failure = "failed 3: exit code 3";
  const rows = await scene.rowsOf(runId);
  expect(rows).toMatchObject([
    { status: "ok", tries: 1 },
    { status: "ok", tries: 3, failures: [failure, failure], out: "0.2 ", outputsize: 10 },
    { status: "failed", code: 3, tries: 3, failures: [failure, failure] },
  ]);
  expect(rows[0]).not.toHaveProperty("failures.0");
  // All its output is stored in order; the row has the output of the last try only.
  expect(await scene.outputOf(runId, "h2")).toBe("0 0.1 0.2 ");
  expect(await scene.openKeys(runId)).toEqual([]);
});

test("the signal that ended a command is told of each try, for callers and in MQL, where it is searched for", async () => {
  const killed = { state: "failed", code: 137, signal: "SIGKILL", message: "ended by SIGKILL" } as const;
  const runs = scene.controller("a", { dispatch: () => killed });
  const { runId, finished } = await runs.execute(ADMIN, await define("killed", ["h1"], 1), {});
  expect(await finished).toMatchObject([{ host: "h1", ...killed, tries: 2 }]);
  const where = "signal = 'SIGKILL' AND runid = ?";
  expect(await scene.query.rows(ADMIN, `SELECT * FROM /matrix/jobs/jobrun WHERE ${where}`, [runId])).toMatchObject([
    { status: "failed", code: 137, signal: "SIGKILL", failures: ["failed 137 SIGKILL: ended by SIGKILL"] },
  ]);
  // The new run on the host has a row of its own, without the signal of the earlier run.
  const again = await scene.controller("a").retrying.retry(ADMIN, runId, {});
  expect(await again.finished).toMatchObject([{ host: "h1", state: "ok" }]);
  expect((await scene.rowsOf(again.runId))[0]).not.toMatchObject({ signal: "SIGKILL" });
});

test("each try has the time of the job, the run that of all; what was cancelled is not tried again", async () => {
  const left: number[] = [];
  const caller = new AbortController();
  const runs = scene.controller("a", {
    dispatch: ({ timeoutMs }) => {
      left.push(timeoutMs);
      if (left.length === 3) caller.abort();
      return { state: left.length < 3 ? "timeout" : "cancelled" };
    },
  });
  const name = await define("long", ["h1"], 5, { timeout: 30 });
  const { runId, finished } = await runs.execute(ADMIN, name, { signal: caller.signal });
  expect(await finished).toMatchObject([{ state: "cancelled", tries: 3 }]);
  // With one limit for all tries, later tries would lack the time of the pauses.
  for (const timeoutMs of left) expect(timeoutMs).toBeGreaterThan(30_000 - 5_000);
  expect(Math.max(...left)).toBeLessThanOrEqual(30_000);
  const [row] = await scene.rowsOf(runId);
  expect(Number(row?.["deadline"]) - Number(row?.["stime"])).toBe(6 * 30_000 + 5 * 5_000);
});

test("mode one goes to the next host when one is not reached, and tries again the one that failed", async () => {
  const sent: string[] = [];
  const runs = scene.controller("a", {
    dispatch: ({ host }) => {
      sent.push(host);
      return host === "h1" ? { state: "unreachable" } : sent.length < 3 ? FAILED : { code: 0 };
    },
  });
  const name = await define("either", ["h1", "h2", "h3"], 3, { groupmode: "one" });
  const { finished } = await runs.execute(ADMIN, name, {});
  expect(await finished).toMatchObject([
    { host: "h1", state: "unreachable" },
    { host: "h2", state: "ok", tries: 2 },
  ]);
  expect(sent).toEqual(["h1", "h2", "h2"]);
});

test("who takes a run over goes on with the try it is at, with the output of those before; who wakes begins none", async () => {
  const hosts = flaky({ h1: 1 });
  const asleep = heldWork<Partial<CommandOutcome>>(FAILED);
  const a = scene.controller("a", {
    dispatch: (sent) => (sent.commandId.endsWith("/0.1") ? asleep.wait() : hosts.dispatch(sent)),
  });
  const { runId, finished } = await a.execute(ADMIN, await define("over", ["h1"], 3), {});
  await asleep.asleep;
  await scene.controller("b", hosts).maintain("matrix");
  await expect.poll(() => scene.openKeys(runId), { timeout: 30_000 }).toEqual([]);
  asleep.release();
  expect(await finished).toMatchObject([{ host: "h1", state: "ok", tries: 2 }]);
  expect(hosts.sent).toEqual([`job/${runId}/h1/0`, `job/${runId}/h1/0.1`]);
  expect(await scene.outputOf(runId, "h1")).toBe("0 0.1 ");
});

test.each([true, false])(
  "a controller that is killed at any of its writes (made: %s) leaves every try with one end",
  async (isWritten) => {
    const name = await define(`killed-${String(isWritten)}`, ["h1"], 2);
    let lives = 0;
    for (let writes = 0; lives === 0; writes++) {
      const mortality = new Mortality(writes, isWritten);
      const hosts = flaky({ h1: 2 });
      const { keys } = mortalStores(scene.engine, () => mortality);
      const begun = scene
        .controller("a", { ...hosts, stores: keys })
        .execute(ADMIN, name, {})
        .then(async (execution) => (await execution.finished, lives++, execution.runId));
      await Promise.race([begun, mortality.died]);
      const [runId] = hosts.sent.map((id) => id.split("/")[1] ?? "");
      for (let life = 0; life < 3; life++) await scene.controller(`b${life}`, hosts).maintain("matrix");
      await expect
        .poll(async () => (await (await scene.engine.tenant("matrix")).kv.list("jobs/open/")).entries, {
          timeout: 30_000,
        })
        .toEqual([]);
      if (runId === undefined) continue;
      expect(hosts.begun(runId).sort(), `at write ${writes}`).toEqual(
        ["0", "0.1", "0.2"].map((id) => `job/${runId}/h1/${id}`),
      );
      expect(await scene.rowsOf(runId)).toMatchObject([{ host: "h1", status: "ok", tries: 3 }]);
    }
    expect(lives).toBe(1);
  },
);

test("the failed hosts of a run that has ended are tried again by hand, in a run that names it", async () => {
  const runs = scene.controller("a", flaky({ h2: 1, h3: 1 }));
  const name = await define("by-hand", ["h1", "h2", "h3"], 0);
  const first = await runs.execute(ADMIN, name, { param: JSON.stringify({ LEVEL: "9" }) });
  await first.finished;
  await expect(runs.retrying.retry(ADMIN, first.runId, {})).rejects.toMatchObject({
    code: "invalid",
    message: expect.stringContaining("LEVEL") as string,
  });
  const again = await runs.retrying.retry(ADMIN, first.runId, { param: JSON.stringify({ LEVEL: "9" }) });
  expect(await again.finished).toMatchObject([
    { host: "h2", state: "ok" },
    { host: "h3", state: "ok" },
  ]);
  expect(await scene.rowsOf(again.runId)).toMatchObject([{ origin: first.runId }, { origin: first.runId }]);
  await expect(runs.retrying.retry(ADMIN, again.runId, {})).rejects.toMatchObject({ code: "invalid" });
});

test.each(["remote_command", "remote_wincall"])(
  "a command that %s ran is tried again as it was, not while it goes on and not by others",
  async (name) => {
    const asleep = heldWork<Partial<CommandOutcome>>(FAILED);
    const runs = scene.controller("a", { dispatch: asleep.wait });
    const param = JSON.stringify({ cmd: "say 'it'", "HOST!": "h1" });
    const { runId, finished } = await runs.execute(ADMIN, `${name}@system/common`, { param });
    await asleep.asleep;
    await expect(runs.retrying.retry(ADMIN, runId, {})).rejects.toMatchObject({ code: "conflict" });
    asleep.release();
    await finished;
    const retry = (principal: typeof ADMIN, given = {}) =>
      runs.retrying.retry(principal, runId, { param: JSON.stringify(given) });
    await expect(retry(ADMIN, { "HOST!": "h2" })).rejects.toMatchObject({ code: "invalid" });
    await expect(retry(testPrincipal("viewer"))).rejects.toMatchObject({ code: "denied" });
    await expect(retry(testPrincipal("administrator", "second"))).rejects.toMatchObject({ code: "not_found" });
    const again = await retry(ADMIN);
    expect(await again.finished).toMatchObject([{ host: "h1", state: "failed" }]);
    expect(await scene.rowsOf(again.runId)).toMatchObject([{ cmds: ["say 'it'"], origin: runId }]);
  },
);

test.each([{ retry: -1 }, { retry: 21 }, { retrydelay: 3_601 }, { retry: 1.5 }])("%j is no retry", (given) => {
  expect(Value.Check(JobInput, { name: "x", exec: ["x"], ...given })).toBe(false);
});
