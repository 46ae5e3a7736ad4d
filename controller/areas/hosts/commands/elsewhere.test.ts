import { describe, expect, test } from "vitest";
import {
  COMMAND_END_GRACE_MS,
  COMMAND_PLACE_AGAIN_MS,
  COMMAND_PLACE_LATE_MS,
  COMMAND_REACH_MS,
} from "../../../../common/limits.ts";
import {
  OWN,
  UNKNOWN,
  TIMEOUT_MS,
  openCommands,
  ENDED,
  settled,
} from "../../../../test/helpers/hosts/agent-commands.ts";

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
    // The first call is not answered yet.
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
    // The earlier call reports something, and nothing changes.
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
    // By then the controller looks for it less often.
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
    // The controller had no report that the command arrived.
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
