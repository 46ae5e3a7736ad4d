/**
 * Lets work begin in turns of the event loop, only so much in each, and of those who wait each name in rotation: who comes with one piece
 * of work never waits behind all that another one brought. With nobody waiting, work begins at once.
 */
export class Turns {
  readonly #perTurn: number;
  /** By name, in the order of their turns. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #begun = 0;
  #scheduled = false;

  constructor(perTurn: number) {
    this.#perTurn = perTurn;
  }

  async next(name: string): Promise<void> {
    if (this.#waiting.size === 0 && this.#begun < this.#perTurn) this.#begin();
    else await new Promise<void>((begin) => this.#queue(name, begin));
  }

  #queue(name: string, begin: () => void): void {
    const waiting = this.#waiting.get(name);
    if (waiting) waiting.push(begin);
    else this.#waiting.set(name, [begin]);
    this.#schedule();
  }

  #begin(): void {
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
    while (this.#waiting.size > 0 && this.#begun < this.#perTurn) this.#one();
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
    this.#begin();
    begin?.();
  }
}
