import {
  INDEX_ENTRIES_EXAMINED_MAX,
  OBJECT_PAGE_EXAMINED_MAX,
  OBJECT_PAGE_MAX_BYTES,
  OBJECT_TOMBSTONE_KEEP_MS,
} from "../../../../common/limits.ts";
import { decodeStored, encodePacked } from "../../format.ts";
import type {
  ClassCount,
  EntityKey,
  Page,
  PageRequest,
  RecordSpan,
  RemovedRecord,
  StoredRecord,
  TimelineRequest,
} from "../../objects.ts";
import { Cursors } from "../cursor.ts";
import type { Environment } from "../environment/environment.ts";
import type { Expiry } from "../environment/expiry.ts";
import { asBuffer, compareBytes, concat, textBytes, u32 } from "../bytes/keys.ts";
import { indexedTerms } from "../../terms.ts";
import type { Packed } from "./values.ts";
import { entityKeyBytes, EXPIRY_KINDS, parseEntityKey, recordTermPrefix, ulidBoundary } from "../bytes/object-keys.ts";

const CID_BYTES = 4;
const ULID_LENGTH = 26;
const PRESENT = encodePacked(1);
const NOTHING = new Uint8Array();
const NO_TERMS: readonly string[] = [];
/** Entries of a term that are counted to find the rarest term of a request. */
const COUNT_MAX = 200;

/**
 * The valid one of two rows of one id: the one rewritten later, otherwise the removed one, otherwise the one with the
 * greater bytes, otherwise both merged.
 */
function standingOf(there: Packed, given: Packed): Packed {
  const [value, terms, endMs, removed, rewrittenUs] = there;
  const age = (rewrittenUs ?? 0) - (given[4] ?? 0);
  const order = age !== 0 ? age : removed ? 1 : compareBytes(value, given[0]);
  if (order !== 0) return order > 0 ? there : given;
  const more = given[1].filter((term) => !terms.includes(term));
  const laterMs = endMs === 0 || given[2] === 0 ? 0 : Math.max(endMs, given[2]);
  return more.length === 0 && laterMs === endMs ? there : packedRow([value, [...terms, ...more], laterMs], rewrittenUs);
}

/** Most records are not rewritten, and keep the short form. */
function packedRow(row: readonly [Uint8Array, readonly string[], number], rewrittenUs: number | undefined): Packed {
  return rewrittenUs === undefined ? row : [...row, false, rewrittenUs];
}

/** Records in the order of their ids, which is the order of their times, and again under each of their terms. */
export class Records {
  readonly #env: Environment;
  readonly #expiry: Expiry;
  readonly #nowMs: () => number;

  constructor(env: Environment, expiry: Expiry, nowMs: () => number) {
    this.#env = env;
    this.#expiry = expiry;
    this.#nowMs = nowMs;
  }

  /** Call it inside a write transaction. */
  append(records: readonly StoredRecord[]): void {
    const { records: table } = this.#env.tables;
    const keys = new RecordKeys();
    for (const record of records) {
      const key = keys.at(record);
      const given = packedRow([record.value, record.terms, Math.ceil(record.expiresAtMs ?? 0)], record.rewrittenUs);
      const bytes = encodePacked(given);
      const stored = table.putNew(key, bytes) ? undefined : table.get(key);
      if (stored === undefined) this.#putDerived(keys, key, given);
      else if (compareBytes(stored, bytes) !== 0) this.#putOver(keys, key, decodeStored<Packed>(stored), given);
    }
  }

