import type { Socket } from "node:net";
import { errorText } from "../../common/errors.ts";
import { TUNNEL_BUFFER_MAX_BYTES, TUNNEL_PIECE_MAX_BYTES, TUNNEL_SILENCE_MAX_MS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import type { TunnelFrame } from "../../proto/gen/agent/v1/agent.ts";
import type { TunnelCall } from "../session/transport.ts";

export interface TunnelOptions {
  readonly id: string;
  /** Connected and paused. */
  readonly socket: Socket;
  readonly call: TunnelCall;
  readonly clock: Clock;
}

export interface TunnelEnd {
  readonly toPlaceBytes: number;
  readonly fromPlaceBytes: number;
  readonly reason: string;
}

const noop = (): void => undefined;

/**
 * Passes bytes between the target and the controller. Each side is read only as fast as the other one takes the bytes.
 */
export class Tunnel {
  readonly #id: string;
  readonly #socket: Socket;
  readonly #call: TunnelCall;
  readonly #clock: Clock;
  #waitingBytes = 0;
  #passedMs: number;
  #stopTimer: () => void = noop;
  #reason: string | undefined;

  constructor({ id, socket, call, clock }: TunnelOptions) {
    this.#id = id;
    this.#socket = socket;
    this.#call = call;
    this.#clock = clock;
    this.#passedMs = clock.monotonicMs();
  }

  /** Passes bytes until the tunnel ends. Resolves when its socket is closed. */
  carry(signal: AbortSignal): Promise<TunnelEnd> {
    const ended = (): void => this.#fail("the agent ended", true);
    signal.addEventListener("abort", ended, { once: true });
    const closed = new Promise<TunnelEnd>((resolve) =>
      this.#socket.once("close", () => {
        signal.removeEventListener("abort", ended);
        resolve(this.#closed());
      }),
    );
    this.#fromCall();
    this.#watch();
    this.#write({ $case: "opened", value: { id: this.#id, code: "", message: "" } });
    this.#fromSocket();
    if (signal.aborted) ended();
    return closed;
  }

  #fromSocket(): void {
    const socket = this.#socket;
    socket.on("data", (data: Buffer) => {
      for (let at = 0; at < data.length; at += TUNNEL_PIECE_MAX_BYTES)
        this.#send(data.subarray(at, at + TUNNEL_PIECE_MAX_BYTES));
      if (this.#waitingBytes >= TUNNEL_BUFFER_MAX_BYTES) socket.pause();
    });
    socket.on("error", (error) => this.#fail(errorText(error), false));
    socket.on("drain", () => this.#call.resume());
    socket.resume();
  }

  #fromCall(): void {
    const [call, socket] = [this.#call, this.#socket];
    call.on("data", ({ frame }) => {
      this.#passedMs = this.#clock.monotonicMs();
      if (frame?.$case === "failed") this.#end(frame.value.message);
      else if (frame?.$case === "data" && !socket.write(frame.value)) call.pause();
    });
    // Bytes that came before the end are still written to the target.
    call.on("end", () => socket.destroySoon());
    call.on("error", (error) => this.#end(errorText(error)));
  }

  #send(data: Buffer): void {
    this.#passedMs = this.#clock.monotonicMs();
    this.#waitingBytes += data.length;
    this.#write({ $case: "data", value: data }, () => {
      this.#waitingBytes -= data.length;
      if (this.#waitingBytes < TUNNEL_BUFFER_MAX_BYTES) this.#socket.resume();
    });
  }

  #write(frame: TunnelFrame["frame"], left = noop): void {
    this.#call.write({ frame }, left);
  }

  #fail(message: string, wayLost: boolean): void {
    if (this.#reason === undefined) this.#write({ $case: "failed", value: { wayLost, message } });
    this.#end(message);
  }

  #end(reason: string): void {
    this.#reason ??= reason;
    this.#socket.destroy();
  }

  #closed(): TunnelEnd {
    this.#stopTimer();
    this.#call.end();
    this.#call.resume();
    const { bytesWritten, bytesRead } = this.#socket;
    return { toPlaceBytes: bytesWritten, fromPlaceBytes: bytesRead, reason: this.#reason ?? "closed" };
  }

  #watch(): void {
    this.#stopTimer = this.#clock.after(TUNNEL_SILENCE_MAX_MS, () => {
      const silentMs = this.#clock.monotonicMs() - this.#passedMs;
      if (silentMs >= TUNNEL_SILENCE_MAX_MS) this.#fail("nothing passed for too long", true);
      else this.#watch();
    });
  }
}
