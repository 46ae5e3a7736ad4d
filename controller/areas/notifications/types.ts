/** A frame as sockets receive it; all members are text. */
export interface Notification {
  readonly keyspace: string;
  readonly source: string;
  readonly subject: string;
  readonly title: string;
  readonly reply: string;
  readonly msg: string;
}

/** Empty text, or nothing at all, narrows nothing. */
export interface Subscription {
  readonly tenant: string;
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
  /** To everybody subscribed now, on any controller; nobody is waited for. `keyspace` is the tenant's ospace. */
  publish(tenant: string, notification: Notification): void;
  /** Whether anybody would receive it, so that costly frames need not be made for nobody. */
  wanted(tenant: string, subject: string): boolean;
  /** The answer ends it. The receiver must not wait. */
  subscribe(subscription: Subscription, receive: (notification: Notification) => void): () => void;
}
