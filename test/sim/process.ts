import type { Clock, Random } from "../../common/time.ts";
import { seededRandom } from "../helpers/time/clock.ts";
import type { World } from "./world.ts";

export interface ProcessOptions {
  readonly name: string;
  readonly world: World;
  /** Offset of its wall clock. */
  readonly skew: { ms: number };
}

/**
 * One life of a program. It reaches the world only through its clock, its disk, its network and its store, and all of
 * these continue it by `turn`. It can therefore be stopped between any two turns, temporarily or forever.
 */
export class Process {
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly #world: World;
  #alive = true;
  #held: (() => void)[] | undefined;
  readonly #ends = new Set<() => void>();

  constructor({ name, world, skew }: ProcessOptions) {
    this.name = name;
    this.#world = world;
    this.clock = {
      nowMs: () => Math.round(world.nowMs + skew.ms),
      monotonicMs: () => world.nowMs,
      after: (delayMs, callback) => this.#after(delayMs, callback),
    };
    this.random = quick(seededRandom(Math.floor(world.random.next() * 2 ** 32)));
  }

  get alive(): boolean {
    return this.#alive;
  }

  get paused(): boolean {
    return this.#held !== undefined;
  }

  /** Delivers an event: now, after a pause, or never. */
  turn(action: () => void): void {
    if (!this.#alive) return;
    if (this.#held) this.#held.push(action);
    else action();
  }

  pause(): void {
    this.#held ??= [];
  }

  /** Delivers the held events in order, each in its own turn. */
  resume(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const action of held) this.#world.after(0, this.name, () => this.turn(action));
  }

  kill(): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.#held = undefined;
    for (const end of [...this.#ends]) end();
  }

  /** Called when it dies. */
  onEnd(listener: () => void): () => void {
    this.#ends.add(listener);
    return () => void this.#ends.delete(listener);
  }

  #after(delayMs: number, callback: () => void): () => void {
    let cancelled = false;
    const cancel = this.#world.after(delayMs, this.name, () => this.turn(() => (cancelled ? undefined : callback())));
    return () => {
      cancelled = true;
      cancel();
    };
  }
}

/** Random bytes, four at a time, because many of them fill files that are not read. */
function quick(random: Random): Random {
  const bytes = (count: number): Uint8Array => {
    const words = Uint32Array.from({ length: Math.ceil(count / 4) }, () => random.next() * 2 ** 32);
    return new Uint8Array(words.buffer, 0, count);
  };
  return { next: () => random.next(), bytes };
}

export function never<T>(): Promise<T> {
  return new Promise(() => undefined);
}
