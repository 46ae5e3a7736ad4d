import { afterEach, beforeEach, expect, test } from "vitest";
import type { CommandPolicySpec } from "../../../common/api/policies.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import type { Gap, PolicyRun } from "../../../proto/gen/agent/v1/agent.ts";
import { hostUsers } from "../../commands/host-user.ts";
import type { Exec, ExecOptions, ExecResult } from "../../commands/exec.ts";
import type { Emission } from "../../outbox/outbox.ts";
import type { Host } from "../../policies/host.ts";
import type { Runner } from "../../policies/plugin.ts";
import { commandPolicy } from "./command-policy.ts";

const STEP_MS = 500;

let clock: TestClock;
let abort: AbortController;
let sent: Emission[];
let began: ExecOptions[];
let done: Promise<void>;
let runner: Runner;

beforeEach(() => {
  clock = new TestClock();
  abort = new AbortController();
  [sent, began] = [[], []];
});
afterEach(async () => {
  abort.abort();
  await done;
});

/** A command that takes a time, and ends with a code. */
interface Command {
  readonly lastsMs?: number;
  /** One code, or that of each run. */
  readonly code?: number | readonly number[];
  readonly output?: string;
}

/** A policy with a run each second. */
function begin(members: Partial<CommandPolicySpec>, { lastsMs = 0, code = 0, output = "" }: Command = {}): void {
  const exec: Exec = async (options) => {
    began.push(options);
    if (output !== "") await options.onOutput?.(Buffer.from(output), false);
    return ended(options, lastsMs, [code].flat()[began.length - 1] ?? [code].flat().at(-1) ?? 0);
  };
  const marks = new Map<string, string | undefined>();
  const host: Partial<Host> = {
    clock,
    random: { next: () => 0, bytes: () => new Uint8Array() },
    exec,
    users: hostUsers(exec),
    log: () => undefined,
    mark: (key) => marks.get(key),
    hasRoom: () => true,
    emit(emissions, options) {
      if (options?.signal?.aborted) return Promise.reject(new Error("given up"));
      sent.push(...emissions);
      for (const { key, value } of options?.marks ?? []) marks.set(key, value);
      return Promise.resolve();
    },
  };
  const spec = {
    kind: "command",
    name: "p",
    rule: "/r",
    command: "x",
    ctype: 1,
    interval: 1,
    unit: "second",
    ...members,
  };
  const policy = { name: "p", revision: 1, spec: "", depot: undefined };
  runner = commandPolicy.create(
    { policy, spec, folder: "/p", confPath: undefined, depotFolder: undefined },
    host as Host,
  );
  done = runner.run(abort.signal);
}

function ended({ timeoutMs = Infinity, signal }: ExecOptions, lastsMs: number, code: number): Promise<ExecResult> {
  const isLate = timeoutMs < lastsMs;
  return new Promise((resolve) => {
    signal?.addEventListener("abort", () => resolve({ ended: "cancelled", code: 143, message: "" }));
    clock.after(Math.min(lastsMs, timeoutMs), () =>
      resolve(
        isLate
          ? { ended: "timeout", code: 143, message: "" }
          : { ended: "exit", code, message: code ? `ended with code ${code}` : "" },
      ),
    );
  });
}

async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += STEP_MS) {
    await new Promise(setImmediate);
    clock.advance(STEP_MS);
  }
  await new Promise(setImmediate);
}

const startMs = new TestClock().nowMs();
const seconds = (ms: number) => (ms - startMs) / 1_000;
const runs = () =>
  sent
    .flatMap(({ body }) => (body.$case === "run" ? [body.value] : []))
    .map((run) => [seconds(run.scheduledMs), run.state]);
const lastRun = (): PolicyRun | undefined =>
  sent.flatMap(({ body }) => (body.$case === "run" ? [body.value] : [])).at(-1);
const gaps = () =>
  sent
    .flatMap(({ body }): Gap[] => (body.$case === "gap" ? [body.value] : []))
    .map(({ reason, count, unit, fromMs }) => `${reason}: ${count} ${unit} from ${seconds(fromMs)}`);

test("a run that is longer than its timeout is ended, and its record says after which time", async () => {
  begin({ interval: 10, timeout: 3 }, { lastsMs: 60_000 });
  await pass(14_000);
  expect(began[0]?.timeoutMs).toBe(3_000);
  expect(lastRun()).toMatchObject({ state: "failed", message: "ended at its deadline, after 3 seconds" });
});

test("a run that is due while the former one goes on is skipped and counted", async () => {
  begin({}, { lastsMs: 2_500 });
  await pass(8_000);
  expect(runs()).toEqual([
    [1, "ok"],
    [4, "ok"],
  ]);
  expect(gaps()).toEqual(["overrun: 2 runs from 2", "overrun: 2 runs from 5"]);
});

