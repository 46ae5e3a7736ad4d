import { isAppError } from "../../../common/errors.ts";
import { ROOM_LOOKUP_IDS_MAX } from "../../../common/limits.ts";
import type { EntityKey, ObjectStore } from "../../store/objects.ts";
import { inPages } from "./reading/locate.ts";
import { entitySize, NO_GROWTH, sumOf, type Growth, type WriteRoom } from "./values/room.ts";

export interface RoomOfRehearsal {
  readonly room: WriteRoom;
  readonly store: ObjectStore;
}

/** What the rows that are tried would add. Their objects are looked for only where there is no room for all of them. */
export class RoomTally {
  readonly #with: RoomOfRehearsal;
  readonly #named = new Map<string, { readonly key: EntityKey; readonly growth: Growth }>();
  #sum = NO_GROWTH;

  constructor(of: RoomOfRehearsal) {
    this.#with = of;
  }

  /** A row of an id that is generated has no key. */
  add(growth: Growth, key?: EntityKey): void {
    if (key === undefined) {
      this.#sum = sumOf([this.#sum, growth]);
      return;
    }
    const name = `${key.cid}:${key.id}`;
    const before = this.#named.get(name);
    if (before === undefined && this.#named.size >= ROOM_LOOKUP_IDS_MAX) this.#sum = sumOf([this.#sum, growth]);
    else this.#named.set(name, { key, growth });
  }

  /** `AppError("too_large")` where there is no room for the rows added so far. */
  async require(): Promise<void> {
    const named = [...this.#named.values()];
    try {
      await this.#with.room.require(sumOf([this.#sum, ...named.map(({ growth }) => growth)]));
    } catch (error) {
      if (named.length === 0 || !isAppError(error, "too_large")) throw error;
      await this.#with.room.require(await this.#exact(named));
    }
  }

  async #exact(named: readonly { readonly key: EntityKey; readonly growth: Growth }[]): Promise<Growth> {
    const found = await inPages(
      named.map(({ key }) => key),
      (keys) => this.#with.store.get(keys),
    );
    const growths = named.map(({ growth }, at): Growth => {
      const entity = found[at];
      return entity === undefined
        ? growth
        : { objects: 0, bytes: Math.max(0, growth.bytes - entitySize(entity).bytes) };
    });
    return sumOf([this.#sum, ...growths]);
  }
}
