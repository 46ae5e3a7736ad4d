import { describe, expect, test } from "vitest";
import {
  SESSION_AGENT_SILENCE_MAX_MS,
  SESSION_HEARTBEAT_MS,
  SESSION_WINDOW_ENTRIES,
  SESSION_WINDOW_MAX_BYTES,
} from "../../../../common/limits.ts";
import { batch, gate, heard, SessionWorld, settled } from "../../../../test/helpers/hosts/session-world.ts";

describe("entries", () => {
  test("are kept and acknowledged; a batch that is sent again is passed over", async () => {
    const world = new SessionWorld();
    await using controller = await world.controller();
    const { session, wire } = await controller.come("web");
    await session.receive(batch([1, 2]));
    await settled();
    await session.receive(batch([1, 2]));
    await session.receive(batch([3]));
    await settled();
    expect(controller.kept.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
    expect(wire.of("acknowledge").map(({ throughSequence }) => throughSequence)).toEqual([2, 3]);
    expect(controller.sessions.waitingBytes).toBe(0);
  });

  test("beyond two windows end the session; within them they wait", async () => {
    const world = new SessionWorld();
    await using controller = await world.controller();
    const hold = gate();
    controller.gate = hold.closed;
    const { session } = await controller.come("web");
    const window = Array.from({ length: SESSION_WINDOW_ENTRIES }, (_, at) => at + 1);
    await session.receive(batch(window));
    await session.receive(batch(window.map((sequence) => sequence + SESSION_WINDOW_ENTRIES)));
    await expect(session.receive(batch([2 * SESSION_WINDOW_ENTRIES + 1]))).rejects.toMatchObject({ code: "limited" });
    hold.open();
  });

  test("of a session that is over take no room, and none of it is taken any more", async () => {
    const world = new SessionWorld();
    await using controller = await world.controller();
    const hold = gate();
    controller.gate = hold.closed;
    const { session } = await controller.come("web");
    await session.receive(batch([1], 1_000));
    expect(controller.sessions.waitingBytes).toBeGreaterThan(1_000);
    await session.ended();
    expect(controller.sessions.waitingBytes).toBe(0);
    await session.receive(batch([2], 1_000));
    await session.receive(heard({ late: "1" }));
    hold.open();
    await settled();
    expect(controller.kept.map(({ sequence }) => sequence)).toEqual([1]);
    expect(controller.facts).toEqual([]);
    expect(controller.sessions.waitingBytes).toBe(0);
  });

  test("that wait for room are not taken for silence", async () => {
    const world = new SessionWorld();
    await using controller = await world.controller();
    const hold = gate();
    controller.gate = hold.closed;
    const { session, wire } = await controller.come("web");
    await session.receive(batch([1], SESSION_WINDOW_MAX_BYTES));
    const waiting = session.receive(batch([2], 1));
    await world.pass(2 * SESSION_AGENT_SILENCE_MAX_MS);
    expect(wire.refused).toBeUndefined();
    hold.open();
    await waiting;
    await settled();
    expect(controller.kept.map(({ sequence }) => sequence)).toEqual([1, 2]);
    // The silence timer starts when the stream is read again.
    await world.pass(SESSION_HEARTBEAT_MS);
    expect(wire.refused).toBeUndefined();
    await world.pass(2 * SESSION_AGENT_SILENCE_MAX_MS);
    expect(wire.refused).toMatchObject({ code: "deadline" });
  });
});
