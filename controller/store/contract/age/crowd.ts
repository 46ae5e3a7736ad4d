import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import type { EntityChange, EntityKey, ObjectStore } from "../../objects.ts";
import { again, seedOfRun, uniqueCid, uniqueName } from "../harness.ts";

export const OBJECTS = 500;
/** Approximate share of the objects that have each term. */
const SHARES = [0.9, 0.5, 0.2, 0.1, 0.1, 0.02] as const;

/** Objects that repeatedly added and removed terms, with the terms that they have now. */
export class Crowd {
  readonly mark = uniqueName("a7=several");
  readonly keys: readonly EntityKey[];
  readonly #random = seededRandom(seedOfRun("several terms"));
  readonly #borne: readonly Set<string>[];
  readonly #objects: ObjectStore;
  #timeUs: number;

  constructor(objects: ObjectStore, baseUs: number) {
    const cid = uniqueCid();
    this.#objects = objects;
    this.#timeUs = baseUs;
    this.keys = Array.from({ length: OBJECTS }, (_, at) => ({ cid, id: `t${at}` }));
    this.#borne = this.keys.map(() => new Set());
  }

  term(at: number): string {
    return `${this.mark}-${at}`;
  }

  /** Some terms in random order. */
  draw(): readonly string[] {
    const drawn = SHARES.map((_, at) => this.term(at)).filter(() => this.#random.next() < 0.5);
    return drawn.length > 1 ? drawn.sort(() => this.#random.next() - 0.5) : [this.term(3), this.term(4)];
  }

  limit(): number {
    return [3, 40, 1_000][Math.floor(this.#random.next() * 3)] ?? 40;
  }

  bearers(terms: readonly string[]): readonly string[] {
    return this.keys
      .filter((_, at) => terms.every((term) => this.#borne[at]?.has(term)))
      .map(({ id }) => id)
      .sort();
  }

  count(term: string): number {
    return this.bearers([term]).length;
  }

  /** Every object adds or removes one term. In the first round it is born with its terms. */
  async round(isFirst: boolean): Promise<void> {
    this.#timeUs += 1;
    const changes = this.keys.map((key, at): EntityChange => {
      const borne = this.#borne[at]!;
      const before = new Set(borne);
      const drawn = Math.floor(this.#random.next() * SHARES.length);
      for (const [n, share] of SHARES.entries()) {
        if (!isFirst && n !== drawn) continue;
        if (this.#random.next() < share) borne.add(this.term(n));
        else borne.delete(this.term(n));
      }
      return {
        key,
        timeUs: this.#timeUs,
        ...(isFirst ? { birth: true } : {}),
        addTerms: [...borne],
        dropTerms: [...before].filter((term) => !borne.has(term)),
      };
    });
    await again(() => this.#objects.change(changes));
  }
}
