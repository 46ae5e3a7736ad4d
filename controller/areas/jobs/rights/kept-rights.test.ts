import { afterAll, beforeAll, expect, test } from "vitest";
import { heldWork, openJobRuns, type SentCommand } from "../../../../test/helpers/jobs/job-runs.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import type { CommandOutcome } from "../../hosts/index.ts";
import type { Principal } from "../../permissions/index.ts";

const PATIENCE = { timeout: 30_000 };
const HOSTS = Array.from({ length: 20 }, (_, at) => `h${at}`);
/** A user in many groups, each with a rule on rows. */
const CALLER: Principal = {
  ...testPrincipal(),
  data: [
    ...testPrincipal().data,
    ...Array.from({ length: 100 }, (_, at) => ({ ...testPrincipal().data[0]!, class: `/matrix/app/service-${at}` })),
  ],
};

let scene: Awaited<ReturnType<typeof openJobRuns>>;
beforeAll(async () => {
  scene = await openJobRuns();
});
afterAll(() => scene[Symbol.asyncDispose]());

async function define(name: string, host: readonly string[], more: object = {}): Promise<string> {
  await scene.jobs.save(testPrincipal(), { name, exec: ["x"], host: [...host], ...more });
  return name;
}

/** Data stored for a run: sizes of its hosts' entries, and how often the rights are stored in total. */
async function kept(runId: string) {
  const { kv } = await scene.engine.tenant("matrix");
  const [hosts, all]: [number[], string[]] = [[], []];
  for await (const { key, value } of entriesUnder(kv, "jobs/")) {
    if (!key.includes(runId)) continue;
    if (key.startsWith("jobs/open/")) hosts.push(value.length);
    all.push(Buffer.from(value).toString());
  }
  return { hosts, times: all.filter((text) => text.includes("service-99")).length };
}

/** Hosts whose commands run until they are released; `asked` has the rights of each command. */
function patient() {
  const held = heldWork<Partial<CommandOutcome>>({ code: 0 });
  const asked: Principal[] = [];
  return {
    asked,
    release: held.release,
    dispatch: ({ principal }: SentCommand) => {
      asked.push(principal);
      return held.wait();
    },
  };
}

test.each([
  ["on several hosts", HOSTS, {}],
  ["of a limit", HOSTS, { limit: 2 }],
  ["in a queue", HOSTS, { queue: "nightly" }],
  ["on one host", ["h1"], {}],
  ["in mode one", HOSTS, { groupmode: "one" }],
])("a run %s keeps the rights of its caller once, and who takes it over has all of them", async (name, host, more) => {
  const [first, second] = [patient(), patient()];
  const { runId, finished } = await scene
    .controller("a", first)
    .execute(CALLER, await define(name.replaceAll(" ", "-"), host, more), {});
  finished.catch(() => undefined);
  const begun = "groupmode" in more ? 1 : host.length;
  await expect.poll(() => first.asked.length, PATIENCE).toBe(begun);
  const { hosts, times } = await kept(runId);
  expect({ hosts: hosts.length, times }).toEqual({ hosts: begun, times: 1 });
  if (host.length > 1) for (const bytes of hosts) expect(bytes).toBeLessThan(1_000);

  const b = scene.controller("b", second);
  await b.maintain("matrix");
  await expect.poll(() => second.asked.length, PATIENCE).toBe(begun);
  for (const principal of second.asked) expect(principal).toEqual(CALLER);
  second.release();
  await expect.poll(() => scene.openKeys(runId), PATIENCE).toEqual([]);
  first.release();
  await finished.catch(() => undefined);
  await b.maintain("matrix");
  expect(await kept(runId)).toEqual({ hosts: [], times: 0 });
  const { kv } = await scene.engine.tenant("matrix");
  expect((await kv.list("jobs/rights/")).entries).toEqual([]);
});

