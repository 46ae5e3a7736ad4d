import { Changes } from "../../agent/outbox/changes.ts";
import type { SessionOutbox } from "../../agent/session/session.ts";
import type { Entry } from "../../proto/gen/agent/v1/agent.ts";

type Body = NonNullable<Entry["body"]>;

/** Outbox of an emulated agent, in memory: it outlives sessions, and nothing else. */
export class MemoryOutbox implements SessionOutbox {
  readonly streamId: string;
  readonly #entries: Entry[] = [];
  readonly #changes = new Changes();
  #sender: Promise<unknown> = Promise.resolve();
  #first = 1;
  /** Without records there is nothing to pin. */
  readonly pins: SessionOutbox["pins"] = {
    nextUs: 0,
    told: undefined,
    after: () => undefined,
    add: () => Promise.reject(new Error("Emulated agents send no records.")),
    leaveOut: () => undefined,
    forget: () => Promise.resolve(),
  };

  constructor(streamId: string) {
    this.streamId = streamId;
  }

  get firstSequence(): number {
    return this.#first;
  }

  get nextSequence(): number {
    return this.#first + this.#entries.length;
  }

  get acknowledged(): number {
    return this.#first - 1;
  }

  get version(): number {
    return this.#changes.version;
  }

  append(bodies: readonly Body[], atMs: number, traceparent: string): void {
    for (const body of bodies) this.#entries.push({ sequence: this.nextSequence, timeMs: atMs, traceparent, body });
    this.#changes.note();
  }

  changed(since: number, signal?: AbortSignal): Promise<void> {
    return this.#changes.after(since, signal);
  }

  acknowledge(sequence: number): Promise<void> {
    const safe = Math.min(this.#entries.length, sequence - this.#first + 1);
    if (safe > 0) {
      this.#entries.splice(0, safe);
      this.#first += safe;
      this.#changes.note();
    }
    return Promise.resolve();
  }

  inTurn(send: () => Promise<void>): Promise<void> {
    const turn = this.#sender.then(send);
    this.#sender = turn.catch(() => undefined);
    return turn;
  }

  /** Always fails: an outbox that is never restored from an older copy needs no new name. */
  renewStream(): Promise<void> {
    return Promise.reject(new Error(`The controllers know entries of ${this.streamId} that were never written.`));
  }

  /** Limits a batch by its number of entries only, because emulated entries are small. */
  reader(from: number): { next(maxEntries: number): Promise<Entry[]>; close(): Promise<void> } {
    let next = from;
    return {
      next: (maxEntries) => {
        const at = Math.max(0, next - this.#first);
        const taken = this.#entries.slice(at, at + maxEntries);
        next = (taken.at(-1)?.sequence ?? next - 1) + 1;
        return Promise.resolve(taken);
      },
      close: () => Promise.resolve(),
    };
  }
}
