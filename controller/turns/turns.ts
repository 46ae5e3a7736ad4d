import { CALLS_BEGUN_PER_TURN, CALLS_BEGUN_PER_TURN_SHARED, CALLS_SHARED_TURNS } from "../../common/limits.ts";

export interface TurnLimits {
  /** Number of works that start in one turn while only one name is active. */
  readonly alone: number;
  /** Number of works that start in one turn while several names are active. */
  readonly shared: number;
  /** Number of turns for which a name counts as active after it started work. */
  readonly sharedTurns: number;
}

/**
 * Starts only a bounded amount of work in each turn of the event loop, with the waiting names in rotation: a name with
 * one piece of work never waits behind all the work of another name. If nothing waits, work starts at once.
 */
export class Turns {
  readonly #limits: TurnLimits;
  /** Waiting work by name, in the order of the rotation. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #begun = 0;
  #number = 0;
  #lookedAtMs: number | undefined;
  #scheduled = false;
  /** The name that started work last, and the one before it. */
  #latest = { name: "", turn: 0 };
  #other: { readonly name: string; readonly turn: number } | undefined;

  constructor(limits: TurnLimits) {
    this.#limits = limits;
  }

  /** Number of the current turn of the event loop. */
  get number(): number {
    this.#schedule();
    return this.#number;
  }

  /** Time of the first call in the current turn, by the caller's clock. */
  beganMs(nowMs: number): number {
    this.#schedule();
    return (this.#lookedAtMs ??= nowMs);
  }

  async next(name: string): Promise<void> {
    if (!this.begins(name)) await new Promise<void>((begin) => this.#queue(name, begin));
  }

  /** Starts work if nothing waits and this turn has room for it. */
  begins(name: string): boolean {
    const hasRoom = this.#waiting.size === 0 && this.#begun < this.#perTurn();
    if (hasRoom) this.#begin(name);
    return hasRoom;
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
    // Moves the name to the end of the rotation.
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
