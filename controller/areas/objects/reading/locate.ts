import { AppError } from "../../../../common/errors.ts";
import { parseObjectId, ulidTimeMs } from "../../../../common/ids.ts";
import { OBJECT_ID_MAX_BYTES, OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { Entity, EntityKey, ObjectStore } from "../../../store/objects.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import type { LoadedClass } from "../definitions/views.ts";
import type { ObjectRef } from "../types.ts";

/** Possible place of an object that is named by its id. Several classes can share a label. */
export interface Place {
  readonly view: LoadedClass;
  readonly key: EntityKey;
}

/** Places that a reference may mean, in classes for which `allowed` is true. Empty when no class has the label. */
export function placesOf(snapshot: Snapshot, ref: ObjectRef, allowed: (view: LoadedClass) => boolean): Place[] {
  const parts = parseObjectId(ref.id);
  if (parts === undefined || !parts.key.isWellFormed() || Buffer.byteLength(parts.key) > OBJECT_ID_MAX_BYTES) return [];
  const isRecordId = ulidTimeMs(parts.key) !== undefined;
  const views = snapshot.candidates(parts.label, ref.class).filter((view) => {
    return view.provide === undefined && (view.kind === "entity" || isRecordId) && allowed(view);
  });
  return views.map((view) => ({ view, key: { cid: view.cid, id: parts.key } }));
}

export function placeText(place: Place): string {
  return keyText(place.key);
}

export function keyText(key: EntityKey): string {
  return `${key.cid}:${key.id}`;
}

/** Calls the function for pages of keys. Returns the answers for all keys, in their order. */
export function inPages<T>(
  keys: readonly EntityKey[],
  ask: (keys: readonly EntityKey[]) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  return keys.length > 0 && keys.length <= OBJECT_PAGE_MAX ? ask(keys) : inSeveralPages(keys, ask);
}

async function inSeveralPages<T>(
  keys: readonly EntityKey[],
  ask: (keys: readonly EntityKey[]) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  const answers: T[] = [];
  for (let from = 0; from < keys.length; from += OBJECT_PAGE_MAX)
    answers.push(...(await ask(keys.slice(from, from + OBJECT_PAGE_MAX))));
  return answers;
}

/** For each list of places, the first entity that exists. */
export async function findEntities(
  store: ObjectStore,
  refs: readonly (readonly Place[])[],
): Promise<({ readonly place: Place; readonly entity: Entity } | undefined)[]> {
  const places = refs.flat().filter((place) => place.view.kind === "entity");
  const entities = await inPages(
    places.map((place) => place.key),
    (keys) => store.get(keys),
  );
  const found = new Map(places.map((place, at) => [placeText(place), entities[at]]));
  return refs.map((candidates) => {
    for (const place of candidates) {
      const entity = found.get(placeText(place));
      if (entity !== undefined && place.view.kind === "entity") return { place, entity };
    }
    return undefined;
  });
}

/** Classes in which the targets of edges are looked for. */
export interface TargetClasses {
  readonly snapshot: Snapshot;
  readonly readable: (view: LoadedClass) => boolean;
}

/** Places of the targets of edges, by id. A target need not exist yet if its id can be of only one class. */
export async function resolveTargets(
  { snapshot, readable }: TargetClasses,
  ids: readonly string[],
  within: { readonly store: ObjectStore },
): Promise<Map<string, EntityKey>> {
  const resolved = new Map<string, EntityKey>();
  const open: { readonly id: string; readonly places: readonly Place[] }[] = [];
  for (const id of new Set(ids)) {
    const places = placesOf(snapshot, { id }, readable);
    const [only] = places;
    if (only === undefined) throw new AppError("invalid", `[NotExist] Not Found Class For ID ${id}`);
    if (places.length === 1) resolved.set(id, only.key);
    else open.push({ id, places });
  }
  const found = await findEntities(
    within.store,
    open.map((entry) => entry.places),
  );
  for (const [at, entry] of open.entries()) {
    const target = found[at];
    if (target === undefined)
      throw new AppError("invalid", `[NotExist] ${entry.id}: several classes have such ids, and none has this one.`);
    resolved.set(entry.id, target.place.key);
  }
  return resolved;
}
