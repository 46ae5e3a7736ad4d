import { isDeepStrictEqual } from "node:util";
import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError } from "../../../../common/errors.ts";
import { CHANGE_BATCH_MAX, HISTORY_READS_IN_FLIGHT_MAX } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import type { EdgeEnd, EntityChange, EntityVersion } from "../../../store/objects.ts";
import { confirmed } from "../definitions/confirm.ts";
import type { LoadedClass } from "../definitions/views.ts";
import { type FormerEdge, lossesOf, marksOf } from "../history/formeredges.ts";
import { keepsVersions, latestVersions } from "../history/history.ts";
import { keyText, placesOf, type Place, type TargetClasses } from "../reading/locate.ts";
import type { PastRelation, Restored, RestoredState, RestoreOutcome } from "../types.ts";
import { supersededEnd } from "../values/compose.ts";
import { checkAll, checkRow } from "../values/rows.ts";
import { tombstone } from "../values/tombstones.ts";
import { decodeVersion, encodeVersion, REMOVED_VERSION } from "../values/versions.ts";
import type { WriteContext, Writing } from "./writing.ts";

/** A state in the form in which it is stored. */
interface MadeState {
  readonly given: RestoredState;
  readonly place: Place;
  readonly version: Uint8Array;
  readonly added: readonly EdgeEnd[];
  readonly lost: readonly (FormerEdge & { readonly timeUs: number })[];
  readonly relationsLeft: number;
  /** No later write ends the version. */
  readonly stays: boolean;
  /** Time at which the version expires; absent: never. */
  readonly expiresAtMs: number | undefined;
}

const NOTHING_LEFT = 0;

/**
 * Stores earlier states of objects as versions, with their former times. The current state of an object does not
 * change: no trigger runs and nothing is published. Storing a state again changes nothing.
 */
export class StateRestorer {
  readonly #writing: Writing;

  constructor(writing: Writing) {
    this.#writing = writing;
  }

  /**
   * Returns the outcomes in the order of `states`. The states of one object must be newest first. An error names the
   * index of its state.
   */
  async restore(
    context: WriteContext,
    view: LoadedClass,
    states: readonly RestoredState[],
  ): Promise<readonly Restored[]> {
    if (!keepsVersions(view)) return states.map(() => told("unversioned"));
    const made = await checkAll(states, (state) => this.#made(view, context, state));
    const restored: Restored[] = [];
    const kept = new Map<string, RestoreOutcome>();
    for (let from = 0; from < made.length; from += CHANGE_BATCH_MAX) {
      const batch = made.slice(from, from + CHANGE_BATCH_MAX);
      const held = [...new Set(batch.map(({ place }) => keyText(place.key)))];
      restored.push(
        ...(await this.#writing.queue.run(held, context.triggers?.chain, () => this.#batch(context, batch, kept))),
      );
    }
    return restored;
  }

  #made(view: LoadedClass, classes: TargetClasses, given: RestoredState): MadeState {
    const { state, timeUs, supersededUs = Infinity } = given;
    const entropy = (): Uint8Array => this.#writing.runtime.random.bytes(10);
    const source = { timeMs: Math.floor(timeUs / 1_000), entropy };
    const { key, edits, links } = checkRow(view, classes.snapshot, { ...state?.values, id: given.id }, { source });
    if (links.length > 0)
      throw new AppError("invalid", "[Valid] Relations of an earlier state are told by ADDED and DROPPED.");
    const place = { view, key: { cid: view.cid, id: key } };
    if (state === undefined) {
      const version = REMOVED_VERSION;
      const none = { added: [], lost: [], relationsLeft: NOTHING_LEFT, expiresAtMs: undefined };
      return { given, place, version, stays: true, ...none };
    }
    const row: Row = {};
    for (const { column, value } of edits) if (value !== undefined) row[column.name] = value;
    const { createdMs, untilMs } = state;
    const added = edgesOf(state.added, classes);
    const dropped = edgesOf(state.dropped, classes);
    const ctimeMs = createdMs === source.timeMs ? undefined : createdMs;
    const stays = added.length + dropped.length > 0;
    const endUs = Math.min(supersededUs, (untilMs ?? Infinity) * 1_000);
    const end = stays || endUs === Infinity ? {} : supersededEnd(view, endUs);
    return {
      given,
      place,
      version: encodeVersion(view, { row, ctimeMs, untilMs, added, dropped }),
      added,
      lost: state.lost.flatMap(({ timeUs: atUs, ...relation }) =>
        edgesOf([relation], classes).map((edge) => ({ ...edge, from: place.key, timeUs: atUs })),
      ),
      relationsLeft: state.added.length + state.dropped.length - added.length - dropped.length,
      stays,
      expiresAtMs: end.endVersionsAtMs,
    };
  }

  async #batch(
    context: WriteContext,
    batch: readonly MadeState[],
    kept: Map<string, RestoreOutcome>,
  ): Promise<readonly Restored[]> {
    for (const [key, outcome] of await this.#keptAmong(batch)) kept.set(key, outcome);
    const nowMs = this.#writing.runtime.clock.nowMs();
    const open = batch.filter(({ place }) => !kept.has(keyText(place.key)));
    const known = await mapLimited(open, HISTORY_READS_IN_FLIGHT_MAX, (state) => this.#versionOf(state));
    const outcomes = new Map<MadeState, RestoreOutcome>();
    for (const [at, state] of open.entries()) outcomes.set(state, outcomeOf(state, known[at], nowMs));
    await this.#write(
      context,
      open.filter((state) => outcomes.get(state) === "stored"),
    );
    return batch.map((state) => {
      const outcome = outcomes.get(state) ?? kept.get(keyText(state.place.key)) ?? "later";
      return { outcome, relationsLeft: outcome === "stored" ? state.relationsLeft : NOTHING_LEFT };
    });
  }

  /**
   * Compares the last state of each object with what is stored here. Returns the objects that take no state, by key,
   * each with its outcome.
   */
  async #keptAmong(batch: readonly MadeState[]): Promise<readonly (readonly [string, RestoreOutcome])[]> {
    const last = batch.filter(({ given }) => given.supersededUs === undefined);
    if (last.length === 0) return [];
    const places = last.map(({ place }) => place);
    const nowMs = this.#writing.runtime.clock.nowMs();
    const traces = await this.#writing.store.trace(places.map(({ key }) => key));
    const versionsUs = await latestVersions(places, this.#writing.source);
    return last.flatMap(({ given, place }, at) => {
      const lastUs = Math.max(traces[at]?.lastUs ?? 0, versionsUs[at] ?? 0);
      const isOver = given.state === undefined || (given.state.untilMs ?? Infinity) <= nowMs;
      const outcome =
        lastUs > given.timeUs ? "later" : isOver && traces[at]?.entity !== undefined ? "exists" : undefined;
      return outcome === undefined ? [] : [[keyText(place.key), outcome] as const];
    });
  }

  async #versionOf({ place: { key }, given: { timeUs } }: MadeState): Promise<EntityVersion | undefined> {
    let cursor: string | undefined;
    do {
      const page = cursor === undefined ? { limit: 1 } : { limit: 1, cursor };
      const answer = await this.#writing.store.history(key, { fromUs: timeUs, toUs: timeUs }, page);
      if (answer.items[0] !== undefined) return answer.items[0];
      cursor = answer.cursor;
    } while (cursor !== undefined);
    return undefined;
  }

