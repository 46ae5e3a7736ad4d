import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { HTTP_RECEIVE_DEADLINE_MS, HTTP_SILENCE_CHECK_MS, HTTP_SILENCE_MS } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";

/**
 * Closes a connection whose peer is silent for `HTTP_SILENCE_MS`: it takes nothing of what is sent to it, or sends
 * nothing of the body that it announced. Also one whose body has not arrived after `HTTP_RECEIVE_DEADLINE_MS`. Time in which the peer owes nothing does not count: a call is being worked on,
 * or its body waits here to be read. Applies to everything on a connection: answers, uploads, event streams and
 * WebSockets.
 */
export class SilenceWatch {
  readonly #runtime: Pick<Runtime, "clock" | "log">;
  readonly #connections = new Map<Socket, Connection>();
  #isChecking = false;

  constructor(runtime: Pick<Runtime, "clock" | "log">) {
    this.#runtime = runtime;
  }

  watch(socket: Socket): void {
    if (this.#connections.has(socket)) return;
    this.#connections.set(socket, new Connection(socket, this.#runtime.clock.monotonicMs()));
    socket.once("close", () => this.#connections.delete(socket));
    if (!this.#isChecking) this.#checkLater();
  }

  /** Call it when the body of the request is expected. */
  receiving(request: IncomingMessage): void {
    const byMs = this.#runtime.clock.monotonicMs() + HTTP_RECEIVE_DEADLINE_MS;
    this.#connections.get(request.socket)?.receive(request, byMs);
  }

  /** From now on, the body of the request may arrive as long as its peer is not silent. */
  unhurried(request: IncomingMessage): void {
    this.#connections.get(request.socket)?.receive(request, Number.POSITIVE_INFINITY);
  }

  #checkLater(): void {
    this.#isChecking = this.#connections.size > 0;
    if (this.#isChecking) this.#runtime.clock.after(HTTP_SILENCE_CHECK_MS, () => this.#check());
  }

  #check(): void {
    const nowMs = this.#runtime.clock.monotonicMs();
    for (const [socket, connection] of this.#connections) {
      if (!connection.isSilent(nowMs)) continue;
      const { remoteAddress: remote } = socket;
      this.#runtime.log.info({ remote }, "a connection was closed: its peer was silent for too long");
      socket.destroy();
    }
    this.#checkLater();
  }
}

class Connection {
  readonly #socket: Socket;
  readonly #taken: Progress;
  readonly #sent: Progress;
  #request: IncomingMessage | undefined;
  /** Monotonic time by which the body must have arrived. */
  #byMs = Number.POSITIVE_INFINITY;

  constructor(socket: Socket, nowMs: number) {
    this.#socket = socket;
    this.#taken = { bytes: 0, sinceMs: nowMs };
    this.#sent = { bytes: 0, sinceMs: nowMs };
  }

  receive(request: IncomingMessage, byMs: number): void {
    this.#request = request;
    this.#byMs = byMs;
  }

  isSilent(nowMs: number): boolean {
    const { writableLength, bytesWritten, bytesRead } = this.#socket;
    const request = this.#request;
    // Bytes that wait here to be read are not the peer's delay.
    const awaitsBody = request !== undefined && !request.complete && request.readableLength === 0;
    const takes = advanced(this.#taken, { isOwed: writableLength > 0, bytes: bytesWritten - writableLength, nowMs });
    const sends = advanced(this.#sent, { isOwed: awaitsBody, bytes: bytesRead, nowMs });
    const isLate = request !== undefined && !request.complete && nowMs > this.#byMs;
    return !takes || !sends || isLate;
  }
}

/** Progress of a peer, and the time when it was made. */
interface Progress {
  bytes: number;
  sinceMs: number;
}

interface Look {
  readonly isOwed: boolean;
  readonly bytes: number;
  readonly nowMs: number;
}

/** False if owed data has made no progress for `HTTP_SILENCE_MS`. */
function advanced(progress: Progress, now: Look): boolean {
  if (!now.isOwed || now.bytes !== progress.bytes) {
    progress.bytes = now.bytes;
    progress.sinceMs = now.nowMs;
  }
  return now.nowMs - progress.sinceMs < HTTP_SILENCE_MS;
}
