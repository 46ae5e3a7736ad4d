import { describe, expect, test } from "vitest";
import {
  AGENT_COMMANDS_WAITING_MAX,
  COMMAND_END_GRACE_MS,
  COMMAND_ID_MAX_CHARACTERS,
  COMMAND_LINE_MAX_BYTES,
  COMMAND_PLACE_AGAIN_MS,
  COMMAND_PLACE_LATE_MS,
  COMMAND_REACH_MS,
} from "../../../../common/limits.ts";
import type { ControllerFrame, Entry } from "../../../../proto/gen/agent/v1/agent.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../../test/helpers/runtime.ts";
import type { ObjectRow } from "../../objects/index.ts";
import type { LiveSession } from "../session/live-session.ts";
import type { CommandListener, DispatchOptions, HostCommand, PeerWatch, PeerWatcher } from "../types.ts";
import { AgentCommands } from "./commands.ts";

const OWN = "a";
/** A controller whose address is not known yet. */
const UNKNOWN = "unknown";
const TARGET = { tenant: "matrix", host: "web-1", traceparent: "" };
const EXEC: HostCommand = { kind: "exec", line: "true" };
const FILE = { path: "run.sh", digest: "d1", size: 1, executable: true };
const DEPLOY: HostCommand = { kind: "deploy", name: "depot", version: "1", files: [FILE] };
const TIMEOUT_MS = 60_000;

interface Call {
  readonly controller: string;
  readonly watch: PeerWatch;
  readonly watcher: PeerWatcher;
  readonly told: string[];
}

interface World {
  /** Of the host, if this controller has it. */
  session: LiveSession | undefined;
  /** The controller that is known to have it. */
  holder: { controller: string; epoch: number } | undefined;
  /** How often that was asked. */
  lookups: number;
  /** What is stored of commands, beside what a test has them told. */
  rows: readonly ObjectRow[];
  /** Resolves when the store has taken what it was given. */
  storing: Promise<void>;
}

/** The commands of a controller whose sessions, and whose view of other controllers, a test sets. */
function openCommands({ given }: { readonly given?: readonly string[] } = {}) {
  const clock = new TestClock();
  const sent: string[] = [];
  const stored: unknown[] = [];
  const calls: Call[] = [];
  const state: World = { session: undefined, holder: undefined, lookups: 0, rows: [], storing: Promise.resolve() };
  const commands = new AgentCommands({
    runtime: testRuntime(clock),
    controllerId: OWN,
    objects: {
      ingest: async (_principal, _path, records) => {
        await state.storing;
        stored.push(...records);
        return [] as never;
      },
      async *read(_principal, request) {
        await Promise.resolve();
        yield state.rows.filter((row) => row.class.path === request.class);
      },
      get: () => Promise.resolve([]),
    },
    live: (tenant, host) => (tenant === TARGET.tenant && host === TARGET.host ? state.session : undefined),
    presence: {
      holderOf: () => {
        state.lookups++;
        return state.holder ? Promise.resolve(state.holder as never) : Promise.reject(new Error("away"));
      },
    },
    peers: {
      watch: (controller, watch, watcher) => {
        if (controller === UNKNOWN) return undefined;
        const told: string[] = [];
        calls.push({ controller, watch, watcher, told });
        return { cancel: () => told.push("cancel"), end: () => told.push("end") };
      },
    },
    actAs: () => Promise.resolve(testPrincipal()),
    ...(given && { given: (_tenant, _host, id) => Promise.resolve(given.includes(id)) }),
  });
  const frames = (frame: ControllerFrame["frame"]): string => {
    if (frame?.$case === "command") {
      const leftMs = frame.value.deadlineMs - frame.value.sentMs;
      return `${frame.value.id} in ${frame.value.epoch}, ${leftMs} ms left`;
    }
    return frame?.$case === "cancel" ? `cancel ${frame.value.commandId} in ${frame.value.epoch}` : `${frame?.$case}`;
  };
  return {
    commands,
    clock,
    sent,
    stored,
    calls,
    state,
    /** The host's session is here, under that epoch; absent: it is over. */
    session: (epoch?: number) => {
      const { tenant, host } = TARGET;
      state.session =
        epoch === undefined
          ? undefined
          : ({
              epoch,
              identity: { tenant, host, serial: "1" },
              send: (frame: ControllerFrame["frame"]) => sent.push(frames(frame)),
            } as unknown as LiveSession);
      if (epoch !== undefined) commands.follow(tenant, host);
    },
    run: (options: Partial<DispatchOptions> = {}, command = EXEC) => {
      const outcome = commands.run(TARGET, command, { commandId: "c", timeoutMs: TIMEOUT_MS, ...options });
      const now: { ended?: string } = {};
      void outcome.then(({ state: as, message }) => (now.ended = message === "" ? as : `${as}: ${message}`));
      return { outcome, now };
    },
  };
}