test("a run whose rights are gone is not gone on with, and ends after its deadline", async () => {
  const first = patient();
  const { runId, finished } = await scene.controller("a", first).execute(CALLER, await define("lost", HOSTS), {});
  finished.catch(() => undefined);
  const { kv } = await scene.engine.tenant("matrix");
  await kv.delete(`jobs/rights/${runId}`);
  const second = patient();
  await scene.controller("b", second).maintain("matrix");
  expect([second.asked, (await kept(runId)).hosts.length]).toEqual([[], HOSTS.length]);
  const later = scene.controller("c", { ...second, aheadMs: 86_400_000 });
  await later.maintain("matrix");
  expect([second.asked, await scene.openKeys(runId)]).toEqual([[], []]);
  expect(new Set((await scene.rowsOf(runId)).map(({ status }) => status))).toEqual(new Set(["expired"]));
  first.release();
  await finished;
});

const SECRET = "4711-is-the-pin";

/** Every stored value about jobs. */
async function values(): Promise<readonly string[]> {
  const { kv } = await scene.engine.tenant("matrix");
  const all: string[] = [];
  for await (const { value } of entriesUnder(kv, "jobs/")) all.push(Buffer.from(value).toString());
  return all;
}

test.each([
  ["on several hosts", { host: HOSTS }],
  ["of a limit", { host: HOSTS, limit: 2 }],
  ["in a queue", { host: HOSTS, queue: "sealed" }],
  ["in mode one", { host: HOSTS, groupmode: "one" }],
  ["whose host is tried again", { host: ["h1"], retry: 3 }],
  ["that a script begins", { host: HOSTS, begin: "begin" }],
  ["that a script ends", { host: ["h1"], end: "end" }],
  ["that is a script", { exec: ["serverjs 1"] }],
] as const)("what a run %s is given lies sealed in each entry, and the run has it", async (name, more) => {
  const held = heldWork<undefined>(undefined);
  const given: string[] = [];
  let failures = "retry" in more ? 1 : 0;
  const isOfScript = "begin" in more || "end" in more || "exec" in more;
  const a = scene.controller("a", {
    dispatch: async ({ command }) => {
      given.push(JSON.stringify(command));
      if (failures-- > 0) return { state: "failed", code: 1 };
      if (!isOfScript) await held.wait();
      return { code: 0 };
    },
    script: async (_principal, { input }) => {
      given.push(JSON.stringify(input));
      await held.wait();
      return undefined;
    },
  });
  const job = await define(`sealed-${name.replaceAll(" ", "-")}`, [], more);
  const param = JSON.stringify({ PIN: SECRET });
  const runs = [await a.execute(CALLER, job, { param })];
  // With a queue, the second one waits.
  if ("queue" in more) runs.push(await a.execute(CALLER, job, { param }));
  await held.asleep;
  const all = await values();
  for (const { runId } of runs) expect(all.some((text) => text.includes(runId))).toBe(true);
  expect(all.filter((text) => text.includes(SECRET))).toEqual([]);
  expect(given.filter((text) => !text.includes(SECRET))).toEqual([]);
  expect(given.length).toBeGreaterThan(0);
  held.release();
  for (const { finished } of runs) await finished;
  expect((await values()).filter((text) => text.includes(SECRET))).toEqual([]);
});

test("the command line of remote_command is no secret: it stands in the row of its run, beside parameters that are", async () => {
  const first = patient();
  const param = JSON.stringify({ cmd: "echo for everybody", PIN: SECRET, "HOST!": HOSTS });
  const name = "remote_command@system/common";
  const { runId, finished } = await scene.controller("a", first).execute(CALLER, name, { param });
  await expect.poll(() => first.asked.length, PATIENCE).toBe(HOSTS.length);
  const all = await values();
  expect(all.some((text) => text.includes("echo for everybody"))).toBe(true);
  expect(all.filter((text) => text.includes(SECRET))).toEqual([]);
  const [row] = await scene.rowsOf(runId);
  expect(row).toMatchObject({ cmds: ["echo for everybody"], params: ["cmd", "PIN"] });
  expect(JSON.stringify(row)).not.toContain(SECRET);
  first.release();
  await finished;
});
