import type { AgentFrame, ControllerFrame, TunnelFrame } from "../../proto/gen/agent/v1/agent.ts";
import type { AppError } from "../../common/errors.ts";
import type { Identity } from "../identity/identity.ts";

/** The way to the controllers: gRPC in the program, a simulated network in `test/sim`. */
export interface Transport {
  /** Returns at once; a failure to connect shows by `over`. */
  open(address: string, identity: Identity): Wire;
}

/** One stream to one controller, with what else goes over the same connection. */
export interface Wire {
  /**
   * In the order they were sent, until the controller ends the stream; throws `AppError` when it breaks. To be read
   * once.
   */
  readonly frames: AsyncIterable<ControllerFrame>;
  /** Resolves with the reason as soon as the stream is over, whether or not all frames were read. */
  readonly over: Promise<AppError>;
  /**
   * False when the buffers are full: then `drained` is to be awaited before much more is sent. What is sent after the
   * end is dropped.
   */
  send(frame: AgentFrame): boolean;
  /** Resolves when there is room again; may never when the stream is over. */
  drained(): Promise<void>;
  /** Nothing more will be sent; what was sent still arrives. */
  end(): void;
  /** Everything on the way is lost and the connection is given up. */
  cancel(): void;
  /** Content by its digest from `offset`; throws the error that ended it. */
  fetch(
    request: { readonly digest: string; readonly offset: number },
    options: FetchOptions,
  ): AsyncIterable<Uint8Array>;
  /** A stream of its own beside the session's, to the same controller. */
  tunnel(): TunnelCall;
}

/** As gRPC has it; the side that ends it may still read what comes. */
export interface TunnelCall {
  on(event: "data", listener: (frame: TunnelFrame) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "end", listener: () => void): unknown;
  /** Calls back when it has left. */
  write(frame: TunnelFrame, left: () => void): unknown;
  end(): unknown;
  pause(): unknown;
  resume(): unknown;
}

export interface FetchOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}
