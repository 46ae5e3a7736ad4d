import { NUMBER_SLOTS, OBJECT_TOMBSTONE_KEEP_MS, REMOVED_TERMS_KEPT_MAX } from "../../../../common/limits.ts";
import type { EntityChange } from "../../objects.ts";
import { compareBytes } from "../bytes/keys.ts";
import { indexedTerms } from "../../terms.ts";

/** The latest write of a cell, a term or a number: a value that may expire, or a removal until it may be forgotten. */
export interface Mark<T> {
  readonly timeUs: number;
  /** `undefined`: removed. */
  readonly value: T | undefined;
  /** Time at which the value expires (0: never), or at which the removal is forgotten. */
  readonly atMs: number;
}

/** The index entries of an entity; empty unless it is alive. */
export interface Indexed {
  readonly terms: ReadonlySet<string>;
  readonly numbers: readonly (number | undefined)[];
}

const NOTHING: Indexed = { terms: new Set(), numbers: [] };

/**
 * One entity with everything known about it: cells, terms and numbers, each with the time of its last write. Merging
 * does not depend on the order of arrival; repeating a change changes nothing.
 */
export class EntityState {
  birthUs = 0;
  birthExpiresMs = 0;
  /** Everything with a time up to this is removed. */
  deathUs = 0;
  deathUntilMs = 0;
  /** Time of the change that named the end; 0 if none did. */
  endNamedUs = 0;
  /** Time at which the entity ends as a whole. */
  endsAtMs = Infinity;
  /**
   * Time at which the entity last ended by `endsAtMs`. It may be later than all writes that ended then. It is reset to
   * 0 together with `deathUs`.
   */
  endedUs = 0;
  /** Versions up to this time are not kept. */
  forgottenUs = 0;
  /** Time of the entity's entry in `expiry`, at which `settle` is called; 0: none. */
  dueMs = 0;
  readonly cells = new Map<string, Mark<Uint8Array>>();
  readonly terms = new Map<string, Mark<true>>();
  readonly numbers = new Map<number, Mark<number>>();

  get empty(): boolean {
    return (
      this.birthUs === 0 &&
      this.deathUs === 0 &&
      this.forgottenUs === 0 &&
      this.endNamedUs === 0 &&
      this.cells.size + this.terms.size + this.numbers.size === 0
    );
  }

  /** The latest time of the birth mark, of the end, and of cells and numbers, including removed ones. */
  lastUs(): number {
    let lastUs = Math.max(this.birthUs, this.endNamedUs);
    for (const mark of this.cells.values()) if (mark.timeUs > lastUs) lastUs = mark.timeUs;
    for (const mark of this.numbers.values()) if (mark.timeUs > lastUs) lastUs = mark.timeUs;
    return lastUs;
  }

  /**
   * Expiry of the parts that the last write wrote; `Infinity` if they do not expire. `undefined` if no part of the
   * entity expires, or if the entity has an end as a whole.
   */
  lastPartEndsAtMs(): number | undefined {
    const parts = [
      { timeUs: this.birthUs, value: true, atMs: this.birthExpiresMs },
      ...this.cells.values(),
      ...this.numbers.values(),
    ].filter(({ value }) => value !== undefined);
    if (this.endNamedUs > 0 || parts.every(({ atMs }) => atMs === 0)) return undefined;
    const lastUs = Math.max(...parts.map(({ timeUs }) => timeUs));
    return Math.max(...parts.map(({ timeUs, atMs }) => (timeUs < lastUs ? 0 : atMs || Infinity)));
  }

  /** Index entries as of the last write or visit; parts that have expired since are still included. */
  indexed(): Indexed {
    if (this.birthUs === 0) return NOTHING;
    const terms = new Set<string>();
    this.terms.forEach((mark, term) => mark.value && terms.add(term));
    const numbers = new Array<number | undefined>(NUMBER_SLOTS).fill(undefined);
    this.numbers.forEach(({ value }, slot) => (numbers[slot] = value));
    return { terms, numbers };
  }

  /** Merges a change. Expired parts are settled before and after. */
  apply(change: EntityChange, nowMs: number): void {
    this.settle(nowMs);
    if (change.death) this.#cover(change.timeUs, nowMs);
    if (change.forgetHistory) this.forgottenUs = Math.max(this.forgottenUs, change.timeUs);
    if (change.timeUs > this.deathUs) this.#merge(change, nowMs);
    if (change.expiresAtMs !== undefined || change.endsAtMs !== undefined) this.settle(nowMs);
  }

  /** Turns expired values into removals and drops removals past their retention. */
  settle(nowMs: number): void {
    const isBirthOver = this.birthUs > 0 && this.birthExpiresMs > 0 && this.birthExpiresMs <= nowMs;
    if (this.endsAtMs <= nowMs) this.endedUs = Math.floor(this.endsAtMs * 1_000);
    if (isBirthOver || this.endsAtMs <= nowMs) this.#cover(this.lastUs(), nowMs);
    settleMarks(this.cells, nowMs);
    settleMarks(this.terms, nowMs);
    settleMarks(this.numbers, nowMs);
    if (this.deathUs > 0 && this.deathUntilMs <= nowMs)
      [this.deathUs, this.deathUntilMs, this.forgottenUs, this.endedUs] = [0, 0, 0, 0];
  }