  /** Writes the index entries of the last record given to `keys`. */
  #putDerived(keys: RecordKeys, key: Uint8Array, [, terms, expiresAtMs]: Packed): void {
    for (const term of indexedTerms(terms)) void this.#env.tables.recordTerms.put(keys.under(term), PRESENT);
    if (expiresAtMs > 0) this.#expiry.add(expiresAtMs, EXPIRY_KINDS.record, key);
  }

  #putOver(keys: RecordKeys, key: Uint8Array, there: Packed, given: Packed): void {
    const isForgotten = there[2] > 0 && there[2] <= this.#nowMs();
    const standing = isForgotten ? given : standingOf(there, given);
    if (standing === there) return;
    this.#drop(key, there);
    this.#env.tables.records.put(key, encodePacked(standing));
    this.#putDerived(keys, key, standing);
  }

  /** Call it inside a write transaction. */
  remove(record: RemovedRecord): void {
    const bytes = entityKeyBytes(record);
    const stored = this.#env.tables.records.get(bytes);
    const there = stored && decodeStored<Packed>(stored);
    const rewrittenUs = record.rewrittenUs ?? 0;
    if (there !== undefined && (there[4] ?? 0) > rewrittenUs) return;
    if (there !== undefined) this.#drop(bytes, there);
    const forgottenAtMs = Math.ceil(this.#nowMs()) + OBJECT_TOMBSTONE_KEEP_MS;
    const removal = [NOTHING, [], forgottenAtMs, true, rewrittenUs] satisfies Packed;
    this.#env.tables.records.put(bytes, encodePacked(removal));
    this.#expiry.add(forgottenAtMs, EXPIRY_KINDS.record, bytes);
  }

  /** Call it inside a write transaction. */
  visit(key: Uint8Array, atMs: number): void {
    const stored = this.#env.tables.records.get(key);
    if (stored === undefined) return;
    const packed = decodeStored<Packed>(stored);
    if (packed[2] === atMs) this.#drop(key, packed);
  }

  get(key: EntityKey): StoredRecord | undefined {
    const stored = this.#env.read().records.get(entityKeyBytes(key));
    return stored === undefined ? undefined : this.#visible(key, decodeStored<Packed>(stored));
  }

  timeline(request: TimelineRequest, page: PageRequest, place: string): Page<StoredRecord> {
    const terms = indexedTerms(request.terms ?? []);
    const cursors = new Cursors([place, "timeline", request.cid, request.fromMs, request.toMs, terms]);
    const after = cursors.read(page);
    const walk = {
      cid: request.cid,
      newest: after ?? ulidBoundary(request.toMs),
      oldest: ulidBoundary(request.fromMs),
    };
    if (request.valuesOnly && terms.length === 0) return this.#values(walk, page, cursors);
    const items: StoredRecord[] = [];
    let [examined, bytes] = [0, 0];
    let last: Uint8Array | undefined;
    const rarest = this.#rarest(walk, terms);
    const nowMs = this.#nowMs();
    for (const { key, value } of rarest === undefined ? this.#all(walk) : this.#under(walk, rarest)) {
      if (items.length >= page.limit || examined >= OBJECT_PAGE_EXAMINED_MAX || bytes >= OBJECT_PAGE_MAX_BYTES)
        return { items, cursor: cursors.write(last!.subarray(-ULID_LENGTH)) };
      last = key;
      examined += 1;
      if (value === undefined) continue;
      bytes += value.length;
      const packed = decodeStored<Packed>(value);
      if (!isVisible(packed, nowMs)) continue;
      const borne = terms.length === 0 ? undefined : new Set(indexedTerms(packed[1]));
      if (terms.every((term) => borne?.has(term))) items.push(recordOf(request.cid, ulidText(key), packed));
    }
    return { items };
  }

  /** Reads like `timeline` without terms, but returns only ids and values. No term is decoded. */
  #values(walk: Walk, page: PageRequest, cursors: Cursors): Page<StoredRecord> {
    const { cid } = walk;
    const { recordValues } = this.#env.read();
    this.#env.recordValues.nowMs = this.#nowMs();
    const items: StoredRecord[] = [];
    let [examined, bytes, last] = [0, 0, ""];
    for (const { key, value } of recordValues.getRange(rangeOf(u32(cid), walk))) {
      if (items.length >= page.limit || examined >= OBJECT_PAGE_EXAMINED_MAX || bytes >= OBJECT_PAGE_MAX_BYTES)
        return { items, cursor: cursors.write(textBytes(last)) };
      last = key as string;
      examined += 1;
      if (value === undefined) continue;
      bytes += value.length;
      items.push({ cid, id: last, value, terms: NO_TERMS });
    }
    return { items };
  }

  count(span: RecordSpan, cursor: string | undefined, place: string): ClassCount {
    const { cid, fromMs, toMs } = span;
    const cursors = new Cursors([place, "countRecords", cid, fromMs, toMs]);
    const after = cursors.read({ limit: 1, ...(cursor === undefined ? {} : { cursor }) });
    const range = { newest: after ?? ulidBoundary(toMs), oldest: ulidBoundary(fromMs) };
    const { recordValues } = this.#env.read();
    this.#env.recordValues.nowMs = this.#nowMs();
    let [count, examined, bytes] = [0, 0, 0];
    for (const { key, value } of recordValues.getRange(rangeOf(u32(cid), range))) {
      examined += 1;
      bytes += value?.length ?? 0;
      if (value !== undefined) count += 1;
      if (examined >= INDEX_ENTRIES_EXAMINED_MAX || bytes >= OBJECT_PAGE_MAX_BYTES)
        return { count, cursor: cursors.write(textBytes(key as string)) };
    }
    return { count };
  }

  /** Each value is a copy that belongs to the reader. */
  #all(walk: Walk): Iterable<{ readonly key: Uint8Array; readonly value: Uint8Array }> {
    return this.#env.read().records.getRange(rangeOf(u32(walk.cid), walk));
  }

  /**
   * Records with the term. The key ends in the id. The value is absent if the record is gone and only its term is left.
   */
  *#under(walk: Walk, term: string): Generator<{ readonly key: Uint8Array; readonly value: Uint8Array | undefined }> {
    const keys = new RecordKeys();
    const { records, recordTerms } = this.#env.read();
    for (const key of recordTerms.getKeys(rangeOf(recordTermPrefix(walk.cid, term), walk)))
      yield { key, value: records.get(keys.at({ cid: walk.cid, id: ulidText(key) })) };
  }

  /**
   * The rarest term; the first one if all are frequent. The choice may differ between pages, the order of ids does not.
   */
  #rarest(walk: Walk, terms: readonly string[]): string | undefined {
    if (terms.length < 2) return terms[0];
    const { recordTerms } = this.#env.read();
    const counted = terms.map((term) => {
      const range = { ...rangeOf(recordTermPrefix(walk.cid, term), walk), limit: COUNT_MAX };
      return { term, count: [...recordTerms.getKeys(range)].length };
    });
    return counted.reduce((best, next) => (next.count < best.count ? next : best)).term;
  }

  #visible(key: EntityKey, packed: Packed): StoredRecord | undefined {
    return isVisible(packed, this.#nowMs()) ? recordOf(key.cid, key.id, packed) : undefined;
  }

  #drop(key: Uint8Array, [, terms, expiresAtMs]: Packed): void {
    const { cid, id } = parseEntityKey(key);
    for (const term of indexedTerms(terms))
      void this.#env.tables.recordTerms.remove(concat(recordTermPrefix(cid, term), textBytes(id)));
    if (expiresAtMs > 0) this.#expiry.remove(expiresAtMs, EXPIRY_KINDS.record, key);
    this.#env.tables.records.remove(key);
  }
}

