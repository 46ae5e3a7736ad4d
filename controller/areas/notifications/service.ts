import type { Logger } from "pino";
import type { Notification, Notifications, Subscription } from "./types.ts";

interface Receiver {
  readonly source: string;
  readonly title: string;
  readonly receive: (notification: Notification) => void;
}

/** Brings notifications of this controller to those who listen on it. Keeps nothing: who is not there misses them. */
export class NotificationHub implements Notifications {
  readonly #log: Logger;
  /** Tenant to subject to receivers; empty ones are taken away. */
  readonly #receivers = new Map<string, Map<string, Set<Receiver>>>();

  constructor({ log }: { readonly log: Logger }) {
    this.#log = log;
  }

  publish(tenant: string, notification: Notification): void {
    const receivers = this.#receivers.get(tenant)?.get(notification.subject);
    for (const receiver of receivers ?? []) {
      if (receiver.source !== "" && receiver.source !== notification.source) continue;
      if (receiver.title !== "" && receiver.title !== notification.title) continue;
      this.#deliver(receiver, notification);
    }
  }

  wanted(tenant: string, subject: string): boolean {
    return this.#receivers.get(tenant)?.has(subject) ?? false;
  }

  subscribe(subscription: Subscription, receive: (notification: Notification) => void): () => void {
    const { tenant, subject, source = "", title = "" } = subscription;
    const receiver: Receiver = { source, title, receive };
    const subjects = this.#receivers.get(tenant) ?? new Map<string, Set<Receiver>>();
    const receivers = subjects.get(subject) ?? new Set();
    this.#receivers.set(tenant, subjects.set(subject, receivers.add(receiver)));
    return () => {
      receivers.delete(receiver);
      if (receivers.size === 0 && subjects.get(subject) === receivers) subjects.delete(subject);
      if (subjects.size === 0 && this.#receivers.get(tenant) === subjects) this.#receivers.delete(tenant);
    };
  }

  /** One receiver's fault is nobody else's. */
  #deliver(receiver: Receiver, notification: Notification): void {
    try {
      receiver.receive(notification);
    } catch (error) {
      this.#log.error({ err: error, subject: notification.subject }, "a receiver of notifications failed");
    }
  }
}
