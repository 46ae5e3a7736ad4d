import { AppError, isAppError } from "../../../common/errors.ts";
import { CELL_MAX_BYTES, CHANGE_BATCH_MAX, OBJECT_ID_MAX_BYTES, OBJECT_MAX_BYTES, TERMS_PER_OBJECT_MAX } from "../../../common/limits.ts";
import type {
  Edge,
  Entity,
  EntityChange,
  EntityKey,
  EntityVersion,
  FindRequest,
  ObjectStore,
  Page,
  PageRequest,
  StoredRecord,
  TimelineRequest,
  TimeRangeUs,
} from "../objects.ts";
import type { Deadline } from "./deadline.ts";
import { EdgeTable } from "./edges.ts";
import { EntityTable } from "./entities.ts";
import { checkRecordId, RecordTable } from "./records.ts";
import type { Tables } from "./tables.ts";

/** What a column `int` holds. */
const CID_MAX = 0x7fff_ffff;

export class CassandraObjectStore implements ObjectStore {
  readonly #tables: Tables;
  readonly #entities: EntityTable;
  readonly #edges: EdgeTable;
  readonly #records: RecordTable;

  constructor(tables: Tables) {
    this.#tables = tables;
    this.#entities = new EntityTable(tables);
    this.#edges = new EdgeTable(tables);
    this.#records = new RecordTable(tables);
  }

  async change(changes: readonly EntityChange[]): Promise<void> {
    checkCount(changes.length);
    changes.forEach(checkChange);
    const deadline = this.#tables.cassandra.deadline();
    await allWritten(changes.map((change) => this.#changeOne(change, deadline)));
  }

  async get(keys: readonly EntityKey[]): Promise<readonly (Entity | undefined)[]> {
    const deadline = this.#tables.cassandra.deadline();
    return Promise.all(keys.map((key) => this.#entities.get(key, deadline)));
  }

  find(request: FindRequest, page: PageRequest): Promise<Page<Entity>> {
    return this.#entities.find(request, page);
  }

  scan(page: PageRequest): Promise<Page<Entity>> {
    return this.#entities.scan(page);
  }

  history(key: EntityKey, range: TimeRangeUs, page: PageRequest): Promise<Page<EntityVersion>> {
    return this.#entities.history(key, range, page);
  }

  edges(key: EntityKey, direction: "out" | "in", page: PageRequest & { readonly type?: string }): Promise<Page<Edge>> {
    return this.#edges.edges(key, direction, page);
  }

  async append(records: readonly StoredRecord[]): Promise<void> {
    checkCount(records.length);
    records.forEach(checkRecord);
    const deadline = this.#tables.cassandra.deadline();
    await allWritten(records.map((record) => this.#records.append(record, deadline)));
  }

  timeline(request: TimelineRequest, page: PageRequest): Promise<Page<StoredRecord>> {
    return this.#records.timeline(request, page);
  }

  async getRecords(keys: readonly EntityKey[]): Promise<readonly (StoredRecord | undefined)[]> {
    for (const key of keys) checkRecordId(key.id);
    const deadline = this.#tables.cassandra.deadline();
    return Promise.all(keys.map((key) => this.#records.get(key, deadline)));
  }

  async removeRecords(keys: readonly EntityKey[]): Promise<void> {
    checkCount(keys.length);
    for (const key of keys) checkRecordId(key.id);
    const deadline = this.#tables.cassandra.deadline();
    await allWritten(keys.map((key) => this.#records.remove(key, deadline)));
  }

  async #changeOne(change: EntityChange, deadline: Deadline): Promise<void> {
    const ended = await this.#edges.endedBy(change, deadline);
    await this.#edges.announce(change, deadline);
    await this.#tables.cassandra.write(this.#entities.statements(change), deadline);
    await this.#edges.retract(change, ended, deadline);
  }
}

/** Waits for all. When some were written and others were not, the whole has an unknown outcome. */
async function allWritten(writes: readonly Promise<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(writes);
  const failures = outcomes.filter((outcome) => outcome.status === "rejected").map((outcome) => outcome.reason as unknown);
  if (failures.length === 0) return;
  const plain = failures.find((failure) => !isAppError(failure, "unavailable", "unknown_outcome"));
  if (plain !== undefined) throw plain;
  const unknown = failures.find((failure) => isAppError(failure, "unknown_outcome"));
  if (unknown !== undefined || failures.length === writes.length) throw unknown ?? failures[0];
  throw new AppError("unknown_outcome", `Cassandra took ${writes.length - failures.length} of ${writes.length} changes.`, { cause: failures[0] });
}

function checkCount(count: number): void {
  if (count > CHANGE_BATCH_MAX) throw new AppError("too_large", `At most ${CHANGE_BATCH_MAX} changes are taken at once, not ${count}.`);
}

function checkKey({ cid, id }: EntityKey): void {
  if (!(Number.isInteger(cid) && cid >= 0 && cid <= CID_MAX)) throw new AppError("invalid", `A class number is a whole number from 0, not ${cid}.`);
  if (Buffer.byteLength(id) > OBJECT_ID_MAX_BYTES) throw new AppError("too_large", `An id has at most ${OBJECT_ID_MAX_BYTES} bytes.`);
}

function checkChange(change: EntityChange): void {
  checkKey(change.key);
  if (!(Number.isSafeInteger(change.timeUs) && change.timeUs > 0)) throw new AppError("invalid", "The time of a change is a whole number of microseconds above 0.");
  if (change.forgetHistory && !change.death) throw new AppError("invalid", "History is forgotten only together with a death.");
  checkTerms(change.addTerms ?? []);
  checkTerms(change.dropTerms ?? []);
  for (const edge of [...(change.addEdges ?? []), ...(change.dropEdges ?? [])]) checkKey(edge.to);
  for (const value of change.numbers?.values() ?? []) {
    if (value !== undefined && !Number.isFinite(value)) throw new AppError("invalid", `A number slot takes a finite number, not ${value}.`);
  }
  let size = change.version?.length ?? 0;
  for (const value of change.cells?.values() ?? []) {
    if ((value?.length ?? 0) > CELL_MAX_BYTES) throw new AppError("too_large", `A cell has at most ${CELL_MAX_BYTES} bytes.`);
    size += value?.length ?? 0;
  }
  // The present and a version of it travel together.
  if (size > 2 * OBJECT_MAX_BYTES) throw new AppError("too_large", `An object has at most ${OBJECT_MAX_BYTES} bytes.`);
}

function checkTerms(terms: readonly string[]): void {
  if (terms.length > TERMS_PER_OBJECT_MAX) throw new AppError("too_large", `An object has at most ${TERMS_PER_OBJECT_MAX} terms.`);
  if (terms.includes("")) throw new AppError("invalid", "A term must not be empty.");
}

function checkRecord(record: StoredRecord): void {
  checkKey(record);
  checkRecordId(record.id);
  checkTerms(record.terms);
  if (record.value.length > OBJECT_MAX_BYTES) throw new AppError("too_large", `A record has at most ${OBJECT_MAX_BYTES} bytes.`);
}
