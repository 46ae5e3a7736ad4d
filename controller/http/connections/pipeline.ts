import type { RequestListener } from "node:http";
import type { Duplex } from "node:stream";
import { HTTP_PIPELINED_AT_ONCE_MAX, HTTP_PIPELINED_MAX } from "../../../common/limits.ts";

/**
 * Limits the open calls of one connection. A client may send calls without waiting for answers. Few of them run
 * concurrently; the next one begins when the network has taken an answer. So answers to a client that does not read do
 * not fill the memory. A connection with `HTTP_PIPELINED_MAX` open calls is closed after these are answered; the client
 * must send later calls again.
 */
export class Pipelines {
  readonly #connections = new WeakMap<Duplex, Pipeline>();
  #isClosing = false;

  bounded(handle: RequestListener): RequestListener {
    return (request, response) => {
      const pipeline = this.#of(request.socket);
      if (!pipeline.takesMore) return;
      if (pipeline.isNearlyFull) response.shouldKeepAlive = false;
      response.once("close", () => {
        pipeline.leave();
        // When the server closes, Node closes idle connections, and leaves the others open for their keep-alive time.
        if (this.#isClosing && pipeline.isIdle) request.socket.end();
      });
      pipeline.enter(() => handle(request, response));
    };
  }

  /** The server stops: each connection ends with its last open call. */
  close(): void {
    this.#isClosing = true;
  }

  /** Calls `callback` when all earlier calls are answered; never if the connection ends first. */
  whenAnswered(socket: Duplex, callback: () => void): void {
    this.#of(socket).whenIdle(callback);
  }

  #of(socket: Duplex): Pipeline {
    let pipeline = this.#connections.get(socket);
    if (pipeline === undefined) {
      this.#connections.set(socket, (pipeline = new Pipeline()));
      socket.once("close", () => pipeline?.end());
    }
    return pipeline;
  }
}

/** The open calls of one connection. */
class Pipeline {
  #begun = 0;
  #waiting: (() => void)[] = [];
  #idle: (() => void) | undefined;
  #isFull = false;

  get takesMore(): boolean {
    return !this.#isFull;
  }

  get isIdle(): boolean {
    return this.#begun === 0;
  }

  get isNearlyFull(): boolean {
    return this.#begun + this.#waiting.length + 1 >= HTTP_PIPELINED_MAX;
  }

  enter(begin: () => void): void {
    this.#isFull = this.isNearlyFull;
    if (this.#begun >= HTTP_PIPELINED_AT_ONCE_MAX) return void this.#waiting.push(begin);
    this.#begun++;
    begin();
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next !== undefined) return next();
    if (--this.#begun === 0) this.#tellIdle();
  }

  whenIdle(callback: () => void): void {
    this.#idle = callback;
    if (this.#begun === 0) this.#tellIdle();
  }

  end(): void {
    this.#waiting = [];
    this.#idle = undefined;
  }

  #tellIdle(): void {
    const callback = this.#idle;
    this.#idle = undefined;
    callback?.();
  }
}
