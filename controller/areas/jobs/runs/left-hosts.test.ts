import { expect, test } from "vitest";
import type { UnrestrictedObjects } from "../../objects/index.ts";
import { AppError, type ErrorCode } from "../../../../common/errors.ts";
import { JOB_PARALLEL_HOSTS } from "../../../../common/limits.ts";
import {
  ADMIN,
  closed,
  controller,
  engine,
  execute,
  held,
  HOUR_MS,
  inserting,
  jobs,
  objects,
  openKeys,
  openRuns,
  outputOf,
  rowsOf,
} from "../../../../test/helpers/jobs/run-world.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores } from "../../../store/engine.ts";
import { COMMAND_CLASS, OUTPUT_CLASS, type CommandOutcome } from "../../hosts/index.ts";

openRuns();

/**
 * A controller skips its pauses, and the skipped time counts for all that it carries out. One that waits for a host and
 * for the end of an execution skips a minute at once, if the machine is busy.
 */
const LONG = { dir: "", exec: ["x"], timeout: 3_600 };

test("a controller that wakes and finds a host unreachable leaves the next host to the one that took the run over", async () => {
  await jobs.save(ADMIN, { ...LONG, name: "either", host: ["h1", "h2"], groupmode: "one" });
  const asleep = held<Partial<CommandOutcome>>({ state: "unreachable" });
  const asked: string[] = [];
  const a = controller("a", { dispatch: (host) => (asked.push(`a ${host}`), asleep.wait()) });
  const { runId, finished } = await a.execute(ADMIN, "either", {});
  await asleep.asleep;
  const taken = held<Partial<CommandOutcome>>({});
  const b = controller("b", {
    dispatch: (host) => (
      asked.push(`b ${host}`), host === "h1" ? Promise.resolve({ state: "unreachable" }) : taken.wait()
    ),
  });
  await b.maintain("matrix");
  await taken.asleep;
  asleep.release();
  taken.release();
  await closed(runId);
  // The caller that waits at the paused controller gets the other controller's result.
  expect(await finished).toMatchObject([
    { host: "h1", state: "unreachable" },
    { host: "h2", state: "ok" },
  ]);
  expect(asked.filter((each) => each !== "b h1")).toEqual(["a h1", "b h2"]);
});

/** The stores of a controller whose transactions on these keys are refused. */
const storesRefusing = (code: ErrorCode, isRefused: (key: string) => boolean): Stores => ({
  system: () => engine.system(),
  tenant: async (name) => {
    const store = await engine.tenant(name);
    const txn: typeof store.kv.txn = (request) =>
      request.if.some(({ key }) => isRefused(key))
        ? Promise.reject(new AppError(code, "refused on purpose"))
        : store.kv.txn(request);
    return { ...store, kv: wrappedKv(store.kv, { txn }) };
  },
});

test("a take-over that fails for one host goes on with the others, and takes that one the next time", async () => {
  const asleep = held<Partial<CommandOutcome>>({ state: "timeout", message: "slept" });
  const { runId, finished } = await execute(controller("a", { dispatch: asleep.wait }), "h1", "h2");
  await asleep.asleep;
  let isAway = true;
  const b = controller("b", { stores: storesRefusing("unavailable", (key) => isAway && key.endsWith("/h2")) });
  await b.maintain("matrix");
  await expect.poll(() => openKeys(runId)).toEqual([`jobs/open/${runId}/h2`]);
  isAway = false;
  await b.maintain("matrix");
  await closed(runId);
  asleep.release();
  expect(await finished).toMatchObject([{ state: "ok" }, { state: "ok" }]);
});

