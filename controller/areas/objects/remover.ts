import { CHANGE_BATCH_MAX } from "../../../common/limits.ts";
import type { EntityChange } from "../../store/objects.ts";
import { confirmed } from "./confirm.ts";
import { deleteEvent } from "./events.ts";
import { marksEnd } from "./formeredges.ts";
import { GRAVES_CID, graveOf } from "./graves.ts";
import { incomingEdges } from "./incoming.ts";
import { findEntities, inPages, placeText, type Place } from "./locate.ts";
import type { Snapshot } from "./snapshot.ts";
import type { SettledTime } from "./types.ts";
import { REMOVED_VERSION } from "./versions.ts";
import { greatest, type WriteContext, type Writing } from "./writing.ts";

interface Removal extends SettledTime {
  readonly withVersions?: boolean;
}

/** Removes objects of one tenant. */
export class ObjectRemover {
  readonly #writing: Writing;

  constructor(writing: Writing) {
    this.#writing = writing;
  }

  /** How many there were. Each list of places names one object. */
  async remove(context: WriteContext, refs: readonly (readonly Place[])[], removal: Removal): Promise<number> {
    let removed = 0;
    for (let from = 0; from < refs.length; from += CHANGE_BATCH_MAX) {
      const batch = refs.slice(from, from + CHANGE_BATCH_MAX);
      removed += await this.#removeEntities(context, batch, removal);
      removed += await this.#removeRecords(context, batch);
    }
    return removed;
  }

  async #removeEntities(
    context: WriteContext,
    refs: readonly (readonly Place[])[],
    { withVersions = false, writeUs }: Removal,
  ): Promise<number> {
    const named = refs
      .map((places) => places.filter((place) => place.view.kind === "entity"))
      .filter((places) => places.length > 0);
    if (named.length === 0) return 0;
    return this.#writing.queue.run(named.flat().map(placeText), async () => {
      const found = await findEntities(this.#writing.store, this.#writing.patience, named);
      const living = new Map(
        found.flatMap((entry) => (entry === undefined ? [] : [[placeText(entry.place), entry] as const])),
      );
      const dead = withVersions ? named.flat().filter((place) => !living.has(placeText(place))) : [];
      const traces = await this.#writing.patience.repeat(() =>
        this.#writing.store.trace(dead.map((place) => place.key)),
      );
      const places = [
        ...[...living.values()].map((entry) => entry.place),
        ...dead.filter((place) => place.view.options.version),
      ];
      const incoming = await incomingEdges(
        places.map(({ key }) => key),
        this.#writing.source,
      );
      const lastUs = Math.max(
        incoming.lastUs,
        greatest(traces),
        greatest([...living.values()].map((entry) => entry.entity)),
      );
      const timeUs = writeUs ?? this.#writing.clock.nextUs(lastUs);
      const events = () => [...living.values()].map(({ place }) => deleteEvent(place, timeUs));
      await context.publish(events, async () => {
        await this.#bury(places, { timeUs, withVersions });
        await confirmed(context, (now) =>
          this.#bury(placesNow(withVersions ? named.flat() : places, now), { timeUs, withVersions }),
        );
        await this.#writing.endEdges(context, incoming, () => timeUs);
      });
      return living.size;
    });
  }

  /** The graves go first: what is dead with versions can be found again, whatever happens in between. */
  async #bury(
    places: readonly Place[],
    of: { readonly timeUs: number; readonly withVersions: boolean },
  ): Promise<void> {
    const { timeUs, withVersions } = of;
    const versioned = places.filter((place) => place.view.options.version);
    const marks = withVersions ? await marksEnd(versioned, timeUs, this.#writing.source) : [];
    if (!withVersions) await this.#writing.change(versioned.map((place) => graveOf(place.view, place.key.id, timeUs)));
    await this.#writing.change(
      places.map(({ view, key }): EntityChange => {
        if (withVersions) return { key, timeUs, death: true, forgetHistory: true };
        return { key, timeUs, death: true, ...(view.options.version ? { version: REMOVED_VERSION } : {}) };
      }),
    );
    if (withVersions)
      await this.#writing.change(
        versioned.map(({ key }) => ({ key: { cid: GRAVES_CID, id: `${key.cid}:${key.id}` }, timeUs, death: true })),
      );
    await this.#writing.change(marks);
  }

  async #removeRecords(context: WriteContext, refs: readonly (readonly Place[])[]): Promise<number> {
    const places = new Map(
      refs
        .flat()
        .filter((place) => place.view.kind === "record")
        .map((place) => [placeText(place), place]),
    );
    if (places.size === 0) return 0;
    return this.#writing.queue.run([...places.keys()], () => this.#removeLivingRecords(context, [...places.values()]));
  }

  async #removeLivingRecords(context: WriteContext, all: readonly Place[]): Promise<number> {
    const records = await inPages(
      all.map((place) => place.key),
      (keys) => this.#writing.patience.repeat(() => this.#writing.store.getRecords(keys)),
    );
    const living = all.filter((_, at) => records[at] !== undefined);
    if (living.length === 0) return 0;
    const incoming = await incomingEdges(
      living.map(({ key }) => key),
      this.#writing.source,
    );
    const timeUs = this.#writing.clock.nextUs(incoming.lastUs);
    await context.publish(
      () => living.map((place) => deleteEvent(place, timeUs)),
      async () => {
        await this.#eraseRecords(living);
        await this.#writing.endEdges(context, incoming, () => timeUs);
      },
    );
    return living.length;
  }

  async #eraseRecords(places: readonly Place[]): Promise<void> {
    for (let from = 0; from < places.length; from += CHANGE_BATCH_MAX) {
      const keys = places.slice(from, from + CHANGE_BATCH_MAX).map((place) => place.key);
      await this.#writing.patience.repeat(() => this.#writing.store.removeRecords(keys));
    }
  }
}

/** Those of classes that keep versions by the definitions of now: their removals are remembered with them. */
function placesNow(places: readonly Place[], now: Snapshot): Place[] {
  return places.flatMap(({ key }) => {
    const view = now.byCid(key.cid);
    return view?.options.version === true ? [{ view, key }] : [];
  });
}