test("with overlap queue, the last due run begins when the former one has ended, and those before it are counted", async () => {
  begin({ overlap: "queue" }, { lastsMs: 2_500 });
  await pass(8_500);
  expect(runs()).toEqual([
    [1, "ok"],
    [3, "ok"],
    [6, "ok"],
  ]);
  expect(gaps()).toEqual(["overrun: 1 runs from 2", "overrun: 2 runs from 4", "overrun: 1 runs from 7"]);
});

test("with overlap replace, the former run is ended when the next one is due", async () => {
  begin({ overlap: "replace" }, { lastsMs: 60_000 });
  await pass(3_500);
  expect(runs()).toEqual([
    [1, "failed"],
    [2, "failed"],
  ]);
  expect(lastRun()?.message).toBe("ended because the next run is due");
  expect(gaps()).toEqual([]);
});

test("a timeout that is earlier than the next due run ends the run", async () => {
  begin({ overlap: "replace", interval: 10, timeout: 2 }, { lastsMs: 60_000 });
  await pass(13_000);
  expect(lastRun()?.message).toBe("ended at its deadline, after 2 seconds");
});

test("output beyond its limit is dropped and counted, and the record that lost its end is marked", async () => {
  begin({ interval: 10, outputlimit: 6, split: true }, { output: "one\ntwo\nthree\n" });
  await pass(11_000);
  const records = sent.flatMap(({ body }) => (body.$case === "records" ? [body.value] : []));
  expect(records.map(({ records, cut }) => [records.map(String), cut])).toEqual([[["one", "tw"], [1]]]);
  expect(lastRun()).toMatchObject({
    state: "ok",
    records: 2,
    message: "8 bytes of the output were dropped, as outputlimit is 6",
  });
  expect(gaps()).toEqual(["output_limit: 8 bytes from 10"]);
});

test("output of just the limit is whole", async () => {
  begin({ interval: 10, outputlimit: 8, split: true }, { output: "one\ntwo\n" });
  await pass(11_000);
  expect(lastRun()).toMatchObject({ state: "ok", records: 2, message: "" });
  expect(gaps()).toEqual([]);
});

test("a limit of the output has no effect in a daemon, whose output has no end", async () => {
  begin({ isdaemon: true, outputlimit: 6 }, { output: "one\ntwo\nthree\n", lastsMs: 60_000 });
  await pass(11_000);
  const records = sent.flatMap(({ body }) => (body.$case === "records" ? body.value.records.map(String) : []));
  expect(records).toEqual(["one", "two", "three"]);
  expect(gaps()).toEqual([]);
});

test("after failures, runs pause twice as long each time, and what was due meanwhile is counted", async () => {
  begin({ backoff: 5 }, { code: 1 });
  await pass(16_500);
  expect(runs().map(([due]) => due)).toEqual([1, 4, 9, 15]);
  expect(gaps()).toEqual(["backoff: 2 runs from 2", "backoff: 4 runs from 5", "backoff: 5 runs from 10"]);
  expect(runner.problem).toBe("paused for 5 seconds after 4 failures in a row: ended with code 1");
});

test("a run that succeeds ends the row of failures", async () => {
  begin({ backoff: 60 }, { code: [1, 0, 1] });
  await pass(5_500);
  expect(runs()).toEqual([
    [1, "failed"],
    [4, "ok"],
    [5, "failed"],
  ]);
  expect(runner.problem).toBe("paused for 2 seconds after 1 failure in a row: ended with code 1");
});

test("a pause that is cut short counts what was due until then", async () => {
  begin({ backoff: 60 }, { code: 1 });
  await pass(2_500);
  abort.abort();
  await done;
  expect(gaps()).toEqual(["backoff: 1 runs from 2"]);
});

test("without backoff, failed runs do not pause", async () => {
  begin({}, { code: 1 });
  await pass(3_500);
  expect(runs().map(([due]) => due)).toEqual([1, 2, 3]);
  expect(runner.problem).toBeUndefined();
});

test("a daemon pauses up to its backoff before it is started again", async () => {
  begin({ isdaemon: true, backoff: 3 }, { code: 1 });
  await pass(11_000);
  // Each run takes a step.
  const starts = sent.flatMap(({ body }) => (body.$case === "run" ? [seconds(body.value.startedMs)] : []));
  expect(starts).toEqual([0, 1.5, 4, 7.5]);
});

test("the command gets the variables and the limits of its policy", async () => {
  begin({ environment: { PORT: "80" }, memorylimit: 1 << 20, cpulimit: 5, nice: 2 });
  await pass(1_500);
  expect(began[0]).toMatchObject({
    env: { PORT: "80", ODP_POLICY: "p", ODP_POLICY_FOLDER: "/p" },
    limits: { memoryBytes: 1 << 20, cpuSeconds: 5, nice: 2 },
  });
});

test("a policy without limits sets none", async () => {
  begin({});
  await pass(1_500);
  expect(began[0]?.limits).toBeUndefined();
});
