import { describe, expect, test } from "vitest";
import {
  AGENT_COMMANDS_WAITING_MAX,
  COMMAND_END_GRACE_MS,
  COMMAND_ID_MAX_CHARACTERS,
  COMMAND_LINE_MAX_BYTES,
  COMMAND_REACH_MS,
} from "../../../../common/limits.ts";
import {
  OWN,
  TARGET,
  EXEC,
  FILE,
  DEPLOY,
  TIMEOUT_MS,
  openCommands,
  ENDED,
  settled,
  listener,
  watchOf,
  output,
  result,
  SOURCE,
} from "../../../../test/helpers/hosts/agent-commands.ts";
import { CountedPauses } from "../../../../test/security/pauses.ts";
import type { LiveSession } from "../session/live-session.ts";
import { unstoredId } from "./unstored.ts";
import type { DispatchOptions, HostCommand } from "../types.ts";

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
    // The end of the previous session may arrive late.
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
  const depot = { name: "depot", version: "1", files: [FILE], command: "", remotePath: "", environment: {} };
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

describe("what a host says of commands", () => {
  test("of a preview reaches its caller and is never stored, also if no caller waits for it any more", async () => {
    const { commands, run, session, stored } = openCommands({ given: [] });
    session(3);
    const commandId = unstoredId("1");
    const told: string[] = [];
    const { outcome } = run({ commandId, onOutput: ({ data }) => told.push(String(data)) });
    await settled();
    const entries = [output(1, commandId, "a"), result(2, commandId)];
    expect(await commands.accept(SOURCE, entries)).toEqual(new Set());
    expect([told, (await outcome).state]).toEqual([["a"], "ok"]);
    expect(await commands.accept(SOURCE, [output(3, unstoredId("late"))])).toEqual(new Set());
    expect(stored).toEqual([]);
  });

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

  test("gives way to others after each entry that takes long, and comes in its order", async () => {
    using pauses = new CountedPauses();
    const { commands, session } = openCommands();
    session(3);
    const told: string[] = [];
    commands.serve(watchOf(), listener(told));
    const texts = Array.from({ length: 20 }, (_, at) => `part ${at}`);
    await commands.accept(SOURCE, [...texts.map((text, at) => output(at + 1, "p", text)), result(21, "p")]);
    expect(told).toEqual([...texts.map((text) => `output ${text}`), "result ok"]);
    // For output before it is stored, and for all when it is.
    expect(pauses.count).toBe(20 + 21);
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
