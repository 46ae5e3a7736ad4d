import { CHANGE_BATCH_MAX, WRITE_AHEAD_MAX_MS } from "../../../../common/limits.ts";
import type { Edge, Entity, EntityChange, EntityKey, StoredRecord } from "../../../store/objects.ts";
import { confirmed } from "../definitions/confirm.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import { marksEnd } from "../history/formeredges.ts";
import { findEntities, inPages, keyText, placeText, type Place } from "../reading/locate.ts";
import { entitySize, less, recordSize, sumOf } from "../values/room.ts";
import type { ObjectRow, RemoveOptions } from "../types.ts";
import { supersededEnd } from "../values/compose.ts";
import { entityObject, entityRow } from "../values/entity.ts";
import { deleteEvent } from "../values/events.ts";
import { recordObject } from "../values/records.ts";
import { droppedTerms } from "../values/terms.ts";
import { tombstoneEnd, tombstoneKey, tombstoneOf } from "../values/tombstones.ts";
import { REMOVED_VERSION } from "../values/versions.ts";
import { incomingEdges } from "./edges/incoming.ts";
import type { WriteInCommit } from "./records/incommit.ts";
import { withoutCommit, type WriteContext, type Writing } from "./writing.ts";

type Removal = Omit<RemoveOptions, "inCommit">;

interface RemovalWrite {
  timeOf(place: Place): number;
  readonly withVersions: boolean;
  /**
   * True if the object has a tombstone: it has versions, and was removed before or expires. Its class may keep no
   * versions any more.
   */
  hasTombstone(place: Place): boolean;
  /** Terms of the object when it was read; empty if it did not exist. */
  termsOf(place: Place): readonly string[];
}

/** Entities that are removed, as they were read. Times are by the text of their places. */
interface RemovedEntities {
  readonly living: ReadonlyMap<string, { readonly place: Place; readonly entity: Entity }>;
  /** True for each living object whose removal is to be announced. */
  readonly announced: readonly boolean[];
  /** Objects that do not exist any more, but may have versions. Empty without `withVersions`. */
  readonly dead: readonly Place[];
  readonly deadUs: ReadonlyMap<string, number>;
  readonly tombstones: ReadonlyMap<string, number>;
}

/** Removes objects of one tenant. */
export class ObjectRemover {
  readonly #writing: Writing;

  constructor(writing: Writing) {
    this.#writing = writing;
  }

