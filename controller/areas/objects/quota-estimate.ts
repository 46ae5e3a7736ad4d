import { isAppError } from "../../../common/errors.ts";
import { ROOM_LOOKUP_IDS_MAX } from "../../../common/limits.ts";
import type { EntityKey, ObjectStore } from "../../store/objects.ts";
import { inPages } from "./reading/locate.ts";
import { entitySize, NO_GROWTH, recordSize, sumOf, type Growth, type WriteRoom } from "./values/room.ts";

export interface RoomOfRehearsal {
  readonly room: WriteRoom;
  readonly store: ObjectStore;
}

/** Object that a row names, which may be stored already. */
export type NamedObject = { readonly entity: EntityKey } | { readonly record: EntityKey };

interface Named {
  readonly object: NamedObject;
  readonly growth: Growth;
}

/** Growth by the rows of a dry run. Their objects are read only if the quota has no room for all of them. */
export class QuotaEstimate {
  readonly #with: RoomOfRehearsal;
  readonly #named = new Map<string, Named>();
  #sum = NO_GROWTH;

  constructor(of: RoomOfRehearsal) {
    this.#with = of;
  }

  /** A row with a generated id names no object. */
  add(growth: Growth, object?: NamedObject): void {
    if (object === undefined) {
      this.#sum = sumOf([this.#sum, growth]);
      return;
    }
    const key = "entity" in object ? object.entity : object.record;
    const name = `${key.cid}:${key.id}`;
    const before = this.#named.get(name);
    if (before === undefined && this.#named.size >= ROOM_LOOKUP_IDS_MAX) this.#sum = sumOf([this.#sum, growth]);
    else this.#named.set(name, { object, growth });
  }

  /** `AppError("too_large")` if the quota has no room for the rows added so far. */
  async require(): Promise<void> {
    const named = [...this.#named.values()];
    try {
      await this.#with.room.require(sumOf([this.#sum, ...named.map(({ growth }) => growth)]));
    } catch (error) {
      if (named.length === 0 || !isAppError(error, "too_large")) throw error;
      await this.#with.room.require(await this.#exact(named));
    }
  }

  async #exact(named: readonly Named[]): Promise<Growth> {
    const { store } = this.#with;
    const sizes = new Map<Named, Growth>();
    const entities = named.flatMap((one) => ("entity" in one.object ? { one, key: one.object.entity } : []));
    const records = named.flatMap((one) => ("record" in one.object ? { one, key: one.object.record } : []));
    const foundEntities = await inPages(keysOf(entities), (keys) => store.get(keys));
    const foundRecords = await inPages(keysOf(records), (keys) => store.getRecords(keys));
    for (const [at, { one }] of entities.entries())
      if (foundEntities[at] !== undefined) sizes.set(one, entitySize(foundEntities[at]));
    for (const [at, { one }] of records.entries())
      if (foundRecords[at] !== undefined) sizes.set(one, recordSize(foundRecords[at]));
    const growths = named.map((one): Growth => {
      const size = sizes.get(one);
      return size === undefined ? one.growth : { objects: 0, bytes: Math.max(0, one.growth.bytes - size.bytes) };
    });
    return sumOf([this.#sum, ...growths]);
  }
}

function keysOf(found: readonly { readonly key: EntityKey }[]): readonly EntityKey[] {
  return found.map(({ key }) => key);
}
