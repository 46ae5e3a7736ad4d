import { Duplex } from "node:stream";
import { AppError, errorText } from "../../common/errors.ts";
import { TUNNEL_BUFFER_MAX_BYTES, TUNNEL_PIECE_MAX_BYTES } from "../../common/limits.ts";
import type { TunnelFailed } from "../../proto/gen/agent/v1/agent.ts";
import { TunnelBroken } from "../areas/hosts/index.ts";

type Sent =
  | { readonly $case: "data"; readonly value: Buffer }
  | { readonly $case: "failed"; readonly value: TunnelFailed };

/** One gRPC stream whose frames are a tunnel's, at the end that serves or at the one that calls. */
export interface TunnelWire {
  write(message: { readonly frame: Sent }, left: (error?: Error | null) => void): unknown;
  end(): unknown;
  pause(): unknown;
  resume(): unknown;
}

/** What comes in a frame; others than these are no part of a tunnel that stands. */
export type Received = Sent | { readonly $case: "opened" | "open" } | undefined;

/**
 * The bytes of a tunnel. It is read only as fast as it is consumed, and takes only what the other end takes. Its end
 * closes both directions; `destroy` with an error tells the other end why.
 */
export class TunnelStream extends Duplex {
  readonly #wire: TunnelWire;
  /** Nothing more is to be read. */
  #isRead = false;

  constructor(wire: TunnelWire) {
    super({
      allowHalfOpen: false,
      readableHighWaterMark: TUNNEL_BUFFER_MAX_BYTES,
      writableHighWaterMark: TUNNEL_BUFFER_MAX_BYTES,
    });
    this.#wire = wire;
    // Whoever uses it may have left before it broke.
    this.on("error", () => undefined);
  }

  /** To be called for each frame of the wire. */
  receive(frame: Received): void {
    if (this.#isRead) return;
    if (frame?.$case === "data") return void (this.push(frame.value) || this.#wire.pause());
    if (frame?.$case === "failed") return this.broken(new TunnelBroken(frame.value.message, frame.value.wayLost));
    this.broken(new AppError("invalid", "The tunnel was opened twice."));
  }

  /** The wire has ended in good order. */
  ended(): void {
    if (this.#isRead || this.destroyed) return;
    this.#isRead = true;
    this.push(null);
  }

  broken(error: Error): void {
    this.destroy(error);
  }

  override _read(): void {
    this.#wire.resume();
  }

  override _write(data: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const left = (error?: Error | null): void => {
      if (error || data.length <= TUNNEL_PIECE_MAX_BYTES) done(error);
      else this._write(data.subarray(TUNNEL_PIECE_MAX_BYTES), _encoding, done);
    };
    this.#wire.write({ frame: { $case: "data", value: data.subarray(0, TUNNEL_PIECE_MAX_BYTES) } }, left);
  }

  /** A call that was served is over with that, so the other direction ends too. */
  override _final(done: () => void): void {
    this.#wire.end();
    this.ended();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (error) {
      const wayLost = !(error instanceof TunnelBroken) || error.wayLost;
      this.#wire.write({ frame: { $case: "failed", value: { wayLost, message: errorText(error) } } }, () => undefined);
    }
    this.#wire.end();
    // What still comes is for nobody.
    this.#wire.resume();
    done(error);
  }
}
