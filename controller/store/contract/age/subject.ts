import { beforeAll, expect } from "vitest";
import type { EntityChange, EntityKey, ObjectStore } from "../../objects.ts";
import { again, all, type ContractSubject, uniqueCid, uniqueName } from "../harness.ts";

/**
 * Factor for the number of changes; 1 is the short form. With a large factor, Cassandra refuses requests for which it
 * only logs a warning in the short form. `npm run soak` sets it.
 */
export const AGE = Number(process.env.ODP_TEST_AGE ?? 1);
export const TIMEOUT_MS = 300_000 * AGE;
export const TTL_MS = 1_000;
export const BATCH = 100;

export interface AgeOptions {
  /** The store's warnings about reads since the last call; absent if a store has no warnings. */
  readonly warnings?: () => readonly string[];
  /** True if entities found by several terms have all of them. */
  readonly isExact?: boolean;
}

/** A class of its own with two objects, both found by `mark` and `kind`; nothing happens to the neighbour. */
export interface FreshObjects {
  readonly cid: number;
  readonly key: EntityKey;
  readonly neighbour: EntityKey;
  readonly mark: string;
  readonly kind: string;
}

/** The objects that age, and how they are written and found. Calls are repeated after an outage. */
export interface AgeSubject {
  readonly subject: () => ContractSubject;
  readonly objects: () => ObjectStore;
  /** The store's warnings about reads since the last call; none if a store has no warnings. */
  readonly warnings: () => readonly string[];
  /** The write time from which tests count, in microseconds. */
  readonly baseUs: () => number;
  readonly write: (...changes: EntityChange[]) => Promise<void>;
  /** Writes the changes of steps 0 to `count` - 1 one batch after the other. */
  readonly inOrder: (count: number, step: (n: number) => EntityChange) => Promise<void>;
  /** The sorted ids of the entities that have all terms; fails if one is found twice. */
  readonly find: (terms: readonly string[], limit?: number) => Promise<readonly string[]>;
  readonly fresh: () => Promise<FreshObjects>;
  /** Expects that both objects are found in every way, without a warning of the store. */
  readonly holds: (objects: FreshObjects) => Promise<void>;
}

/** Call it in the block of the tests, before them. */
export function ageSubject(subject: () => ContractSubject, { warnings = () => [] }: AgeOptions): AgeSubject {
  const objects = (): ObjectStore => subject().store.objects;
  let baseUs = 0;
  beforeAll(() => {
    baseUs = subject().clock.nowMs() * 1_000;
  });
  const write = (...changes: EntityChange[]): Promise<void> => again(() => objects().change(changes));
  const find = (terms: readonly string[], limit = 100): Promise<readonly string[]> => foundBy(objects(), terms, limit);
  return {
    subject,
    objects,
    warnings,
    baseUs: () => baseUs,
    write,
    async inOrder(count, step) {
      for (let from = 0; from < count; from += BATCH)
        await write(...Array.from({ length: Math.min(BATCH, count - from) }, (_, n) => step(from + n)));
    },
    find,
    async fresh() {
      const cid = uniqueCid();
      const [key, neighbour] = [
        { cid, id: "aged" },
        { cid, id: "neighbour" },
      ];
      const [mark, kind] = [uniqueName("a7=mark"), `c${cid}`];
      for (const one of [key, neighbour])
        await write({ key: one, timeUs: baseUs + 1, birth: true, addTerms: [mark, kind], numbers: new Map([[0, 1]]) });
      return { cid, key, neighbour, mark, kind };
    },
    async holds({ key, neighbour, mark, kind }) {
      warnings();
      expect((await again(() => objects().get([key])))[0]).toBeDefined();
      for (const terms of [[mark], [kind], [mark, kind]])
        expect(await find(terms), terms.join(" and ")).toEqual([key.id, neighbour.id]);
      expect(await find([mark], 1)).toEqual([key.id, neighbour.id]);
      const ranged = await all(10, (page) =>
        objects().find({ terms: [kind], ranges: [{ slot: 0, from: 1, to: 1 }] }, page),
      );
      expect(ranged.map(({ key: { id } }) => id).sort()).toEqual([key.id, neighbour.id]);
      expect(warnings()).toEqual([]);
    },
  };
}

async function foundBy(objects: ObjectStore, terms: readonly string[], limit: number): Promise<readonly string[]> {
  const found = await all(limit, (page) => objects.find({ terms }, page));
  const ids = found.map(({ key }) => key.id);
  expect(new Set(ids).size, "each is found once").toBe(ids.length);
  return ids.sort();
}
