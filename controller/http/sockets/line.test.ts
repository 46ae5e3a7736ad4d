import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import type { WebSocket } from "ws";
import { SHUTDOWN_SOCKETS_MS, WEBSOCKET_CLOSE_GRACE_MS, WEBSOCKET_PING_MS } from "../../../common/limits.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import { Line } from "./line.ts";

/** A socket whose receiver reads nothing: a close stays unanswered. */
class DeafSocket extends EventEmitter {
  readonly OPEN = 1;
  readyState = 1;
  readonly codes: number[] = [];
  isTerminated = false;

  ping(): void {}

  close(code: number): void {
    this.readyState = 2;
    this.codes.push(code);
  }

  terminate(): void {
    this.isTerminated = true;
  }
}

function open() {
  const [socket, clock] = [new DeafSocket(), new TestClock()];
  let refuse: () => void = () => {};
  const check = new Promise<boolean>((resolve) => (refuse = () => resolve(false)));
  const line = new Line(socket as unknown as WebSocket, { clock, stillAllowed: () => check });
  return { socket, clock, line, refuse };
}

test("a line that leaves keeps its short deadline when the check of a ping refuses it", async () => {
  const { socket, clock, line, refuse } = open();
  clock.advance(WEBSOCKET_PING_MS);
  line.leave();
  refuse();
  await new Promise(setImmediate);
  clock.advance(SHUTDOWN_SOCKETS_MS - 1);
  expect(socket.isTerminated).toBe(false);
  clock.advance(1);
  expect(socket).toMatchObject({ isTerminated: true, codes: [1001] });
  expect(clock.waiting).toBe(0);
});

test("a line that ends has the short deadline once the controller stops", () => {
  const { socket, clock, line } = open();
  line.end("signed out");
  line.leave();
  clock.advance(SHUTDOWN_SOCKETS_MS);
  expect(socket.isTerminated).toBe(true);
  expect(SHUTDOWN_SOCKETS_MS).toBeLessThan(WEBSOCKET_CLOSE_GRACE_MS);
});