/** The stored end of the command `c`. */
const ENDED = {
  id: "1",
  class: { path: "/matrix/system/command" },
  values: { command: "c", host: TARGET.host, state: "ok" },
} as unknown as ObjectRow;

/** Whatever is under way without waiting for time comes to its end. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}

function listener(told: string[]): CommandListener {
  return {
    output: ({ data }) => told.push(`output ${String(data)}`),
    result: ({ state }) => told.push(`result ${state}`),
    state: ({ state }) => told.push(`state ${state}`),
    lost: () => told.push("lost"),
    sessionOver: () => told.push("session over"),
  };
}

function watchOf(body: PeerWatch["command"]["body"] = undefined, host = TARGET.host): PeerWatch {
  const command = { id: "p", epoch: 0, deadlineMs: 1_000, traceparent: "", sentMs: 0, body };
  return { tenant: TARGET.tenant, host, command };
}

const output = (sequence: number, commandId: string, data = "x"): Entry => ({
  sequence,
  timeMs: 1,
  traceparent: "",
  body: { $case: "output", value: { commandId, stderr: false, offset: 0, data: Buffer.from(data) } },
});
const result = (sequence: number, commandId: string): Entry => ({
  sequence,
  timeMs: 1,
  traceparent: "",
  body: {
    $case: "result",
    value: { commandId, state: "ok", code: 0, message: "", startedMs: 1, endedMs: 2 },
  },
});
const SOURCE = { ...TARGET, streamId: "s" };

describe("a command that another controller sends through the session here", () => {
  test("is sent under the epoch of that session; without a session it is not taken", () => {
    const { commands, session, sent } = openCommands();
    expect(commands.serve(watchOf(), listener([]))).toBeUndefined();
    session(3);
    const served = commands.serve(watchOf(), listener([]));
    served?.cancel();
    expect([served?.epoch, sent]).toEqual([3, ["p in 3, 1000 ms left", "cancel p in 3"]]);
  });

  test("hears what its host says until its caller leaves", async () => {
    const { commands, session, state } = openCommands();
    session(3);
    const told: string[] = [];
    const served = commands.serve(watchOf(), listener(told));
    commands.state(state.session!, { commandId: "p", state: "refused", message: "" });
    await commands.accept(SOURCE, [output(1, "p"), output(2, "other"), result(3, "p")]);
    expect(told).toEqual(["state refused", "output x", "result ok"]);
    served?.end();
    await commands.accept(SOURCE, [output(4, "p")]);
    expect(told).toHaveLength(3);
  });

  test("is told of the end of its session, and of no other one", () => {
    const { commands, session } = openCommands();
    session(3);
    const told: string[] = [];
    const served = commands.serve(watchOf(), listener(told));
    // The end of the session before this one may come late.
    commands.left(TARGET, 2);
    commands.left({ ...TARGET, host: "web-2" }, 3);
    commands.left({ ...TARGET, tenant: "other" }, 3);
    expect(told).toEqual([]);
    commands.left(TARGET, 3);
    expect(told).toEqual(["session over"]);
    served?.end();
    commands.left(TARGET, 3);
    expect(told).toEqual(["session over"]);
  });
});

test("contents are open to a host as long as a deployment that needs them goes on", async () => {
  const { commands, session, run, state } = openCommands();
  session(3);
  const open = () =>
    [
      commands.refersTo("matrix", "web-1", "d1"),
      commands.refersTo("matrix", "web-1", "d2"),
      commands.refersTo("matrix", "web-2", "d1"),
      commands.refersTo("other", "web-1", "d1"),
    ].map(Number);
  run({ commandId: "e" });
  expect(open()).toEqual([0, 0, 0, 0]);
  const { outcome } = run({ commandId: "d" }, DEPLOY);
  expect(open()).toEqual([1, 0, 0, 0]);
  commands.state(state.session!, { commandId: "d", state: "refused", message: "full" });
  await outcome;
  expect(open()).toEqual([0, 0, 0, 0]);
  const depot = { name: "depot", version: "1", files: [FILE], command: "", remotePath: "" };
  const served = commands.serve(watchOf({ $case: "deploy", value: depot }), listener([]));
  expect(open()).toEqual([1, 0, 0, 0]);
  served?.end();
  expect(open()).toEqual([0, 0, 0, 0]);
});

describe("a command is not begun", () => {
  test.each<[why: string, options: Partial<DispatchOptions>, command: HostCommand, ended: string]>([
    [
      "when it was cancelled before",
      { signal: AbortSignal.abort() },
      EXEC,
      "cancelled: The command was cancelled before it was sent.",
    ],
    [
      "when its line is too long",
      {},
      { kind: "exec", line: "x".repeat(COMMAND_LINE_MAX_BYTES + 1) },
      `failed: The command line is longer than ${COMMAND_LINE_MAX_BYTES} bytes.`,
    ],
  ])("%s", async (_why, options, command, ended) => {
    const { session, run, sent } = openCommands();
    session(3);
    const { now } = run(options, command);
    await settled();
    expect([now.ended, sent]).toEqual([ended, []]);
  });

  test("when no controller has a session of its host in time; it is sent to one that comes before", async () => {
    const { run, clock, session, sent } = openCommands();
    const [late, soon] = [run({ commandId: "late" }), run({ commandId: "soon" })];
    clock.advance(COMMAND_REACH_MS - 1);
    await settled();
    expect([late.now, soon.now]).toEqual([{}, {}]);
    clock.advance(1);
    await settled();
    const ended = "unreachable: No controller holds a session of web-1: nothing was sent.";
    expect([late.now.ended, soon.now.ended]).toEqual([ended, ended]);
    const { now } = run({ commandId: "next" });
    session(3);
    clock.advance(COMMAND_REACH_MS);
    await settled();
    expect([now, sent]).toEqual([{}, [`next in 3, ${TIMEOUT_MS} ms left`]]);
  });

  test("with a line as long as may be it is", () => {
    const { session, run, sent } = openCommands();
    session(3);
    run({}, { kind: "exec", line: "x".repeat(COMMAND_LINE_MAX_BYTES) });
    expect(sent).toHaveLength(1);
  });
});

test("commands wait for their results up to a number, and the next is refused", async () => {
  const { run, state } = openCommands();
  state.holder = { controller: OWN, epoch: 1 };
  for (let at = 1; at < AGENT_COMMANDS_WAITING_MAX; at++) run({ commandId: String(at) });
  const [last, over] = [run({ commandId: "last" }), run({ commandId: "over" })];
  await settled();
  expect([last.now, over.now.ended]).toEqual([{}, "failed: Too many commands wait for their results."]);
});

describe("a command in sessions of this controller", () => {
  test("is sent once in each, with the time it has left, though its caller repeats it", () => {
    const { commands, run, clock, session, sent } = openCommands();
    session(3);
    expect(run().outcome).toBe(run().outcome);
    commands.follow("matrix", "web-1");
    clock.advance(1_000);
    session(4);
    expect(sent).toEqual([`c in 3, ${TIMEOUT_MS} ms left`, `c in 4, ${TIMEOUT_MS - 1_000} ms left`]);
  });

  test("goes to the session of its own host", () => {
    const { commands, run, session, state, sent } = openCommands();
    run();
    session(3);
    const here = state.session;
    state.session = { ...here!, epoch: 4 } as LiveSession;
    commands.follow("matrix", "web-2");
    commands.follow("other", "web-1");
    commands.left({ ...TARGET, host: "web-2" }, 3);
    expect(sent).toHaveLength(1);
    commands.left(TARGET, 3);
    expect(sent).toHaveLength(2);
  });

  test("that a caller cancels is ended by its host, or given up when the host says nothing", async () => {
    const { run, clock, session, sent } = openCommands();
    session(3);
    const caller = new AbortController();
    const { now } = run({ signal: caller.signal });
    caller.abort();
    clock.advance(COMMAND_END_GRACE_MS - 1);
    await settled();
    expect([sent.slice(1), now]).toEqual([["cancel c in 3"], {}]);
    clock.advance(1);
    await settled();
    expect(now.ended).toBe("cancelled: The command was cancelled.");
  });

  test("that ended while nobody waited for it ends by what is stored", async () => {
    const { run, session, state } = openCommands();
    const { now } = run();
    state.rows = [ENDED];
    await settled();
    expect(now).toEqual({});
    session(3);
    await settled();
    expect(now.ended).toBe("ok");
  });

  test("that was cancelled is waited for when the session that was told is gone, and told in the next", async () => {
    const { run, clock, session, sent } = openCommands();
    session(3);
    const caller = new AbortController();
    const { now } = run({ signal: caller.signal });
    caller.abort();
    session(undefined);
    clock.advance(COMMAND_END_GRACE_MS);
    await settled();
    expect(now).toEqual({});
    session(4);
    expect(sent.slice(2)).toEqual(["c in 4, 0 ms left", "cancel c in 4"]);
  });

  test("that was perhaps sent before is cancelled at its host, also when its caller is gone from the beginning", async () => {
    const { run, session, sent } = openCommands();
    const { now } = run({ signal: AbortSignal.abort(), mayRun: true });
    await settled();
    expect(now).toEqual({});
    session(3);
    expect(sent).toEqual(["c in 3, 0 ms left", "cancel c in 3"]);
  });

  test("that was never sent ends at once when it is cancelled", async () => {
    const { run, session, sent } = openCommands();
    const caller = new AbortController();
    const { now } = run({ signal: caller.signal });
    caller.abort();
    await settled();
    session(3);
    expect([now.ended, sent]).toEqual(["cancelled: The command was cancelled.", []]);
  });

  test("whose time is over is ended by its host, or given up after a grace", async () => {
    const { run, clock, session, sent } = openCommands();
    session(3);
    const { now } = run();
    clock.advance(TIMEOUT_MS);
    expect(sent.slice(1)).toEqual(["cancel c in 3"]);
    clock.advance(COMMAND_END_GRACE_MS - 1);
    await settled();
    expect(now).toEqual({});
    clock.advance(1);
    await settled();
    expect(now.ended).toBe(`timeout: The command did not end within ${TIMEOUT_MS} ms.`);
  });

  test("whose time is over when it was cancelled, and its host could not be told, says both", async () => {
    const { run, clock, session } = openCommands();
    session(3);
    const caller = new AbortController();
    const { now } = run({ signal: caller.signal });
    session(undefined);
    caller.abort();
    clock.advance(TIMEOUT_MS);
    await settled();
    expect(now.ended).toBe("cancelled: The command was cancelled; its host has not said how it ended.");
  });

  test("whose time is over before it could be sent is unreachable", async () => {
    const { run, clock } = openCommands();
    const { now } = run({ timeoutMs: 1_000 });
    clock.advance(1_000);
    await settled();
    expect(now.ended).toContain("unreachable");
  });

  test("whose time is over while its host is away ends without the grace", async () => {
    const { run, clock, session } = openCommands();
    session(3);
    const { now } = run();
    session(undefined);
    clock.advance(TIMEOUT_MS);
    await settled();
    expect(now.ended).toBe(`timeout: The command did not end within ${TIMEOUT_MS} ms.`);
  });

  test("leaves nothing behind when it ends", async () => {
    const { commands, run, clock, session, state } = openCommands({ given: [] });
    session(3);
    const { outcome } = run();
    commands.state(state.session!, { commandId: "c", state: "refused", message: "full" });
    expect(await outcome).toMatchObject({ state: "failed", message: "full" });
    expect([...(await commands.accept(SOURCE, [output(1, "c")]))]).toEqual(["c"]);
    expect(clock.waiting).toBe(0);
    const caller = new AbortController();
    const cancelled = run({ signal: caller.signal });
    caller.abort();
    commands.state(state.session!, { commandId: "c", state: "refused", message: "full" });
    await cancelled.outcome;
    expect(clock.waiting).toBe(0);
    session(undefined);
    const other = new AbortController();
    const away = run({ signal: other.signal });
    await settled();
    other.abort();
    await away.outcome;
    expect(clock.waiting).toBe(0);
  });
});

describe("a command whose host has its session at another controller", () => {
  const holder = (controller: string, epoch = 3) => ({ controller, epoch });
  const open = async () => {
    const world = openCommands();
    world.state.holder = holder("b");
    const caller = new AbortController();
    const { now } = world.run({ signal: caller.signal });
    await settled();
    return { ...world, now, caller };
  };

  test("is sent by that one, once for each of its sessions", async () => {
    const { commands, calls, state } = await open();
    expect(calls).toMatchObject([
      { controller: "b", watch: { tenant: "matrix", host: "web-1", command: { id: "c", epoch: 0 } } },
    ]);
    // The answer to the first call is to come still.
    state.holder = holder("b", 9);
    commands.follow("matrix", "web-1");
    await settled();
    state.holder = holder("b", 3);
    calls[0]?.watcher.watching(3);
    await settled();
    commands.follow("matrix", "web-1");
    await settled();
    expect(calls).toHaveLength(1);
    state.holder = holder("b", 4);
    commands.follow("matrix", "web-1");
    await settled();
    expect([calls.length, calls[0]?.told]).toEqual([2, ["end"]]);
  });

  test("ends by what is stored when it was sent there before", async () => {
    const { calls, state, now } = await open();
    state.rows = [ENDED];
    await settled();
    expect(now).toEqual({});
    calls[0]?.watcher.watching(3);
    await settled();
    expect(now.ended).toBe("ok");
  });

  test("follows to the next session that is known when the answer for an earlier one comes", async () => {
    const { calls, state } = await open();
    state.holder = holder("b", 4);
    calls[0]?.watcher.watching(3);
    await settled();
    expect([calls.length, calls[0]?.told]).toEqual([2, ["end"]]);
  });

  test("moves with the session to a third, and home", async () => {
    const { commands, calls, state, session, sent } = await open();
    calls[0]?.watcher.watching(3);
    await settled();
    state.holder = holder("c", 3);
    commands.follow("matrix", "web-1");
    await settled();
    expect([calls[0]?.told, calls[1]?.controller]).toEqual([["end"], "c"]);
    // What the call that was left says changes nothing.
    calls[0]?.watcher.notHeld();
    calls[0]?.watcher.gone();
    calls[0]?.watcher.watching(9);
    await settled();
    expect(calls).toHaveLength(2);
    session(5);
    expect([calls[1]?.told, sent]).toEqual([["end"], [`c in 5, ${TIMEOUT_MS} ms left`]]);
  });

  test("is looked for again after a moment where no session is any more", async () => {
    const { calls, clock } = await open();
    calls[0]?.watcher.notHeld();
    clock.advance(COMMAND_PLACE_AGAIN_MS - 1);
    await settled();
    expect(calls).toHaveLength(1);
    clock.advance(1);
    await settled();
    expect(calls).toHaveLength(2);
  });

  test("is looked for again where that controller cannot be asked", async () => {
    const { run, clock, state, calls } = openCommands();
    state.holder = holder(UNKNOWN);
    run();
    await settled();
    state.holder = holder("b");
    clock.advance(COMMAND_PLACE_AGAIN_MS);
    await settled();
    expect(calls).toMatchObject([{ controller: "b" }]);
  });

  test("is unreachable when it was sent by none in time, and waited for when it was perhaps sent", async () => {
    const unsent = await open();
    unsent.state.holder = undefined;
    unsent.calls[0]?.watcher.notHeld();
    unsent.clock.advance(COMMAND_REACH_MS);
    await settled();
    expect(unsent.now.ended).toContain("unreachable");
    const late = await open();
    late.clock.advance(COMMAND_REACH_MS);
    await settled();
    expect(late.now).toEqual({});
    late.calls[0]?.watcher.notHeld();
    await settled();
    expect(late.now.ended).toContain("unreachable");
    const sent = await open();
    sent.state.holder = undefined;
    sent.calls[0]?.watcher.watching(3);
    await settled();
    sent.calls[0]?.watcher.notHeld();
    sent.clock.advance(COMMAND_REACH_MS);
    await settled();
    expect(sent.now).toEqual({});
    const perhaps = await open();
    perhaps.state.holder = undefined;
    perhaps.calls[0]?.watcher.gone();
    perhaps.clock.advance(COMMAND_REACH_MS);
    await settled();
    expect(perhaps.now).toEqual({});
    // By then it is looked for less often.
    perhaps.clock.advance(COMMAND_PLACE_AGAIN_MS);
    await settled();
    perhaps.state.holder = holder("b");
    perhaps.clock.advance(COMMAND_PLACE_LATE_MS - COMMAND_PLACE_AGAIN_MS - 1);
    await settled();
    expect(perhaps.calls).toHaveLength(1);
    perhaps.clock.advance(COMMAND_PLACE_AGAIN_MS + 1);
    await settled();
    expect(perhaps.calls).toHaveLength(2);
  });

  test("is looked for by one call at a time, and not sent when it was cancelled meanwhile", async () => {
    const { commands, run, state, calls } = openCommands();
    state.holder = holder("b");
    const caller = new AbortController();
    const { now } = run({ signal: caller.signal });
    commands.follow("matrix", "web-1");
    expect(state.lookups).toBe(1);
    caller.abort();
    await settled();
    expect([now.ended, calls]).toEqual(["cancelled: The command was cancelled.", []]);
  });

  test("is sent here when the session comes here while it is looked for", async () => {
    const { run, state, session, calls, sent } = openCommands();
    state.holder = holder("b");
    session(3);
    const here = state.session;
    session(undefined);
    run();
    state.session = here;
    await settled();
    expect([calls, sent]).toEqual([[], [`c in 3, ${TIMEOUT_MS} ms left`]]);
  });

  test("that was cancelled, and turns out not to be there, is sent by none", async () => {
    const { caller, calls, clock, session, sent, now } = await open();
    caller.abort();
    calls[0]?.watcher.notHeld();
    clock.advance(COMMAND_PLACE_AGAIN_MS);
    await settled();
    session(3);
    clock.advance(COMMAND_REACH_MS);
    await settled();
    expect([calls.length, sent, now.ended]).toEqual([1, [], expect.stringContaining("nothing was sent")]);
  });

  test("is left there when it ends", async () => {
    const { calls, now } = await open();
    calls[0]?.watcher.watching(3);
    calls[0]?.watcher.state({ commandId: "c", state: "refused", message: "full" });
    await settled();
    expect([calls[0]?.told, now.ended]).toEqual([["end"], "failed: full"]);
  });

  test("is not asked of this controller, which may have had the session a moment ago", async () => {
    const { run, state, calls, session, sent } = openCommands();
    state.holder = holder(OWN);
    run();
    await settled();
    expect(calls).toEqual([]);
    session(3);
    expect(sent).toHaveLength(1);
  });

  test("is ended there when it is cancelled, or when its time is over", async () => {
    const cancelled = await open();
    cancelled.caller.abort();
    expect(cancelled.calls[0]?.told).toEqual(["cancel"]);
    cancelled.clock.advance(COMMAND_END_GRACE_MS);
    await settled();
    // It was not told that the command is there.
    expect(cancelled.now).toEqual({});
    cancelled.calls[0]?.watcher.watching(3);
    expect(cancelled.calls[0]?.told).toEqual(["cancel", "cancel"]);
    cancelled.clock.advance(COMMAND_END_GRACE_MS);
    await settled();
    expect(cancelled.now.ended).toBe("cancelled: The command was cancelled.");
    const late = await open();
    late.calls[0]?.watcher.watching(3);
    late.clock.advance(TIMEOUT_MS);
    expect(late.calls[0]?.told).toEqual(["cancel"]);
    late.clock.advance(COMMAND_END_GRACE_MS + 1_000);
    await settled();
    expect(late.now.ended).toContain("timeout");
  });
});

describe("what a host says of commands", () => {
  test("is stored of those that it was given, or that are waited for here, and named of all others", async () => {
    const { commands, run, session, stored } = openCommands({ given: ["known"] });
    session(3);
    run({ commandId: "waited" });
    const long = "x".repeat(COMMAND_ID_MAX_CHARACTERS + 1);
    const entries = ["known", "waited", "foreign", long].map((id, at) => output(at + 1, id));
    const foreign = await commands.accept(SOURCE, [
      ...entries,
      result(9, "foreign"),
      { ...entries[0]!, body: undefined },
    ]);
    expect([...foreign]).toEqual(["foreign", long]);
    expect(stored).toMatchObject([{ values: { command: "known" } }, { values: { command: "waited" } }]);
  });

  test("an id that is too long is never one that was given", async () => {
    const long = "x".repeat(COMMAND_ID_MAX_CHARACTERS);
    const { commands } = openCommands({ given: [long, `${long}x`] });
    expect([...(await commands.accept(SOURCE, [output(1, long), output(2, `${long}x`)]))]).toEqual([`${long}x`]);
  });

  test("reaches a caller here before it is stored, and once, and its end after that", async () => {
    const { commands, run, session, state } = openCommands();
    session(3);
    let text = "";
    let stored = (): void => undefined;
    state.storing = new Promise((resolve) => (stored = resolve));
    const { now } = run({ onOutput: ({ data }) => void (text += String(data)) });
    const accepted = commands.accept(SOURCE, [output(1, "c", "one"), result(2, "c"), output(3, "other")]);
    await settled();
    expect([text, now]).toEqual(["one", {}]);
    stored();
    await accepted;
    await settled();
    expect([text, now.ended]).toEqual(["one", "ok"]);
  });
});
