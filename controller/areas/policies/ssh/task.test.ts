import { afterEach, beforeEach, expect, test } from "vitest";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { TestClock, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { CommandPolicySpec } from "../../../../common/api/policies.ts";
import { AppError } from "../../../../common/errors.ts";
import { POLICY_SSH_OUTPUT_MAX_BYTES } from "../../../../common/limits.ts";
import type { Entry } from "../../../../proto/gen/agent/v1/agent.ts";
import type { CommandOutcome, DispatchOptions, HostCommand } from "../../hosts/index.ts";
import { SshMarks } from "./marks.ts";
import { SshTask, type TaskParts } from "./task.ts";

const MINUTE_MS = 60_000;
const OF = { tenant: "matrix", host: "bare", policy: "p" };
const SPEC: CommandPolicySpec = {
  ...{ kind: "command", name: "p", rule: "/r", command: "run", ctype: 1, interval: 1, unit: "minute", split: true },
};

type Run = (command: HostCommand & { kind: "exec" }, options: DispatchOptions) => Promise<Partial<CommandOutcome>>;

let engine: TestEngine;
let clock: TestClock;
let stored: Map<string, Entry["body"]>;
let states: string[];
let run: Run;
let runs: number;

beforeEach(async () => {
  engine = await openTestEngine();
  clock = new TestClock();
  stored = new Map();
  states = [];
  runs = 0;
  run = () => Promise.resolve({});
});
afterEach(() => engine[Symbol.asyncDispose]());

interface Controller {
  readonly name: string;
  isLeader: boolean;
  task: (more?: Partial<CommandPolicySpec>) => SshTask;
}

function controller(name: string): Controller {
  const made: Controller = {
    ...{ name, isLeader: true },
    task: (more = {}) => new SshTask(parts(made), OF, { spec: { ...SPEC, ...more }, revision: 1 }),
  };
  return made;
}

/** The stores are those of the engine. The host, and the rows that entries become, are in memory. */
function parts(of: Controller): TaskParts {
  return {
    runtime: testRuntime(clock),
    marks: new SshMarks(engine, of.name),
    hosts: {
      run: async (_tenant, host, command, options) => {
        runs += 1;
        const startedMs = clock.nowMs();
        const ended = await run(command, options);
        return { host, state: "ok", code: 0, message: "", startedMs, endedMs: clock.nowMs(), ...ended };
      },
      depotVersion: (_tenant, _host, depot) => Promise.resolve(depot === "tool" ? "1" : undefined),
    },
    entries: {
      told: () => Promise.resolve({ time: { us: 1, proof: "" }, rules: [] }),
      store: ({ streamId }, batches) => {
        for (const { sequence, body } of batches.flatMap(({ entries }) => entries))
          stored.set(`${streamId}/${sequence}`, body);
        return Promise.resolve();
      },
    },
    isWanted: () => Promise.resolve(true),
    report: (_of, state) => Promise.resolve(void states.push(state)),
    requireLead: () => {
      if (!of.isLeader) throw new AppError("unavailable", "not the leader");
    },
  };
}

/** The stored entries, in short. */
const told = () =>
  [...stored.values()].map((body) => {
    if (body?.$case === "run") return `${body.value.state} ${body.value.records}`;
    if (body?.$case === "gap") return `${body.value.reason} ${body.value.count} ${body.value.unit}`;
    return body?.$case === "records" ? body.value.records.map(String).join() : "other";
  });
const outputs =
  (text: string): Run =>
  (_command, { onOutput }) => {
    onOutput?.({ stderr: false, data: Buffer.from(text) });
    return Promise.resolve({});
  };
async function begun(task: SshTask): Promise<SshTask> {
  await task.attend();
  clock.advance(MINUTE_MS);
  return task;
}

test("a policy runs once at each due time, and its records are stored with the run", async () => {
  run = outputs("a\nb\n");
  const task = controller("one").task();
  const nextMs = await task.attend();
  expect([runs, nextMs - clock.nowMs()]).toEqual([0, MINUTE_MS]);
  clock.advance(MINUTE_MS);
  await task.attend();
  await task.attend();
  expect([runs, told(), states]).toEqual([1, ["a,b", "ok 2"], ["running"]]);
});

test("of two controllers that attend to one due time, one runs it", async () => {
  const [one, other] = [controller("one").task(), controller("other").task()];
  await begun(one);
  await other.attend().catch(() => undefined);
  stored.clear();
  clock.advance(MINUTE_MS);
  runs = 0;
  const ended = await Promise.allSettled([one.attend(), other.attend()]);
  expect([runs, ended.filter(({ status }) => status === "rejected").length]).toEqual([1, 1]);
  expect(told().filter((entry) => entry.startsWith("ok"))).toHaveLength(1);
});

test("the run of a controller that ended before its records were stored is reported once, as interrupted", async () => {
  const [killed, next] = [controller("killed"), controller("next")];
  const task = await begun(killed.task());
  let resolve = (_ended: object): void => undefined;
  run = () => new Promise((ended) => (resolve = ended));
  const attending = task.attend();
  await expect.poll(() => runs).toBe(1);
  killed.isLeader = false;
  await next.task().attend();
  resolve({});
  await expect(attending).rejects.toMatchObject({ code: "unavailable" });
  expect([runs, told()]).toEqual([1, ["interrupted 0"]]);
});

test("due times that no controller saw are counted and not made up", async () => {
  await begun(controller("former").task());
  clock.advance(4 * MINUTE_MS);
  const task = controller("next").task();
  await task.attend();
  expect([runs, told()]).toEqual([0, ["controller_down 5 runs"]]);
  clock.advance(MINUTE_MS);
  await task.attend();
  expect([runs, told()]).toEqual([1, ["controller_down 5 runs", "ok 0"]]);
});

test("due times during a run are skipped and counted, or queued as the policy says", async () => {
  const slow: Run = () => {
    clock.advance(2.5 * MINUTE_MS);
    return Promise.resolve({});
  };
  for (const [overlap, entries] of [
    ["skip", ["ok 0", "overrun 2 runs"]],
    ["queue", ["ok 0", "overrun 1 runs", "ok 0"]],
  ] as const) {
    run = slow;
    const task = await begun(controller(overlap).task({ overlap }));
    await task.attend();
    run = () => Promise.resolve({});
    await task.attend();
    expect(told()).toEqual(entries);
    await task.forget();
    stored.clear();
    clock.advance(MINUTE_MS / 2);
  }
});

test("a host that cannot be reached is tried after pauses that grow, and then runs again", async () => {
  run = () => Promise.resolve({ state: "unreachable", message: "no route" });
  const task = await begun(controller("one").task());
  const pauses: number[] = [];
  for (let failures = 1; failures <= 3; failures++) {
    const nextMs = await task.attend();
    pauses.push((nextMs - clock.nowMs()) / MINUTE_MS);
    clock.advance(nextMs - clock.nowMs());
    if (failures === 3) run = () => Promise.resolve({});
    const afterMs = await task.attend();
    clock.advance(afterMs - clock.nowMs());
  }
  expect(states[0]).toBe(
    "failed: paused for 90 seconds after 1 failure in a row: The host cannot be reached: no route",
  );
  expect(pauses).toEqual([1.5, 3, 3.75]);
  await task.attend();
  expect(states.at(-1)).toBe("running");
});

test("output beyond the bounds is dropped and counted", async () => {
  run = outputs("x\n".repeat(POLICY_SSH_OUTPUT_MAX_BYTES / 4) + "y".repeat(POLICY_SSH_OUTPUT_MAX_BYTES));
  const task = await begun(controller("one").task({ split: false }));
  await task.attend();
  expect(told().slice(1)).toEqual(["ok 1", `output_limit ${POLICY_SSH_OUTPUT_MAX_BYTES / 2} bytes`]);
});

test("a policy whose depot is not on the host fails with the reason, and does not run", async () => {
  const task = await begun(controller("one").task({ ctype: 0, depotname: "tool", depotversion: "2" }));
  await task.attend();
  expect([runs, told()]).toEqual([0, ["failed 0"]]);
  expect(states).toEqual([
    "failed: The version 2 of the depot tool is not on the host, but its version 1: deploy it there.",
  ]);
});

test("limits of processes, the user and the variables reach the host", async () => {
  const given: HostCommand[] = [];
  run = (command) => {
    given.push(command);
    return Promise.resolve({});
  };
  const task = await begun(controller("one").task({ cpulimit: 5, user: "web", environment: { A: "1" } }));
  await task.attend();
  expect(given).toEqual([
    {
      kind: "exec",
      line: `set -- 'run'; (ulimit -S -t 5 && ulimit -H -t 10) || exit 126; ulimit -S -t 5; ulimit -H -t 10; exec /bin/sh -c "$1"`,
      environment: { A: "1", ODP_POLICY: "p" },
      user: "web",
    },
  ]);
});

test("a policy that is stopped ends its run, which is reported as interrupted, and leaves no mark", async () => {
  const task = await begun(controller("one").task());
  run = (_command, { signal }) =>
    new Promise((resolve) => signal?.addEventListener("abort", () => resolve({ state: "cancelled" })));
  const attending = task.attend();
  await expect.poll(() => runs).toBe(1);
  task.stop();
  await attending;
  await task.forget();
  expect(told()).toEqual(["interrupted 0"]);
  expect(await new SshMarks(engine, "one").all("matrix")).toEqual([]);
});
