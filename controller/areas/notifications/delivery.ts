import type { Logger } from "pino";
import { WEBSOCKET_QUEUE_MAX_BYTES, WEBSOCKET_QUEUE_MAX_FRAMES } from "../../../common/limits.ts";
import type { Principal } from "../permissions/index.ts";
import type { Notification } from "./types.ts";

/** The sending side of a socket. */
export interface ReceiverLine {
  /** Never waits. */
  send(text: string): void;
  end(reason: "too slow" | "signed out"): void;
  readonly closed: AbortSignal;
}

export interface DeliveryDependencies {
  readonly log: Logger;
  readonly line: ReceiverLine;
  /** Reads the current rights; `undefined` when the receiver may no longer listen. */
  readonly present: () => Promise<Principal | undefined>;
  readonly visible: (principal: Principal, notification: Notification) => Promise<Notification | undefined>;
  readonly textOf: (notification: Notification) => string;
}

/** Delivers notifications to one socket, in order. Each is narrowed by rights that are read after it was published. */
export class Delivery {
  readonly #with: DeliveryDependencies;
  #waiting: Notification[] = [];
  #waitingCharacters = 0;
  #isBusy = false;

  constructor(dependencies: DeliveryDependencies) {
    this.#with = dependencies;
  }

  /** Never waits. */
  take(notification: Notification): void {
    const { line } = this.#with;
    if (line.closed.aborted) return;
    if (this.#waiting.length >= WEBSOCKET_QUEUE_MAX_FRAMES || this.#waitingCharacters > WEBSOCKET_QUEUE_MAX_BYTES)
      return line.end("too slow");
    this.#waiting.push(notification);
    this.#waitingCharacters += notification.msg.length;
    if (!this.#isBusy) void this.#deliver();
  }

  async #deliver(): Promise<void> {
    this.#isBusy = true;
    while (this.#waiting.length > 0 && !this.#with.line.closed.aborted) {
      const batch = this.#waiting;
      this.#waiting = [];
      this.#waitingCharacters = 0;
      await this.#send(batch);
    }
    this.#isBusy = false;
  }

  /** If the rights cannot be read, frames about objects are dropped; other frames need no rights. */
  async #send(batch: readonly Notification[]): Promise<void> {
    const { line, log, present } = this.#with;
    let principal: Principal | undefined;
    let isKnown = true;
    try {
      principal = await present();
    } catch (error) {
      isKnown = false;
      log.warn({ err: error }, "the rights of a receiver of notifications could not be read");
    }
    if (isKnown && principal === undefined) return line.end("signed out");
    for (const notification of batch) {
      const text = await this.#text(principal, notification);
      if (text !== undefined) line.send(text);
    }
  }

  async #text(principal: Principal | undefined, notification: Notification): Promise<string | undefined> {
    const { log, visible, textOf } = this.#with;
    if (notification.about === undefined) return textOf(notification);
    if (principal === undefined) return undefined;
    try {
      const shown = await visible(principal, notification);
      return shown && textOf(shown);
    } catch (error) {
      log.warn(
        { err: error, user: principal.user, subject: notification.subject },
        "what a receiver may see of a notification could not be told",
      );
      return undefined;
    }
  }
}