  /** Writes tombstones first, as removals do, and the marks of edges before the edges, as writes do. */
  async #write(context: WriteContext, states: readonly MadeState[]): Promise<void> {
    if (states.length === 0) return;
    await this.#writing.change(states.flatMap(tombstoneOf));
    await this.#writing.change(states.flatMap(({ place, added, given }) => marksOf(place, added, given.timeUs)));
    await this.#writing.change(
      states.flatMap(({ lost }) => lost.flatMap((edge) => lossesOf([edge], () => edge.timeUs))),
    );
    await this.#writing.change(states.map(changeOf));
    await confirmed(context, async (now) => {
      // No read finds the versions of a dropped class, so they are removed.
      const orphans = states.filter(({ place }) => now.byCid(place.view.cid) === undefined);
      await this.#writing.change(
        orphans.map(({ place: { key }, given: { timeUs } }) => ({ key, timeUs, death: true, forgetHistory: true })),
      );
    });
  }
}

function told(outcome: RestoreOutcome): Restored {
  return { outcome, relationsLeft: NOTHING_LEFT };
}

/**
 * The edges of these relations. Leaves out relations of unknown types, and those whose target is not of exactly one
 * class.
 */
function edgesOf(relations: readonly PastRelation[], { snapshot, readable }: TargetClasses): EdgeEnd[] {
  return relations.flatMap(({ type, target }) => {
    const [only, second] = placesOf(snapshot, { id: target }, readable);
    return only === undefined || second !== undefined || !snapshot.hasEdgeType(type) ? [] : [{ type, to: only.key }];
  });
}

function outcomeOf(state: MadeState, known: EntityVersion | undefined, nowMs: number): RestoreOutcome {
  const { view } = state.place;
  const { timeUs } = state.given;
  if (known !== undefined) {
    const made = decodeVersion(view, { timeUs, value: state.version });
    return isDeepStrictEqual(decodeVersion(view, known), made) ? "stored" : "other";
  }
  return (state.expiresAtMs ?? Infinity) <= nowMs ? "expired" : "stored";
}

/**
 * The tombstone by which reads of earlier times find an object that is gone or expires. Empty if the state is
 * superseded or never ends.
 */
function tombstoneOf({ place: { view, key }, given }: MadeState): EntityChange[] {
  const { state, timeUs, supersededUs } = given;
  const goneUs = state === undefined ? timeUs : (state.untilMs ?? 0) * 1_000;
  return supersededUs !== undefined || goneUs === 0 ? [] : [tombstone(view, { key: key.id, timeUs, goneUs })];
}

function changeOf({ place: { key }, given, version, stays, expiresAtMs }: MadeState): EntityChange {
  return {
    key,
    timeUs: given.timeUs,
    version,
    ...(given.state === undefined && { death: true as const }),
    ...(stays && { versionStays: true as const }),
    ...(expiresAtMs !== undefined && { versionExpiresAtMs: expiresAtMs }),
  };
}
