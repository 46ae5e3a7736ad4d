import { CALLS_BEGUN_PER_TURN, CALLS_BEGUN_PER_TURN_SHARED, CALLS_SHARED_TURNS } from "../common/limits.ts";

export interface TurnLimits {
  /** Pieces of work that begin in one turn while one name has the place to itself. */
  readonly alone: number;
  /** While several share it. */
  readonly shared: number;
  /** A name shares the place for so many turns after it began something. */
  readonly sharedTurns: number;
}

/**
 * Lets work begin in turns of the event loop, only so much in each, and takes the waiting names in rotation: the only
 * piece of work of one name never waits behind all that another name brought. When nothing waits, work begins at once.
 */
export class Turns {
  readonly #limits: TurnLimits;
  /** By name, in the order of their turns. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #begun = 0;
  #number = 0;
  #lookedAtMs: number | undefined;
  #scheduled = false;
  /** The name that began something last, and the one before it. */
  #latest = { name: "", turn: 0 };
  #other: { readonly name: string; readonly turn: number } | undefined;

  constructor(limits: TurnLimits) {
    this.#limits = limits;
  }

  /** The number of the present turn of the event loop. */
  get number(): number {
    this.#schedule();
    return this.#number;
  }

  /** Time of the first question in the present turn, by the caller's clock. */
  beganMs(nowMs: number): number {
    this.#schedule();
    return (this.#lookedAtMs ??= nowMs);
  }

  async next(name: string): Promise<void> {
    if (this.#waiting.size === 0 && this.#begun < this.#perTurn()) this.#begin(name);
    else await new Promise<void>((begin) => this.#queue(name, begin));
  }

  #queue(name: string, begin: () => void): void {
    const waiting = this.#waiting.get(name);
    if (waiting) waiting.push(begin);
    else this.#waiting.set(name, [begin]);
    this.#schedule();
  }

  #perTurn(): number {
    const { alone, shared, sharedTurns } = this.#limits;
    return this.#other && this.#number - this.#other.turn < sharedTurns ? shared : alone;
  }

  #begin(name: string): void {
    if (name !== this.#latest.name) this.#other = this.#latest.name === "" ? undefined : this.#latest;
    this.#latest = { name, turn: this.#number };
    this.#begun++;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#scheduled = false;
    this.#begun = 0;
    this.#lookedAtMs = undefined;
    this.#number++;
    while (this.#waiting.size > 0 && this.#begun < this.#perTurn()) this.#one();
    if (this.#waiting.size > 0) this.#schedule();
  }

  #one(): void {
    const [next] = this.#waiting;
    if (!next) return;
    const [name, waiting] = next;
    const begin = waiting.shift();
    // At the end of the rotation again.
    this.#waiting.delete(name);
    if (waiting.length > 0) this.#waiting.set(name, waiting);
    this.#begin(name);
    begin?.();
  }
}

/** The turns of this thread; names are tenants. */
export const THREAD_TURNS = new Turns({
  alone: CALLS_BEGUN_PER_TURN,
  shared: CALLS_BEGUN_PER_TURN_SHARED,
  sharedTurns: CALLS_SHARED_TURNS,
});
