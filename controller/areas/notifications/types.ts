import type { Row } from "../../../common/value.ts";
import type { Permission, Principal } from "../permissions/index.ts";

/** A frame as sockets receive it; all members but `about` are text. */
export interface Notification {
  readonly keyspace: string;
  readonly source: string;
  readonly subject: string;
  readonly title: string;
  readonly reply: string;
  readonly msg: string;
  /**
   * The object that the frame is about: each receiver gets the part that it may see. `undefined`: about no object. Not
   * sent with the frame.
   */
  readonly about: NotifiedObject | undefined;
}

/** Plain data, because it is also sent between controllers. */
export interface NotifiedObject {
  /** Receivers without this permission get nothing. */
  readonly permission: Permission;
  /** Class path. */
  readonly class: string;
  /** The full id; `undefined`: computed from the key columns, or not known yet. */
  readonly id: string | undefined;
  /**
   * Known values without sealed columns. Row conditions are checked against them; a condition on a missing value is not
   * fulfilled.
   */
  readonly values: Row;
  readonly vtimeMs: number;
  readonly ctimeMs: number;
  /** State before the change: the old values, and `msg` for receivers that may no longer see the object. */
  readonly before?: { readonly values: Row; readonly vtimeMs: number; readonly msg: string };
  /** Columns shown in source and title: a user from whom one of them is hidden gets nothing. */
  readonly told: readonly string[];
  /** The member of `msg` that has the object's columns and relations by name; absent: `msg` itself. */
  readonly member?: string;
  /** Column of each member whose name differs from its column. */
  readonly columns?: Readonly<Record<string, string>>;
  /** Members that are relations: lists of full ids. A receiver gets only the ids of objects it may see. */
  readonly relations?: readonly string[];
}

/** A filter that is empty or absent matches everything. */
export interface Subscription {
  readonly subject: string;
  readonly source?: string;
  readonly title?: string;
}

export interface Interest {
  readonly tenant: string;
  readonly subject: string;
}

/** Another controller whose sockets receive what is published here. */
export interface PeerBroadcast {
  wants(tenant: string, subject: string): boolean;
  /** Must not wait; may lose the notification. */
  send(tenant: string, notification: Notification): void;
}

export interface Notifications {
  /** Sends to all current receivers on all controllers, without waiting. `keyspace` is the tenant's ospace. */
  publish(tenant: string, notification: Notification): void;
  /** True if there is a receiver. Lets callers skip making costly frames. */
  wanted(tenant: string, subject: string): boolean;
  /**
   * Receives whole notifications of the principal's tenant. The receiver narrows each to what the principal may see
   * (`NotificationRights`). It must not wait. The returned function ends the subscription.
   */
  subscribe(
    principal: Principal,
    subscription: Subscription,
    receive: (notification: Notification) => void,
  ): () => void;
}
