import type { Static, TSchema } from "typebox";
import type { Permission, Principal } from "../../areas/permissions/index.ts";

/**
 * A WebSocket of the HTTP interface. `http/` signs in the caller, checks the permission, keeps the line alive by pings,
 * and bounds its queue. It ends the line when the caller loses the permission.
 */
export interface SocketEndpoint<I extends TSchema = TSchema> {
  /** `:name` is one path segment. */
  readonly path: string;
  readonly permission: Permission;
  readonly summary: string;
  /** Path parameters and query together. */
  readonly input: I;
  /** Schema of the JSON value in each text frame to the client. */
  readonly frames: TSchema;
  readonly open: (call: SocketCall<Static<I>>) => void;
}

export interface SocketCall<I> {
  readonly principal: Principal;
  readonly input: I;
  readonly line: SocketLine;
  /**
   * The caller with its current rights; `undefined` if signed out or without the permission. Cheap enough to call for
   * each frame.
   */
  readonly present: () => Promise<Principal | undefined>;
}

/** `over`: nothing more follows. `broken`: more may follow on a new connection. */
export type LineEnd = "too slow" | "signed out" | "not permitted" | "over" | "broken" | "no room";

/** The sending side of a socket. Messages from the client are read and ignored. */
export interface SocketLine {
  /** Never waits. Closes a receiver that leaves too much unread. */
  send(text: string): void;
  /** Resolves when the network has taken the text; false if the socket is closed or closing. */
  sent(text: string): Promise<boolean>;
  /** Closes the socket and sends the reason to the receiver. Messages that are not sent yet are lost. */
  end(reason: LineEnd): void;
  /** Fires when either end closes the socket. */
  readonly closed: AbortSignal;
}

/** Lets TypeScript infer the input of one socket inside a list of many. */
export function socketEndpoint<I extends TSchema>(definition: SocketEndpoint<I>): SocketEndpoint {
  return definition as unknown as SocketEndpoint;
}
