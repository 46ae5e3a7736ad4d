import { AppError } from "../../common/errors.ts";
import { ulidTimeMs } from "../../common/ids.ts";
import {
  CELL_MAX_BYTES,
  CHANGE_BATCH_MAX,
  FIND_TERMS_MAX,
  NUMBER_SLOTS,
  OBJECT_ID_MAX_BYTES,
  OBJECT_MAX_BYTES,
  TERMS_PER_OBJECT_MAX,
} from "../../common/limits.ts";
import type { EdgeEnd, EntityChange, EntityKey, FindRequest, StoredRecord } from "./objects.ts";

/** Every engine makes these checks before it changes anything, so that all engines refuse the same requests. */

/** Maximum of Cassandra's column type `int`. */
const CID_MAX = 0x7fff_ffff;

const NONE: readonly EdgeEnd[] = [];

export function checkBatch(count: number): void {
  if (count > CHANGE_BATCH_MAX)
    throw new AppError("too_large", `At most ${CHANGE_BATCH_MAX} changes are taken at once, not ${count}.`);
}

export function checkChange(change: EntityChange): void {
  checkKey(change.key);
  if (!(Number.isSafeInteger(change.timeUs) && change.timeUs > 0))
    throw new AppError("invalid", "The time of a change is a whole number of microseconds above 0.");
  if (Number.isNaN(change.endsAtMs ?? 0)) throw new AppError("invalid", "The end of an entity is a time.");
  if (change.forgetHistory && !change.death)
    throw new AppError("invalid", "History is forgotten only together with a death.");
  if (change.addTerms !== undefined) checkTerms(change.addTerms);
  if (change.dropTerms !== undefined) checkTerms(change.dropTerms);
  for (const edge of change.addEdges ?? NONE) checkKey(edge.to);
  for (const edge of change.dropEdges ?? NONE) checkKey(edge.to);
  change.numbers?.forEach((value, slot) => checkNumber(slot, value));
  checkSize(change);
}

export function checkRecord(record: StoredRecord): void {
  checkKey(record);
  checkRecordId(record.id);
  checkTerms(record.terms);
  if (record.rewrittenUs !== undefined) checkRewritten(record.id, record.rewrittenUs);
  if (record.value.length > OBJECT_MAX_BYTES)
    throw new AppError("too_large", `A record has at most ${OBJECT_MAX_BYTES} bytes, not ${record.value.length}.`);
}

function checkRewritten(id: string, rewrittenUs: number): void {
  if (!Number.isInteger(rewrittenUs) || rewrittenUs < ((ulidTimeMs(id) ?? 0) + 1) * 1_000)
    throw new AppError("invalid", `A record is rewritten at whole microseconds after the time in its id.`);
}

export function checkRecordId(id: string): void {
  if (ulidTimeMs(id) === undefined)
    throw new AppError("invalid", `A record's id is a ULID, not ${JSON.stringify(id.slice(0, 64))}.`);
}

export function checkFind(request: FindRequest): void {
  checkTerms(request.terms);
  for (const range of request.ranges ?? []) checkSlot(range.slot);
  if (request.order !== undefined) checkSlot(request.order.slot);
  if (request.terms.length === 0 && (request.ranges ?? []).length === 0 && request.order === undefined)
    throw new AppError("invalid", "At least one term, range or order is needed.");
  if (request.terms.length > FIND_TERMS_MAX)
    throw new AppError("too_large", `A search names at most ${FIND_TERMS_MAX} terms.`);
}

function checkKey({ cid, id }: EntityKey): void {
  if (!(Number.isInteger(cid) && cid >= 0 && cid <= CID_MAX))
    throw new AppError("invalid", `A class number is a whole number from 0, not ${cid}.`);
  if (Buffer.byteLength(id) > OBJECT_ID_MAX_BYTES)
    throw new AppError("too_large", `An id has at most ${OBJECT_ID_MAX_BYTES} bytes.`);
}

function checkTerms(terms: readonly string[]): void {
  if (terms.length > TERMS_PER_OBJECT_MAX)
    throw new AppError("too_large", `An object has at most ${TERMS_PER_OBJECT_MAX} terms.`);
  if (terms.includes("")) throw new AppError("invalid", "A term must not be empty.");
}

function checkNumber(slot: number, value: number | undefined): void {
  checkSlot(slot);
  if (value !== undefined && !Number.isFinite(value))
    throw new AppError("invalid", `Slot ${slot} takes a finite number, not ${value}.`);
}

function checkSlot(slot: number): void {
  if (!(Number.isInteger(slot) && slot >= 0 && slot < NUMBER_SLOTS))
    throw new AppError("invalid", `There is no number slot ${slot}.`);
}

function checkSize(change: EntityChange): void {
  let size = change.version?.length ?? 0;
  for (const value of change.cells?.values() ?? []) {
    if (value === undefined) continue;
    if (value.length > CELL_MAX_BYTES)
      throw new AppError("too_large", `A cell has at most ${CELL_MAX_BYTES} bytes, not ${value.length}.`);
    size += value.length;
  }
  // A change contains the new cells and a version of the object, so twice the size of an object is allowed.
  if (size > 2 * OBJECT_MAX_BYTES) throw new AppError("too_large", `An object has at most ${OBJECT_MAX_BYTES} bytes.`);
}