test("a run that was taken over and whose end could not be recorded is taken again by the same controller", async () => {
  const asleep = held<Partial<CommandOutcome>>({ state: "timeout", message: "slept" });
  const { runId, finished } = await execute(controller("a", { dispatch: asleep.wait }), "h1");
  await asleep.asleep;
  const refused = held(undefined);
  const sent: string[] = [];
  const b = controller("b", {
    stores: storesRefusing("internal", () => {
      const isDecision = sent.length === 1;
      if (isDecision) void refused.wait();
      return isDecision;
    }),
    dispatch: (_host, { commandId }) => (sent.push(commandId), Promise.resolve({})),
  });
  await b.maintain("matrix");
  await refused.asleep;
  sent.push("by now the store is well");
  await expect
    .poll(async () => {
      await b.maintain("matrix");
      return openKeys(runId);
    })
    .toEqual([]);
  expect(sent.filter((id) => id === `job/${runId}/h1/0`)).toHaveLength(2);
  expect(await rowsOf(runId)).toMatchObject([{ status: "ok" }]);
  asleep.release();
  expect(await finished).toMatchObject([{ state: "ok" }]);
});

test("what the agent said decides, not that the controller was gone; without a word it is expired", async () => {
  const asleep = held<Partial<CommandOutcome>>({ state: "timeout", message: "slept" });
  const { runId, finished } = await execute(controller("a", { dispatch: asleep.wait }), "h1", "h2");
  await asleep.asleep;
  const command = `job/${runId}/h1/0`;
  const data = (text: string) => Buffer.from(text).toString("base64");
  await objects.unrestricted.ingest(ADMIN, `/matrix${OUTPUT_CLASS}`, [
    {
      timeMs: Date.now(),
      identity: `${runId}/2`,
      values: { command, host: "h1", stderr: false, offset: 3, data: data(" two") },
    },
    {
      timeMs: Date.now(),
      identity: `${runId}/1`,
      values: { command, host: "h1", stderr: false, offset: 0, data: data("one") },
    },
  ]);
  await objects.unrestricted.ingest(ADMIN, `/matrix${COMMAND_CLASS}`, [
    {
      timeMs: Date.now(),
      identity: `${runId}/3`,
      values: { command, host: "h1", state: "failed", code: 7, message: "", ended: 1_000_000 },
    },
  ]);
  const b = controller("b", { aheadMs: HOUR_MS });
  await b.maintain("matrix");
  const rows = (await rowsOf(runId)).sort((one, other) => String(one["host"]).localeCompare(String(other["host"])));
  expect(rows).toMatchObject([
    { host: "h1", status: "failed", code: 7, out: "one two", etime: 1_000_000 },
    { host: "h2", status: "expired" },
  ]);
  expect(await outputOf(runId, "h1")).toBe("one two");
  asleep.release();
  expect((await finished).map(({ state }) => state)).toEqual(["failed", "expired"]);
});

test("what is opened although its execution failed is ended, also by the controller that opened it", async () => {
  const [others, last, allOpening] = [held(undefined), held(undefined), held(undefined)];
  let opening = 0;
  // After the first, as many as are opened at once: none is begun after a failed one.
  const hosts = ["first", "broken", ...Array.from({ length: JOB_PARALLEL_HOSTS - 1 }, (_, at) => `h${at}`)];
  const lastHost = hosts.at(-1);
  let runId = "";
  const insert: UnrestrictedObjects["insert"] = async (principal, path, rows, settings) => {
    const [{ runid, host } = {}] = rows;
    if (host === "first") runId = String(runid);
    if (host === "first" || options.aheadMs > 0) return objects.unrestricted.insert(principal, path, rows, settings);
    if (host === "broken") throw new AppError("invalid", "no row for this one");
    opening += 1;
    if (opening === hosts.length - 2) void allOpening.wait();
    await (host === lastHost ? last : others).wait();
    return objects.unrestricted.insert(principal, path, rows, settings);
  };
  const options = { objects: inserting(insert), aheadMs: 0 };
  const a = controller("a", options);
  await expect(execute(a, ...hosts)).rejects.toMatchObject({ code: "invalid" });
  await allOpening.asleep;
  others.release();
  last.release();
  options.aheadMs = HOUR_MS;
  await a.maintain("matrix");
  const rows = await rowsOf(runId);
  expect(rows.map(({ status }) => status)).toEqual(hosts.map(() => "expired"));
});

