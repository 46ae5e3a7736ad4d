import { afterAll, beforeAll, expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { heldWork, openJobRuns, said, type SentCommand } from "../../../../test/helpers/jobs/job-runs.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores } from "../../../store/engine.ts";
import type { KvStore, KvTxn } from "../../../store/kv.ts";
import type { CommandOutcome } from "../../hosts/index.ts";

const ADMIN = testPrincipal();
const PATIENCE = { timeout: 30_000 };

let scene: Awaited<ReturnType<typeof openJobRuns>>;
let kv: KvStore;
beforeAll(async () => {
  scene = await openJobRuns();
  kv = (await scene.engine.tenant("matrix")).kv;
  await scene.engine.createTenant("second");
});
afterAll(() => scene[Symbol.asyncDispose]());

let jobs = 0;
async function define(job: object = {}): Promise<string> {
  const name = `job-${++jobs}`;
  await scene.jobs.save(ADMIN, { name, dir: "d", exec: ["x"], host: ["h1", "h2"], ...job });
  return `${name}@d`;
}

/** Hosts whose commands run until they are released. */
function patient() {
  const sent: SentCommand[] = [];
  const held = new Map<string, ReturnType<typeof heldWork<Partial<CommandOutcome>>>>();
  const of = (host: string) => {
    const known = held.get(host) ?? heldWork<Partial<CommandOutcome>>({ code: 0 });
    held.set(host, known);
    return known;
  };
  return { sent, release: (host: string) => of(host).release(), dispatch };

  function dispatch(command: SentCommand): Promise<Partial<CommandOutcome>> {
    sent.push(command);
    command.onOutput?.(said("x"));
    return of(command.host).wait();
  }
}

async function keysUnder(prefix: string): Promise<readonly string[]> {
  return (await kv.list(prefix)).entries.map(({ key }) => key);
}

/** Stores with some calls that fail. */
function failing(instead: (kv: KvStore) => Partial<KvStore>): Stores {
  return {
    system: () => scene.engine.system(),
    tenant: async (name) => {
      const store = await scene.engine.tenant(name);
      return { ...store, kv: wrappedKv(store.kv, instead(store.kv)) };
    },
  };
}

test("of a run that goes on is known who asked for it, for what, and on which hosts it goes on", async () => {
  const hosts = patient();
  const runs = scene.controller("a", hosts);
  const name = await define();
  const { runId, finished } = await runs.execute(ADMIN, name, {});
  await expect.poll(() => hosts.sent.length, PATIENCE).toBe(2);
  const both = ["h1", "h2"];
  const state = { user: ADMIN.user, job: name, hosts: both, begun: both, open: both };
  expect(await runs.openState("matrix", runId)).toEqual(state);
  expect(await runs.openState("second", runId)).toBeUndefined();
  hosts.release("h1");
  const left = { ...state, hosts: ["h2"], begun: ["h2"], open: ["h2"] };
  await expect.poll(() => runs.openState("matrix", runId), PATIENCE).toEqual(left);
  expect(await runs.openState("matrix", runId, "h1")).toEqual({ ...left, hosts: ["h2", "h1"] });
  for (const host of ["h2", "never"]) expect(await runs.openState("matrix", runId, host)).toEqual(left);
  expect(await runs.goesOn("matrix", runId)).toBe(true);
  hosts.release("h2");
  await finished;
  expect([await runs.openState("matrix", runId), await runs.goesOn("matrix", runId)]).toEqual([undefined, false]);
  expect(await keysUnder(`jobs/rights/${runId}`)).toEqual([]);
});

test("while it waits in its queue all of its hosts are those on which it is to go on", async () => {
  const hosts = patient();
  const runs = scene.controller("a", hosts);
  const first = await runs.execute(ADMIN, await define({ queue: "states" }), {});
  await expect.poll(() => hosts.sent.length, PATIENCE).toBe(2);
  const second = await runs.execute(ADMIN, await define({ queue: "states" }), {});
  // In no queue: it came later, but does not wait.
  const third = await runs.execute(ADMIN, await define({ groupmode: "one", host: ["h3"] }), {});
  await expect.poll(() => hosts.sent.map(({ host }) => host).sort(), PATIENCE).toEqual(["h1", "h2", "h3"]);
  expect(await runs.openState("matrix", second.runId)).toMatchObject({ begun: [], open: ["h1", "h2"] });
  for (const host of ["h1", "h2", "h3"]) hosts.release(host);
  await Promise.all([first, second, third].map(({ finished }) => finished));
});

test("a command is known as one of a run for as long as its output is kept, to its host alone", async () => {
  const hosts = patient();
  const runs = scene.controller("a", hosts);
  const { finished } = await runs.execute(ADMIN, await define({ host: ["h1"] }), {});
  await expect.poll(() => hosts.sent.length, PATIENCE).toBe(1);
  const commandId = hosts.sent[0]?.commandId ?? "";
  expect(await runs.gave("matrix", "h1", commandId)).toBe(true);
  hosts.release("h1");
  await finished;
  expect(await runs.gave("matrix", "h1", commandId)).toBe(true);
  expect(await runs.gave("matrix", "h2", commandId)).toBe(false);
  expect(await runs.gave("second", "h1", commandId)).toBe(false);
  expect(await runs.gave("matrix", "h1", "no id of a run")).toBe(false);
});

test("where one of several is not there none is begun, and the error says which", async () => {
  const runs = scene.controller("a");
  const there = { name: await define() };
  const asked = runs.executeAll(ADMIN, [there, { name: "gone@d" }]);
  await expect(asked).rejects.toMatchObject({
    code: "not_found",
    message: expect.stringMatching(/^Nothing was executed: jobs\[1\], gone@d: /) as string,
  });
  expect(await keysUnder("jobs/open/")).toEqual([]);
});

test.each(["before it begins", "while it goes on"])(
  "what its caller cancels %s stays cancelled for every controller; what is over asks for nothing",
  async (when) => {
    const hosts = patient();
    const cancel = new AbortController();
    const runs = scene.controller("a", hosts);
    if (when === "before it begins") cancel.abort();
    const { runId, finished } = await runs.execute(ADMIN, await define(), { signal: cancel.signal });
    cancel.abort();
    await expect.poll(() => keysUnder(`jobs/cancel/${runId}`), PATIENCE).toHaveLength(1);
    for (const host of ["h1", "h2"]) hosts.release(host);
    await finished;
    const late = new AbortController();
    const over = await scene.controller("a").execute(ADMIN, await define(), { signal: late.signal });
    await over.finished;
    late.abort();
    await runs.maintain("matrix");
    expect(await keysUnder("jobs/cancel/")).toEqual([]);
  },
);

test("an end is told though what the run left cannot be removed; the next round removes it", async () => {
  const away = () => Promise.reject(new AppError("invalid", "not now"));
  const stores = failing((over) => ({
    delete: (key, options) => (key.startsWith("jobs/rights/") ? away() : over.delete(key, options)),
    txn: (request) =>
      request.then.some(({ kind, key }) => kind === "delete" && key.startsWith("jobs/rights/"))
        ? away()
        : over.txn(request),
  }));
  const { runId, finished } = await scene.controller("a", { stores }).execute(ADMIN, await define(), {});
  expect(await finished).toMatchObject([{ state: "ok" }, { state: "ok" }]);
  expect(await keysUnder(`jobs/rights/${runId}`)).toHaveLength(1);
  await scene.controller("a").maintain("matrix");
  expect(await keysUnder(`jobs/rights/${runId}`)).toEqual([]);
});

test("a schedule's run that may be there only so often is begun with its ticket, and not again with one that is used", async () => {
  const hosts = patient();
  const runs = scene.controller("a", hosts);
  const name = await define({ limit: 2, host: ["h1"] });
  const key = `ticket-of-${name}`;
  const ticket = (): KvTxn => ({
    if: [{ key, revision: 0 }],
    then: [{ kind: "put", key, value: new Uint8Array() }],
  });
  const job = await scene.jobs.visible(ADMIN, name);
  const fire = () => runs.fire(ADMIN, job, { dueMs: Date.now(), ticket, waits: false });
  expect([await fire(), await fire()]).toEqual([true, false]);
  await expect.poll(() => hosts.sent.length, PATIENCE).toBe(1);
  hosts.release("h1");
  await expect.poll(() => keysUnder("jobs/open/"), PATIENCE).toEqual([]);
});

test("who is not allowed to run jobs begins none, in no way", async () => {
  const viewer = testPrincipal("viewer");
  const runs = scene.controller("a");
  const name = await define();
  const ticket = () => ({ if: [], then: [] });
  const denied = { code: "denied" };
  await expect(runs.execute(viewer, name, {})).rejects.toMatchObject(denied);
  await expect(runs.executeAll(viewer, [{ name }])).rejects.toMatchObject(denied);
  const job = await scene.jobs.visible(ADMIN, name);
  await expect(runs.fire(viewer, job, { dueMs: 1, ticket, waits: false })).rejects.toMatchObject(denied);
  expect(await keysUnder("jobs/open/")).toEqual([]);
});
