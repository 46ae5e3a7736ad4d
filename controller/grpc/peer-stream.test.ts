import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { PEER_BEAT_MS, PEER_QUEUE_MAX_BYTES, PEER_QUEUE_MAX_FRAMES, PEER_SILENCE_MAX_MS } from "../../common/limits.ts";
import type { PeerEvent, PeerRequest } from "../../proto/gen/peer/v1/peer.ts";
import { TestClock, testRuntime } from "../../test/helpers/time/runtime.ts";
import type { CommandListener } from "../areas/hosts/index.ts";
import type { PeerBroadcast } from "../areas/notifications/index.ts";
import { PeerStream, type PeerServerCall } from "./peer-stream.ts";

/** The connection of a controller that reads when the test says so. */
class SlowCall extends EventEmitter {
  readonly events: NonNullable<PeerEvent["event"]>[] = [];
  readonly #unread: (() => void)[] = [];

  write({ event }: PeerEvent, taken: () => void): void {
    if (event) this.events.push(event);
    this.#unread.push(taken);
  }

  read(): void {
    for (const taken of this.#unread.splice(0)) taken();
  }

  end(): void {
    this.emit("close");
  }

  ask(request: NonNullable<PeerRequest["request"]>): void {
    this.emit("data", { request });
  }

  kinds(): string[] {
    return this.events.map(({ $case }) => $case);
  }
}

const RECORD = {
  id: "h/s/1/0",
  text: "a,1",
  timeMs: 1,
  host: "h",
  source: "/a",
  groups: { site: "x" },
  zone: "Europe/Berlin",
};

function open() {
  const call = new SlowCall();
  const clock = new TestClock();
  const given: { listener?: CommandListener; outlet?: PeerBroadcast; ended: number; over: boolean } = {
    ended: 0,
    over: false,
  };
  const services = {
    serve: (_watch: unknown, listener: CommandListener) => {
      given.listener = listener;
      return { epoch: 7, cancel: () => undefined, end: () => void given.ended++ };
    },
    tunnel: () => Promise.reject(new Error("no tunnel is asked for")),
    refreshHere: () => undefined,
    recent: (tenant: string, policy: string) => ({ classes: [`/${tenant}/${policy}`], records: [RECORD], leftOut: 2 }),
    attach: (outlet: PeerBroadcast) => {
      given.outlet = outlet;
      return () => delete given.outlet;
    },
  };
  const runtime = testRuntime(clock);
  new PeerStream(call as unknown as PeerServerCall, { services, runtime, over: () => (given.over = true) });
  return { call, clock, given };
}

const command = { id: "c", epoch: 0, deadlineMs: 1, traceparent: "", sentMs: 0, body: undefined };
const watch = { $case: "watch", value: { call: 1, tenant: "matrix", host: "h", command } } as const;
const hello = { $case: "hello", value: { protocol: 1 } } as const;

describe("a controller that reads slowly", () => {
  it("loses events beyond the bound, by count and by bytes, and is told so once it reads", () => {
    const { call, given } = open();
    call.ask(hello);
    call.ask(watch);
    const piece = (bytes: number) => ({ commandId: "c", stderr: false, offset: 0, data: Buffer.alloc(bytes) });
    for (let count = 0; count < PEER_QUEUE_MAX_FRAMES * 2; count++) given.listener?.output(piece(1));
    expect(call.events).toHaveLength(PEER_QUEUE_MAX_FRAMES);
    given.listener?.result({ commandId: "c", state: "ok", code: 0, message: "", startedMs: 0, endedMs: 0 });
    expect(call.kinds()).not.toContain("result");
    call.read();
    expect(call.kinds().filter((kind) => kind === "lost")).toHaveLength(1);
    call.read();
    const before = call.events.length;
    for (let count = 0; count < 100; count++) given.listener?.output(piece(PEER_QUEUE_MAX_BYTES / 4));
    expect(call.events.length - before).toBe(4);
    call.read();
    expect(call.kinds().at(-1)).toBe("lost");
  });

  it("that says nothing any more is given up, with everything that was done for it", () => {
    const { call, clock, given } = open();
    call.on("error", () => undefined);
    call.ask(hello);
    call.ask(watch);
    expect(call.kinds()).toEqual(["beat", "watching"]);
    clock.advance(PEER_SILENCE_MAX_MS - PEER_BEAT_MS);
    call.ask({ $case: "beat", value: {} });
    clock.advance(PEER_SILENCE_MAX_MS);
    expect(given).toMatchObject({ over: false, ended: 0 });
    clock.advance(2 * PEER_BEAT_MS);
    expect(given).toMatchObject({ over: true, ended: 1 });
    expect(given.outlet).toBeUndefined();
    expect(clock.waiting).toBe(0);
  });

  it("is told what raw records of a policy are here, under the number of its call", () => {
    const { call } = open();
    call.ask(hello);
    call.ask({ $case: "recent", value: { call: 3, tenant: "matrix", policy: "p" } });
    const value = { call: 3, classes: ["/matrix/p"], records: [RECORD], leftOut: 2 };
    expect(call.events.at(-1)).toEqual({ $case: "recent", value });
  });

  it("hears nothing before its hello, and only notifications it asked for", () => {
    const { call, given } = open();
    call.ask(watch);
    expect(given).toMatchObject({ over: true });
    const second = open();
    second.call.ask(hello);
    second.call.ask({ $case: "wanted", value: { subjects: [{ tenant: "matrix", subject: "s" }] } });
    expect([
      second.given.outlet?.wants("matrix", "s"),
      second.given.outlet?.wants("second", "s"),
      second.given.outlet?.wants("matrix", "t"),
    ]).toEqual([true, false, false]);
  });
});