test("a controller that stalls while it opens hosts opens none of a run that is over elsewhere", async () => {
  let runId = "";
  const insert: UnrestrictedObjects["insert"] = async (principal, path, rows, options) => {
    if (runId === "") {
      runId = String(rows[0]?.["runid"]);
      // The state after a controller has ended the only host.
      const { kv } = await engine.tenant("matrix");
      await Promise.all([kv.delete(`jobs/open/${runId}/h1`), kv.delete(`jobs/rights/${runId}`)]);
    }
    return objects.unrestricted.insert(principal, path, rows, options);
  };
  const a = controller("a", { objects: inserting(insert) });
  await expect(execute(a, "h1", "h2", "h3")).rejects.toMatchObject({ code: "unavailable" });
  expect(await openKeys(runId)).toEqual([]);
});

test("in mode one a host that could not be opened after another was not reached is ended as well", async () => {
  await jobs.save(ADMIN, { name: "second", dir: "", exec: ["x"], host: ["away", "broken"], groupmode: "one" });
  let fails = true;
  const insert: UnrestrictedObjects["insert"] = (principal, path, rows, options) =>
    fails && rows[0]?.["host"] === "broken"
      ? Promise.reject(new AppError("invalid", "no row for this one"))
      : objects.unrestricted.insert(principal, path, rows, options);
  const options = {
    objects: inserting(insert),
    dispatch: () => Promise.resolve({ state: "unreachable" as const }),
    aheadMs: 0,
  };
  const a = controller("a", options);
  const { runId, finished } = await a.execute(ADMIN, "second", {});
  await expect(finished).rejects.toMatchObject({ code: "invalid" });
  fails = false;
  options.aheadMs = HOUR_MS;
  await a.maintain("matrix");
  expect((await rowsOf(runId)).map(({ host, status }) => `${host} ${status}`).sort()).toEqual([
    "away unreachable",
    "broken expired",
  ]);
});

test("in sequence goes on in order and one after the other, in mode one with the hosts that were not tried yet", async () => {
  await jobs.save(ADMIN, { ...LONG, name: "one", host: ["h1", "h2", "h3"], groupmode: "one" });
  await jobs.save(ADMIN, { ...LONG, name: "sequence", host: ["h3", "h1", "h2"], groupmode: "sequence" });
  const runs: (Awaited<ReturnType<typeof execute>> & { readonly asleep: ReturnType<typeof held> })[] = [];
  for (const name of ["one", "sequence"]) {
    const asleep = held<Partial<CommandOutcome>>({ state: "timeout", message: "slept" });
    const a = controller("a", {
      dispatch: async (host) => (host === "h1" && name === "one" ? { state: "unreachable" } : asleep.wait()),
    });
    runs.push({ ...(await a.execute(ADMIN, name, {})), asleep });
    await asleep.asleep;
  }
  const order: string[] = [];
  const last = held(undefined);
  const b = controller("b", {
    dispatch: async (host, { commandId }) => {
      order.push(`${commandId.split("/")[1] ?? ""}/${host}`);
      if (order.includes(`${runs[0]?.runId ?? ""}/h3`) && order.includes(`${runs[1]?.runId ?? ""}/h2`))
        void last.wait();
      return Promise.resolve(host === "h2" ? { state: "unreachable" } : {});
    },
  });
  await b.maintain("matrix");
  await last.asleep;
  for (const { runId } of runs) await closed(runId);
  for (const { asleep } of runs) asleep.release();
  const [one, sequence] = [await runs[0]?.finished, await runs[1]?.finished];
  const of = (at: number) =>
    order
      .filter((each) => each.startsWith(runs[at]?.runId ?? "none"))
      .map((each) => each.slice(27))
      .filter((host, at, all) => host !== all[at - 1]);
  expect([of(0), of(1)]).toEqual([
    ["h2", "h3"],
    ["h3", "h1", "h2"],
  ]);
  expect(one?.map(({ host, state }) => [host, state])).toEqual([
    ["h1", "unreachable"],
    ["h2", "unreachable"],
    ["h3", "ok"],
  ]);
  expect(sequence?.map(({ state }) => state)).toEqual(["ok", "ok", "unreachable"]);
});
