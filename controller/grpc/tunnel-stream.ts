import { Duplex } from "node:stream";
import { AppError, errorText } from "../../common/errors.ts";
import { TUNNEL_BUFFER_MAX_BYTES, TUNNEL_PIECE_MAX_BYTES } from "../../common/limits.ts";
import type { TunnelFailed } from "../../proto/gen/agent/v1/agent.ts";
import { TunnelBroken } from "../areas/hosts/index.ts";

type Sent =
  | { readonly $case: "data"; readonly value: Buffer }
  | { readonly $case: "failed"; readonly value: TunnelFailed };

/** A gRPC stream that carries the frames of a tunnel, on the server's or on the client's side. */
export interface TunnelWire {
  write(message: { readonly frame: Sent }, left: (error?: Error | null) => void): unknown;
  end(): unknown;
  pause(): unknown;
  resume(): unknown;
}

/** Content of a frame. Other frames are not allowed in an open tunnel. */
export type Received = Sent | { readonly $case: "opened" | "open" } | undefined;

/**
 * The bytes of a tunnel, with flow control in both directions. The end of one direction closes both; `destroy` with an
 * error sends the reason to the other end.
 */
export class TunnelStream extends Duplex {
  readonly #wire: TunnelWire;
  /** True when no more data will be read. */
  #isRead = false;

  constructor(wire: TunnelWire) {
    super({
      allowHalfOpen: false,
      readableHighWaterMark: TUNNEL_BUFFER_MAX_BYTES,
      writableHighWaterMark: TUNNEL_BUFFER_MAX_BYTES,
    });
    this.#wire = wire;
    // The stream may break after its user has gone; without a listener, the error would end the process.
    this.on("error", () => undefined);
  }

  /** Call for each frame of the stream. */
  receive(frame: Received): void {
    if (this.#isRead) return;
    if (frame?.$case === "data") return void (this.push(frame.value) || this.#wire.pause());
    if (frame?.$case === "failed") return this.broken(new TunnelBroken(frame.value.message, frame.value.wayLost));
    this.broken(new AppError("invalid", "The tunnel was opened twice."));
  }

  /** Call when the stream has ended without an error. */
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

  /** Ends the wire. On the server that closes the whole call, so the other direction ends, too. */
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
    // Discards the remaining data.
    this.#wire.resume();
    done(error);
  }
}