  /** The next time at which `settle` has something to do; 0: never. */
  nextDueMs(): number {
    let due = Infinity;
    const consider = (atMs: number): void => {
      if (atMs > 0 && atMs < due) due = atMs;
    };
    consider(this.birthExpiresMs);
    consider(this.endsAtMs);
    consider(this.deathUntilMs);
    for (const mark of this.cells.values()) consider(mark.atMs);
    for (const mark of this.terms.values()) consider(mark.atMs);
    for (const mark of this.numbers.values()) consider(mark.atMs);
    return due === Infinity ? 0 : Math.ceil(due);
  }

  #merge(change: EntityChange, nowMs: number): void {
    const { timeUs, expiresAtMs = 0 } = change;
    if (change.birth && timeUs > this.birthUs) [this.birthUs, this.birthExpiresMs] = [timeUs, expiresAtMs];
    this.#nameEnd(change);
    const removed = { timeUs, value: undefined, atMs: nowMs + OBJECT_TOMBSTONE_KEEP_MS };
    const written = <T>(value: T): Mark<T> => ({ timeUs, value, atMs: expiresAtMs });
    const [putCell, putTerm, putNumber] = [
      merging(this.cells, greaterBytes),
      merging(this.terms, never),
      merging(this.numbers, greaterNumber),
    ];
    change.cells?.forEach((value, name) => putCell(name, value === undefined ? removed : written(value)));
    const present = written(true as const);
    for (const term of indexedTerms(change.addTerms ?? [])) putTerm(term, present);
    for (const term of indexedTerms(change.dropTerms ?? [])) putTerm(term, removed);
    if (this.terms.size > REMOVED_TERMS_KEPT_MAX) forgetOldest(this.terms);
    change.numbers?.forEach((value, slot) => putNumber(slot, value === undefined ? removed : written(value)));
  }

  #nameEnd({ timeUs, endsAtMs }: EntityChange): void {
    if (endsAtMs === undefined || timeUs < this.endNamedUs) return;
    this.endsAtMs = timeUs === this.endNamedUs ? Math.max(this.endsAtMs, endsAtMs) : endsAtMs;
    this.endNamedUs = timeUs;
  }

  #cover(timeUs: number, nowMs: number): void {
    if (timeUs <= this.deathUs) return;
    this.deathUs = timeUs;
    this.deathUntilMs = nowMs + OBJECT_TOMBSTONE_KEEP_MS;
    if (this.birthUs <= timeUs) [this.birthUs, this.birthExpiresMs] = [0, 0];
    if (this.endNamedUs <= timeUs) [this.endNamedUs, this.endsAtMs] = [0, Infinity];
    dropCovered(this.cells, timeUs);
    dropCovered(this.terms, timeUs);
    dropCovered(this.numbers, timeUs);
  }
}

/** Returns a function that stores a mark unless the stored one wins. */
function merging<K, T>(marks: Map<K, Mark<T>>, greater: (a: T, b: T) => boolean): (key: K, incoming: Mark<T>) => void {
  return (key, incoming) => {
    const current = marks.get(key);
    if (current === undefined || wins(incoming, current, greater)) marks.set(key, incoming);
  };
}

function wins<T>(incoming: Mark<T>, current: Mark<T>, greater: (a: T, b: T) => boolean): boolean {
  if (incoming.timeUs !== current.timeUs) return incoming.timeUs > current.timeUs;
  if (current.value === undefined) return false;
  return incoming.value === undefined || greater(incoming.value, current.value);
}

function settleMarks<K, T>(marks: Map<K, Mark<T>>, nowMs: number): void {
  for (const [key, mark] of marks) {
    if (mark.atMs === 0 || mark.atMs > nowMs) continue;
    const forgetMs = mark.value === undefined ? mark.atMs : mark.atMs + OBJECT_TOMBSTONE_KEEP_MS;
    if (forgetMs <= nowMs) marks.delete(key);
    else marks.set(key, { timeUs: mark.timeUs, value: undefined, atMs: forgetMs });
  }
}

function dropCovered<K, T>(marks: Map<K, Mark<T>>, timeUs: number): void {
  for (const [key, mark] of marks) if (mark.timeUs <= timeUs) marks.delete(key);
}

/**
 * Forgets the oldest removals of terms when there are more than `REMOVED_TERMS_KEPT_MAX`, until half of that number is
 * left. So the sorting is rare, even for an object that gets new words with every change.
 */
function forgetOldest(terms: Map<string, Mark<true>>): void {
  const removed = [...terms].filter(([, mark]) => mark.value === undefined);
  if (removed.length <= REMOVED_TERMS_KEPT_MAX) return;
  removed.sort(([, one], [, other]) => one.timeUs - other.timeUs);
  for (const [term] of removed.slice(0, removed.length - REMOVED_TERMS_KEPT_MAX / 2)) terms.delete(term);
}

function greaterBytes(a: Uint8Array, b: Uint8Array): boolean {
  return compareBytes(a, b) > 0;
}

/** Compares bytes, as for cells. Which number wins matters less than that all engines agree. */
function greaterNumber(a: number, b: number): boolean {
  return compareBytes(new Uint8Array(ieee(a)), new Uint8Array(ieee(b))) > 0;
}

function ieee(value: number): ArrayBuffer {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return view.buffer;
}

function never(): boolean {
  return false;
}
