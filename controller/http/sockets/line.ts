import type { WebSocket } from "ws";
import {
  SHUTDOWN_SOCKETS_MS,
  WEBSOCKET_CLOSE_GRACE_MS,
  WEBSOCKET_PING_MS,
  WEBSOCKET_QUEUE_MAX_BYTES,
  WEBSOCKET_QUEUE_MAX_FRAMES,
} from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { LineEnd, SocketLine } from "./socket.ts";
import { stillMay } from "../calls/standing.ts";

/** Close codes of RFC 6455 and its registry. */
const GOING_AWAY = 1001;
const POLICY = 1008;
const TRY_AGAIN_LATER = 1013;
const STOPS = "the controller stops";

const ENDS: Readonly<Record<LineEnd, readonly [code: number, reason: string]>> = {
  over: [1000, "over"],
  "signed out": [POLICY, "signed out"],
  "not permitted": [POLICY, "not there, or not permitted"],
  "too slow": [TRY_AGAIN_LATER, "too slow: notifications were lost, connect again"],
  "no room": [TRY_AGAIN_LATER, "no memory for what was sent, connect again later"],
  broken: [TRY_AGAIN_LATER, "it broke off, connect again"],
};

/** Close codes and reasons of every line. */
export const LINE_ENDS: readonly (readonly [code: number, reason: string])[] = [
  ...Object.values(ENDS),
  [GOING_AWAY, STOPS],
];

export interface LineOptions {
  readonly clock: Clock;
  /** Called at every ping and by `ask`. False ends the line, for example because the session is over. */
  readonly stillAllowed: () => Promise<boolean>;
}

/** One open socket with a bounded queue and a heartbeat. */
export class Line implements SocketLine {
  readonly closed: AbortSignal;
  readonly #socket: WebSocket;
  readonly #options: LineOptions;
  #unsent = 0;
  #answered = true;
  #cancelTimer: () => void = () => {};
  /** Time that the receiver has to answer the close; `Infinity` until the line ends. */
  #graceMs = Infinity;

  constructor(socket: WebSocket, options: LineOptions) {
    const closing = new AbortController();
    this.closed = closing.signal;
    this.#socket = socket;
    this.#options = options;
    // A broken socket also closes, so its error needs no handling.
    socket.on("error", () => {});
    socket.on("message", () => (this.#answered = true));
    socket.on("pong", () => (this.#answered = true));
    socket.on("close", () => {
      this.#cancelTimer();
      closing.abort();
    });
    this.#schedulePing();
  }

  send(text: string): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (this.#unsent >= WEBSOCKET_QUEUE_MAX_FRAMES || this.#socket.bufferedAmount > WEBSOCKET_QUEUE_MAX_BYTES) {
      this.end("too slow");
      return;
    }
    this.#unsent++;
    this.#socket.send(text, () => this.#unsent--);
  }

  sent(text: string): Promise<boolean> {
    if (this.#socket.readyState !== this.#socket.OPEN) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.#socket.send(text, () => resolve(this.#socket.readyState === this.#socket.OPEN));
    });
  }

  end(reason: LineEnd): void {
    const [code, why] = ENDS[reason];
    this.#close(code, why, WEBSOCKET_CLOSE_GRACE_MS);
  }

  /** Ends the line if it is no longer allowed. An outage of the store does not end it. */
  async ask(): Promise<void> {
    if (!(await stillMay(this.#options.stillAllowed()))) this.end("signed out");
  }

  /**
   * Closes the line because the controller stops; the client should connect to another one. The client has
   * `SHUTDOWN_SOCKETS_MS` to answer.
   */
  leave(): void {
    this.#close(GOING_AWAY, STOPS, SHUTDOWN_SOCKETS_MS);
  }

  #close(code: number, reason: string, graceMs: number): void {
    // A line that is already closing keeps its deadline if that is shorter.
    if (graceMs >= this.#graceMs) return;
    this.#graceMs = graceMs;
    this.#cancelTimer();
    this.#socket.close(code, reason);
    // A receiver that reads nothing does not answer the close, so the socket is ended anyway.
    this.#cancelTimer = this.#options.clock.after(graceMs, () => this.#socket.terminate());
  }

  #schedulePing(): void {
    this.#cancelTimer = this.#options.clock.after(WEBSOCKET_PING_MS, () => void this.#ping());
  }

  async #ping(): Promise<void> {
    if (!this.#answered) return this.#socket.terminate();
    this.#answered = false;
    this.#socket.ping();
    await this.ask();
    if (this.#socket.readyState === this.#socket.OPEN) this.#schedulePing();
  }
}
