import type { Logger } from "pino";
import { requirePermission, type Principal } from "../permissions/index.ts";
import type { Interest, Notification, Notifications, PeerBroadcast, Subscription } from "./types.ts";

interface Receiver {
  readonly source: string;
  readonly title: string;
  readonly receive: (notification: Notification) => void;
}

/**
 * Delivers notifications to receivers on this controller, and once to each other controller that has receivers. Stores
 * nothing: later receivers miss earlier notifications.
 */
export class NotificationHub implements Notifications {
  readonly #log: Logger;
  /** Tenant to subject to receivers; empty sets and maps are removed. */
  readonly #receivers = new Map<string, Map<string, Set<Receiver>>>();
  readonly #outlets = new Set<PeerBroadcast>();
  readonly #listeners = new Set<() => void>();

  constructor({ log }: { readonly log: Logger }) {
    this.#log = log;
  }

  publish(tenant: string, notification: Notification): void {
    this.receive(tenant, notification);
    for (const outlet of this.#outlets)
      if (outlet.wants(tenant, notification.subject)) outlet.send(tenant, notification);
  }

  /** Delivers a notification of another controller to receivers here, without passing it on. */
  receive(tenant: string, notification: Notification): void {
    const receivers = this.#receivers.get(tenant)?.get(notification.subject);
    for (const receiver of receivers ?? []) {
      if (receiver.source !== "" && receiver.source !== notification.source) continue;
      if (receiver.title !== "" && receiver.title !== notification.title) continue;
      this.#deliver(receiver, notification);
    }
  }

  wanted(tenant: string, subject: string): boolean {
    if (this.#receivers.get(tenant)?.has(subject)) return true;
    for (const outlet of this.#outlets) if (outlet.wants(tenant, subject)) return true;
    return false;
  }

  /** The returned function detaches it. */
  attach(outlet: PeerBroadcast): () => void {
    this.#outlets.add(outlet);
    return () => void this.#outlets.delete(outlet);
  }

  /** Tenants and subjects with receivers here. */
  interests(): readonly Interest[] {
    return [...this.#receivers].flatMap(([tenant, subjects]) =>
      [...subjects.keys()].map((subject) => ({ tenant, subject })),
    );
  }

  /** Calls the listener whenever `interests` has changed. The returned function removes it. */
  onInterests(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  subscribe(
    principal: Principal,
    subscription: Subscription,
    receive: (notification: Notification) => void,
  ): () => void {
    requirePermission(principal, "notifications:read");
    const { tenant } = principal;
    const { subject, source = "", title = "" } = subscription;
    const receiver: Receiver = { source, title, receive };
    const subjects = this.#receivers.get(tenant) ?? new Map<string, Set<Receiver>>();
    const receivers = subjects.get(subject) ?? new Set();
    this.#receivers.set(tenant, subjects.set(subject, receivers.add(receiver)));
    if (receivers.size === 1) this.#interestsChanged();
    return () => {
      if (!receivers.delete(receiver) || receivers.size > 0) return;
      // An empty set is never used again: the next receiver gets a new one.
      subjects.delete(subject);
      if (subjects.size === 0) this.#receivers.delete(tenant);
      this.#interestsChanged();
    };
  }

  #interestsChanged(): void {
    for (const listener of this.#listeners) listener();
  }

  /** A failing receiver does not affect the others. */
  #deliver(receiver: Receiver, notification: Notification): void {
    try {
      receiver.receive(notification);
    } catch (error) {
      this.#log.error({ err: error, subject: notification.subject }, "a receiver of notifications failed");
    }
  }
}
