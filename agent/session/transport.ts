import type { AgentFrame, ControllerFrame, TunnelFrame } from "../../proto/gen/agent/v1/agent.ts";
import type { AppError } from "../../common/errors.ts";
import type { Identity } from "../identity/identity.ts";

/** Opens connections to controllers: with gRPC in the program, over a simulated network in `test/sim`. */
export interface Transport {
  /** Returns at once. If the connection fails, `over` resolves with the reason. */
  open(address: string, identity: Identity): Wire;
}

/** A connection to one controller: the stream of the session, and the fetches and tunnels beside it. */
export interface Wire {
  /**
   * Frames in the order in which they were sent, until the controller ends the stream. Throws `AppError` when the
   * connection breaks. It can be read only once.
   */
  readonly frames: AsyncIterable<ControllerFrame>;
  /** Resolves with the reason as soon as the stream has ended, even if frames were not read. */
  readonly over: Promise<AppError>;
  /**
   * Sends a frame. False when the buffers are full: the sender must wait for `drained` before it sends much more.
   * Frames sent after the end are dropped.
   */
  send(frame: AgentFrame): boolean;
  /** Resolves when the buffers have room again. It may never resolve after the stream has ended. */
  drained(): Promise<void>;
  /** Ends the sending. Frames that were sent before still arrive. */
  end(): void;
  /** Closes the connection at once. Frames that have not arrived are lost. */
  cancel(): void;
  /** Reads content by its digest from `offset`. Throws the error that ended it. */
  fetch(
    request: { readonly digest: string; readonly offset: number },
    options: FetchOptions,
  ): AsyncIterable<Uint8Array>;
  /** Opens another stream to the same controller, for a tunnel. */
  tunnel(): TunnelCall;
}

/** A stream with the events and methods of gRPC. The side that has ended it may still read. */
export interface TunnelCall {
  on(event: "data", listener: (frame: TunnelFrame) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "end", listener: () => void): unknown;
  /** Calls `left` when the frame has been passed to the connection. */
  write(frame: TunnelFrame, left: () => void): unknown;
  end(): unknown;
  pause(): unknown;
  resume(): unknown;
}

export interface FetchOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}