  /**
   * Returns the number of removed objects. With `withVersions`, it includes objects that were removed before and have a
   * tombstone. Each list of places names one object.
   */
  async remove(context: WriteContext, refs: readonly (readonly Place[])[], removal: Removal): Promise<number> {
    let removed = 0;
    const own = refs.length <= CHANGE_BATCH_MAX ? context : withoutCommit(context);
    for (let from = 0; from < refs.length; from += CHANGE_BATCH_MAX) {
      const batch = refs.slice(from, from + CHANGE_BATCH_MAX);
      removed += await this.#removeEntities(own, batch, removal);
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
    const held = named.flat().map(placeText);
    return this.#writing.queue.run(held, context.triggers?.chain, async () => {
      const read = await this.#readRemoved(context, named, withVersions);
      const { living, announced, dead, tombstones } = read;
      const hasTombstone = (place: Place): boolean => tombstones.has(placeText(place));
      const termsOf = (place: Place): readonly string[] => {
        const entity = living.get(placeText(place))?.entity;
        return entity === undefined ? [] : droppedTerms(place.view, entityRow(place.view, entity));
      };
      const forgotten = dead.filter((place) => place.view.options.version || hasTombstone(place));
      const places = [...[...living.values()].map((entry) => entry.place), ...forgotten];
      const incoming = await incomingEdges(
        places.map(({ key }) => key),
        this.#writing.source,
      );
      const commonUs = this.#writing.clock.nextUs();
      const timesUs = this.#removalTimes(read, { writeUs, commonUs });
      const endUs = (key: EntityKey): number => timesUs.get(keyText(key)) ?? commonUs;
      const timeOf = ({ key }: Place): number => endUs(key);
      const events = () =>
        [...living.values()].map(({ place, entity }, at) =>
          deleteEvent(entityObject(place.view, entity), timeOf(place), announced[at]),
        );
      const write = { timeOf, withVersions, hasTombstone, termsOf };
      const removal = async (): Promise<void> => {
        await this.#writeRemoval(places, write, living.size > 0 ? context.inCommit : undefined);
        await confirmed(context, (now) =>
          this.#writeRemoval(placesNow(withVersions ? named.flat() : places, now), write),
        );
        // The edges were read before the removal, so they lead to the removed object, even if their times are far
        // ahead.
        const alsoEnds = (edge: Edge): boolean => writeUs === undefined || isAhead(edge, commonUs);
        await this.#writing.endEdges(context, incoming, { endUs, alsoEnds });
      };
      await this.#writing.ending(incoming, endUs, () => context.publish(events, removal));
      const own = [...living.values()].filter(({ place }) => !place.view.system);
      context.room?.count(less(sumOf(own.map(({ entity }) => entitySize(entity)))));
      return living.size + dead.filter(hasTombstone).length;
    });
  }

  /** Reads the objects and runs the triggers of their removals. */
  async #readRemoved(
    context: WriteContext,
    named: readonly (readonly Place[])[],
    withVersions: boolean,
  ): Promise<RemovedEntities> {
    const all = named.flat();
    const found = await findEntities(this.#writing.store, named);
    const living = new Map(
      found.flatMap((entry) => (entry === undefined ? [] : [[placeText(entry.place), entry] as const])),
    );
    const objects = [...living.values()].map(({ place, entity }) => entityObject(place.view, entity));
    const announced = await announcedOf(context, objects, all.map(placeText));
    const dead = withVersions ? all.filter((place) => !living.has(placeText(place))) : [];
    const deadUs = await this.#lastTimes(dead);
    const tombstones = await this.#tombstonesOf(withVersions ? all : []);
    return { living, announced, dead, deadUs, tombstones };
  }

  /** Times of the removals, by the text of the places: `writeUs`, or a time above everything known of the object. */
  #removalTimes(
    { living, dead, deadUs, tombstones }: RemovedEntities,
    { writeUs, commonUs }: { readonly writeUs: number | undefined; readonly commonUs: number },
  ): ReadonlyMap<string, number> {
    const places = [...[...living.values()].map(({ place }) => place), ...dead];
    return new Map(
      places.map((place) => {
        const text = placeText(place);
        const writtenUs = living.get(text)?.entity.lastUs ?? deadUs.get(text) ?? 0;
        const lastUs = Math.max(writtenUs, tombstones.get(text) ?? 0);
        return [text, writeUs ?? this.#writing.clock.ofObject([text], lastUs, commonUs)] as const;
      }),
    );
  }

  /** Times of the last write or removal of these objects, by the text of their places; 0 if unknown. */
  async #lastTimes(dead: readonly Place[]): Promise<ReadonlyMap<string, number>> {
    const traces = await this.#writing.store.trace(dead.map((place) => place.key));
    return new Map(dead.map((place, at) => [placeText(place), traces[at]?.lastUs ?? 0]));
  }

  /**
   * Times of the tombstones, by the text of their places. Objects without one are left out. The store keeps a tombstone
   * longer than a removal.
   */
  async #tombstonesOf(places: readonly Place[]): Promise<ReadonlyMap<string, number>> {
    const tombstones = await inPages(
      places.map(({ key }) => tombstoneKey(key)),
      (keys) => this.#writing.store.get(keys),
    );
    return new Map(
      places.flatMap((place, at) => {
        const tombstone = tombstones[at];
        return tombstone === undefined ? [] : [[placeText(place), tombstone.lastUs] as const];
      }),
    );
  }

  /** Writes the tombstones first: a removed object with versions can be found again after an interruption. */
  async #writeRemoval(places: readonly Place[], write: RemovalWrite, inCommit?: WriteInCommit): Promise<void> {
    const { timeOf, withVersions, hasTombstone, termsOf } = write;
    const versioned = places.filter((place) => place.view.options.version || hasTombstone(place));
    const marks = withVersions ? await marksEnd(versioned, timeOf, this.#writing.source) : [];
    if (!withVersions)
      await this.#writing.change(versioned.map((place) => tombstoneOf(place.view, place.key.id, timeOf(place))));
    const deaths = places.map((place): EntityChange => {
      const { view, key } = place;
      const timeUs = timeOf(place);
      const death = { key, timeUs, death: true as const, dropTerms: termsOf(place) };
      if (withVersions) return { ...death, forgetHistory: true };
      if (!view.options.version) return death;
      return { ...death, version: REMOVED_VERSION, versionStays: true, ...supersededEnd(view, timeUs) };
    });
    await this.#writing.changeOnce(deaths, withVersions ? undefined : inCommit);
    if (withVersions) await this.#writing.change(versioned.map((place) => tombstoneEnd(place.key, timeOf(place))));
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
    return this.#writing.queue.run([...places.keys()], context.triggers?.chain, () =>
      this.#removeLivingRecords(context, [...places.values()]),
    );
  }

  async #removeLivingRecords(context: WriteContext, all: readonly Place[]): Promise<number> {
    const records = await inPages(
      all.map((place) => place.key),
      (keys) => this.#writing.store.getRecords(keys),
    );
    const living = all.flatMap((place, at) => {
      const record = records[at];
      return record === undefined ? [] : [{ place, record }];
    });
    if (living.length === 0) return 0;
    const announced = await announcedOf(
      context,
      living.map(({ place, record }) => recordObject(place.view, record)),
      all.map(placeText),
    );
    const incoming = await incomingEdges(
      living.map(({ place }) => place.key),
      this.#writing.source,
    );
    const timeUs = this.#writing.clock.nextUs();
    // No read shows the time of this removal. If a record is ahead of the clock, the clock notes a time above its own,
    // so that a later write of the same id gets a time above that.
    for (const { place, record } of living)
      this.#writing.clock.ofObject([placeText(place)], record.rewrittenUs ?? 0, timeUs);
    const endUs = (): number => timeUs;
    const events = () =>
      living.map(({ place, record }, at) => deleteEvent(recordObject(place.view, record), timeUs, announced[at]));
    const removal = async (): Promise<void> => {
      await this.#eraseRecords(living.map(({ record }) => record));
      await this.#writing.endEdges(context, incoming, { endUs, alsoEnds: () => true });
    };
    await this.#writing.ending(incoming, endUs, () => context.publish(events, removal));
    const own = living.filter(({ place }) => !place.view.system);
    context.room?.count(less(sumOf(own.map(({ record }) => recordSize(record)))));
    return living.length;
  }

  async #eraseRecords(records: readonly StoredRecord[]): Promise<void> {
    for (let from = 0; from < records.length; from += CHANGE_BATCH_MAX)
      await this.#writing.store.removeRecords(records.slice(from, from + CHANGE_BATCH_MAX));
  }
}

/**
 * True for an edge far ahead of the clock that stores no known removal (`knownRemoval`). An earlier version took such a
 * time from outside, so it does not say when the edge was made.
 */
function isAhead({ timeUs, value }: Edge, commonUs: number): boolean {
  return value === undefined && timeUs > commonUs + WRITE_AHEAD_MAX_MS * 1_000;
}

/** Runs the triggers of the removals. Returns for each object true if its removal is to be announced. */
async function announcedOf(
  { triggers }: WriteContext,
  objects: readonly ObjectRow[],
  held: readonly string[],
): Promise<readonly boolean[]> {
  const announced: boolean[] = [];
  for (const { id, class: view, values } of objects) {
    const loaded = triggers?.has(view) ? triggers : undefined;
    announced.push((await loaded?.removal(view, { id, values }, held)) ?? false);
  }
  return announced;
}

/** The places whose classes keep versions by the current definitions. Their removals get tombstones. */
function placesNow(places: readonly Place[], now: Snapshot): Place[] {
  return places.flatMap(({ key }) => {
    const view = now.byCid(key.cid);
    return view?.options.version === true ? [{ view, key }] : [];
  });
}
