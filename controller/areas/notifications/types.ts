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
   * The object that the frame tells of: each receiver gets what he may see of it. `undefined`: it tells of none. No
   * part of the frame.
   */
  readonly about: NotifiedObject | undefined;
}

/** Plain data, as it also goes from controller to controller. */
export interface NotifiedObject {
  /** Without it nothing is told. */
  readonly permission: Permission;
  /** Class path. */
  readonly class: string;
  /** Whole; `undefined`: made of its key columns, or not known yet. */
  readonly id: string | undefined;
  /**
   * As far as it is known, without sealed columns: row conditions are asked of it, and what is not there does not
   * fulfil them.
   */
  readonly values: Row;
  readonly vtimeMs: number;
  readonly ctimeMs: number;
  /** Before the change: what was otherwise, and `msg` for receivers that may see the object no more. */
  readonly before?: { readonly values: Row; readonly vtimeMs: number; readonly msg: string };
  /** Columns that source and title show: a user from whom one of them is hidden is told nothing. */
  readonly told: readonly string[];
  /** The member of `msg` that has columns and relations of the object by name; `msg` itself when absent. */
  readonly member?: string;
  /** Column of each member in there that is called otherwise. */
  readonly columns?: Readonly<Record<string, string>>;
  /** Members in there that are relations: lists of whole ids, of which those are told that the receiver may see. */
  readonly relations?: readonly string[];
}

/** Empty text, or nothing at all, narrows nothing. */
export interface Subscription {
  readonly subject: string;
  readonly source?: string;
  readonly title?: string;
}

export interface Interest {
  readonly tenant: string;
  readonly subject: string;
}

/** Another controller, whose sockets are to hear what is published here. */
export interface Outlet {
  wants(tenant: string, subject: string): boolean;
  /** Must not wait; may lose it. */
  send(tenant: string, notification: Notification): void;
}

export interface Notifications {
  /**
   * To all receivers subscribed now, on any controller, without waiting for them. `keyspace` is the tenant's ospace.
   */
  publish(tenant: string, notification: Notification): void;
  /** Whether there is a receiver, so that costly frames are made only when one is. */
  wanted(tenant: string, subject: string): boolean;
  /**
   * What is published for the principal's tenant, whole: the receiver narrows it to what the principal may see
   * (`NotificationRights`). The answer ends it. The receiver must not wait.
   */
  subscribe(
    principal: Principal,
    subscription: Subscription,
    receive: (notification: Notification) => void,
  ): () => void;
}
