import { beforeAll } from "vitest";
import { cellMap } from "../../cells.ts";
import type { Entity, EntityChange, EntityKey, FindRequest, ObjectStore } from "../../objects.ts";
import { again, all, bytes, type ContractSubject, text, uniqueCid, uniqueName } from "../harness.ts";

/** Lifetime of the parts that expire in tests. */
export const TTL_MS = 2_000;

/** The objects of the store under test. Calls of `write`, `read`, `values` and `find` are repeated after an outage. */
export interface ObjectsSubject {
  readonly subject: () => ContractSubject;
  readonly objects: () => ObjectStore;
  readonly nowMs: () => number;
  /** A write time that real writers could use, this number of microseconds after the first test began. */
  readonly at: (offsetUs: number) => number;
  readonly write: (...changes: EntityChange[]) => Promise<void>;
  readonly read: (key: EntityKey) => Promise<Entity | undefined>;
  /** The cells of an entity as texts; absent if there is no entity. */
  readonly values: (key: EntityKey) => Promise<Record<string, string> | undefined>;
  /** The sorted ids of the entities found, each once, read in pages of at most `limit`. */
  readonly find: (request: FindRequest, limit?: number) => Promise<readonly string[]>;
}

/** Call it in the block of the tests, before them. */
export function objectsSubject(subject: () => ContractSubject): ObjectsSubject {
  const objects = (): ObjectStore => subject().store.objects;
  const nowMs = (): number => subject().clock.nowMs();
  const read = async (key: EntityKey): Promise<Entity | undefined> => (await again(() => objects().get([key])))[0];
  let baseUs = 0;
  beforeAll(() => {
    baseUs = nowMs() * 1_000;
  });
  return {
    subject,
    objects,
    nowMs,
    at: (offsetUs) => baseUs + offsetUs,
    write: (...changes) => again(() => objects().change(changes)),
    read,
    values: async (key) => textsOf(await read(key)),
    find: async (request, limit = 100) =>
      [...new Set((await all(limit, (page) => objects().find(request, page))).map(({ key }) => key.id))].sort(),
  };
}

export function newKey(): EntityKey {
  return { cid: uniqueCid(), id: uniqueName("o") };
}

/** Cells of texts; `undefined` removes one. */
export function cellsOf(entries: Record<string, string | undefined>): ReadonlyMap<string, Uint8Array | undefined> {
  return new Map(
    Object.entries(entries).map(([cell, value]) => [cell, value === undefined ? undefined : bytes(value)]),
  );
}

/** The cells of an entity as texts. */
export function textsOf(entity: Entity | undefined): Record<string, string> | undefined {
  return entity && Object.fromEntries([...cellMap(entity.cells)].map(([cell, { value }]) => [cell, text(value)]));
}
