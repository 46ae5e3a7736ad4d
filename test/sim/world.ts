import { createHash } from "node:crypto";
import type { Clock, Random } from "../../common/time.ts";
import { seededRandom } from "../helpers/time/clock.ts";

interface Event {
  readonly atMs: number;
  readonly order: number;
  readonly label: string;
  readonly action: () => void;
  cancelled: boolean;
}

interface Outside {
  readonly over: Promise<unknown>;
  /** Continues the code that waits for the work. */
  readonly release: () => void;
}

export interface WorldOptions {
  readonly seed: number;
  readonly startMs: number;
  /** True: records events as text for people. */
  readonly tracing?: boolean;
}

/**
 * Time and order of all events. Only planned events happen, one after the other. Each starts only when the work of the
 * previous one has come to rest: all promise turns are over, and everything waits for time only. The seed therefore
 * determines everything.
 */
export class World {
  readonly random: Random;
  readonly trace: string[] = [];
  readonly tracing: boolean;
  readonly #queue = new Queue();
  readonly #hash = createHash("sha256");
  /** Work of other threads, in the order of its beginning. */
  readonly #outside: Outside[] = [];
  #resting: Promise<void> | undefined;
  #nowMs: number;
  #orders = 0;
  events = 0;

  constructor({ seed, startMs, tracing }: WorldOptions) {
    this.random = seededRandom(seed);
    this.#nowMs = startMs;
    this.tracing = tracing ?? false;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** The correct wall clock, in milliseconds. */
  get clock(): Clock {
    return {
      nowMs: () => this.#nowMs,
      monotonicMs: () => this.#nowMs,
      after: (delayMs, callback) => this.after(delayMs, "store", callback),
    };
  }

  /** Plans an event; call the result to cancel it. Events at the same time run in the order of their planning. */
  after(delayMs: number, label: string, action: () => void): () => void {
    const event = { atMs: this.#nowMs + Math.max(0, delayMs), order: ++this.#orders, label, action, cancelled: false };
    this.#queue.push(event);
    return () => void (event.cancelled = true);
  }

  /**
   * Lets real time pass until the work is done, while simulated time stands still: for cryptography in threads. Code
   * that waits for it continues when all other work has come to rest, so nothing depends on the speed of the threads.
   */
  async outside<T>(work: Promise<T>): Promise<T> {
    const over = Promise.allSettled([work]);
    await new Promise<void>((release) => {
      this.#outside.push({ over, release });
      void this.#rest();
    });
    return work;
  }

  async advance(byMs: number): Promise<void> {
    const untilMs = this.#nowMs + byMs;
    await this.#rest();
    for (let event = this.#queue.next(untilMs); event; event = this.#queue.next(untilMs)) {
      if (event.cancelled) continue;
      this.#nowMs = Math.max(this.#nowMs, event.atMs);
      this.events += 1;
      event.action();
      await this.#rest();
    }
    this.#nowMs = untilMs;
  }

  /** Advances step by step until the condition holds; false if it does not hold within that time. */
  async until(
    isSo: () => boolean,
    { withinMs, stepMs }: { readonly withinMs: number; readonly stepMs: number },
  ): Promise<boolean> {
    for (let passedMs = 0; passedMs < withinMs && !isSo(); passedMs += stepMs) await this.advance(stepMs);
    return isSo();
  }

  /** Waits for a promise by advancing time. */
  async settle<T>(work: Promise<T>, withinMs = 600_000): Promise<T> {
    let over = false;
    const mark = () => void (over = true);
    work.then(mark, mark);
    if (!(await this.until(() => over, { withinMs, stepMs: 50 })))
      throw new Error(`Not over within ${withinMs} ms of virtual time.`);
    return work;
  }

  /** Part of the trace that must be identical for the same seed. */
  note(text: string): void {
    const line = `${(this.#nowMs / 1_000).toFixed(3)} ${text}`;
    this.#hash.update(line).update("\n");
    if (this.tracing) this.trace.push(line);
  }

  /** A remark for people; not compared. */
  remark(text: string): void {
    if (this.tracing) this.trace.push(`${(this.#nowMs / 1_000).toFixed(3)}   ${text}`);
  }

  get fingerprint(): string {
    return this.#hash.copy().digest("hex").slice(0, 16);
  }

  chance(rate: number): boolean {
    return this.random.next() < rate;
  }

  between(low: number, high: number): number {
    return low + this.random.next() * (high - low);
  }

  pick<T>(items: readonly [T, ...T[]]): T {
    return items[Math.floor(this.random.next() * items.length)] ?? items[0];
  }

  /** One shared rest for all waiters, because two would see the turns of each other. */
  #rest(): Promise<void> {
    return (this.#resting ??= this.#comeToRest().finally(() => (this.#resting = undefined)));
  }

  async #comeToRest(): Promise<void> {
    for (;;) {
      await turnsOver();
      const [first] = this.#outside;
      if (first === undefined) return;
      await first.over;
      this.#outside.shift();
      first.release();
    }
  }
}

/** Resolves when all promise turns are over, including those of work that pauses for a turn of the event loop. */
async function turnsOver(): Promise<void> {
  do await new Promise((resolve) => setImmediate(resolve));
  while (process.getActiveResourcesInfo().includes("Immediate"));
}

/** A binary heap ordered by time, then by sequence. */
class Queue {
  readonly #events: Event[] = [];

  push(event: Event): void {
    const events = this.#events;
    let at = events.push(event) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!this.#swapWhenEarlier(at, above)) return;
      at = above;
    }
  }

  /** Removes and returns the first event that is due. */
  next(untilMs: number): Event | undefined {
    const events = this.#events;
    const [first] = events;
    if (!first || first.atMs > untilMs) return undefined;
    const last = events.pop();
    if (last && events.length > 0) {
      events[0] = last;
      this.#sink();
    }
    return first;
  }

  #sink(): void {
    for (let at = 0; ; ) {
      const left = 2 * at + 1;
      const smaller = this.#isEarlier(left + 1, left) ? left + 1 : left;
      if (!this.#swapWhenEarlier(smaller, at)) return;
      at = smaller;
    }
  }

  #isEarlier(a: number, b: number): boolean {
    const [one, other] = [this.#events[a], this.#events[b]];
    if (!one || !other) return false;
    return one.atMs !== other.atMs ? one.atMs < other.atMs : one.order < other.order;
  }

  #swapWhenEarlier(a: number, b: number): boolean {
    const [one, other] = [this.#events[a], this.#events[b]];
    if (!one || !other || !this.#isEarlier(a, b)) return false;
    [this.#events[a], this.#events[b]] = [other, one];
    return true;
  }
}