/**
 * Creates keys of many records in reused buffers. A key is valid until the next one is created: LMDB copies a key
 * during the call that gets it.
 */
class RecordKeys {
  readonly #key = Buffer.alloc(CID_BYTES + ULID_LENGTH);
  readonly #id = this.#key.subarray(CID_BYTES);
  /** By term: the prefix with space for the id. Records that arrive together mostly have the same terms. */
  readonly #terms = new Map<string, Buffer>();
  #cid = 0;

  at({ cid, id }: EntityKey): Buffer {
    if (cid !== this.#cid) this.#terms.clear();
    this.#cid = cid;
    this.#key.writeUInt32BE(cid, 0);
    this.#key.write(id, CID_BYTES, "latin1");
    return this.#key;
  }

  /** The key of the last record, under one of its terms. */
  under(term: string): Buffer {
    let key = this.#terms.get(term);
    if (key === undefined) {
      const prefix = recordTermPrefix(this.#cid, term);
      key = Buffer.allocUnsafe(prefix.length + ULID_LENGTH);
      key.set(prefix);
      this.#terms.set(term, key);
    }
    key.set(this.#id, key.length - ULID_LENGTH);
    return key;
  }
}

/** The value shares the bytes that were read, which have no other user. */
function recordOf(cid: number, id: string, [bytes, terms, expiresAtMs, , rewrittenUs]: Packed): StoredRecord {
  const value = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
  const record = expiresAtMs > 0 ? { cid, id, value, terms, expiresAtMs } : { cid, id, value, terms };
  return rewrittenUs === undefined ? record : { ...record, rewrittenUs };
}

function ulidText(key: Uint8Array): string {
  return asBuffer(key).toString("latin1", key.length - ULID_LENGTH);
}

function isVisible([, , expiresAtMs, removed]: Packed, nowMs: number): boolean {
  return removed !== true && (expiresAtMs === 0 || expiresAtMs > nowMs);
}

/** Newest first; `newest` is exclusive. */
function rangeOf(
  prefix: Uint8Array,
  { newest, oldest }: Pick<Walk, "newest" | "oldest">,
): { readonly start: Uint8Array; readonly end: Uint8Array; readonly reverse: true; readonly exclusiveStart: true } {
  return { start: concat(prefix, newest), end: concat(prefix, oldest), reverse: true, exclusiveStart: true };
}

interface Walk {
  readonly cid: number;
  readonly newest: Uint8Array;
  readonly oldest: Uint8Array;
}
