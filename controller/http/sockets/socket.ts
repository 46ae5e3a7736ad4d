import type { Static, TSchema } from "typebox";
import type { Permission, Principal } from "../../areas/permissions/index.ts";

/** A WebSocket of the HTTP interface. `http/` signs in, checks the permission, and keeps the line alive and bounded. */
export interface SocketEndpoint<I extends TSchema = TSchema> {
  /** `:name` is one path segment. */
  readonly path: string;
  readonly permission: Permission;
  readonly summary: string;
  /** Path parameters and query together. */
  readonly input: I;
  readonly open: (call: SocketCall<Static<I>>) => void;
}

export interface SocketCall<I> {
  readonly principal: Principal;
  readonly input: I;
  readonly line: SocketLine;
  /**
   * The caller with the rights of now; `undefined` when signed out, or without the permission. Cheap: it may be asked
   * for every frame.
   */
  readonly present: () => Promise<Principal | undefined>;
}

/** `over`: there is no more to come. `broken`: there may be, after a new connection. */
export type LineEnd = "too slow" | "signed out" | "not permitted" | "over" | "broken" | "no room";

/** The sending side of a socket. What clients say is read and dropped. */
export interface SocketLine {
  /** Never waits. A receiver that leaves too much unread is closed. */
  send(text: string): void;
  /** Resolves when the network took the text; false when the socket is closed or closing. */
  sent(text: string): Promise<boolean>;
  /** Closes the socket and gives the receiver the reason. Messages that are not yet sent are lost. */
  end(reason: LineEnd): void;
  /** Fires when either end closes the socket. */
  readonly closed: AbortSignal;
}

/** Lets TypeScript infer the input of one socket inside a list of many. */
export function socketEndpoint<I extends TSchema>(definition: SocketEndpoint<I>): SocketEndpoint {
  return definition as unknown as SocketEndpoint;
}
