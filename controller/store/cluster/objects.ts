import { AppError, isAppError } from "../../../common/errors.ts";
import { LOGGED_BATCH_MAX_BYTES } from "../../../common/limits.ts";
import { checkBatch, checkChange, checkFind, checkRecord, checkRecordId } from "../checks.ts";
import type {
  Edge,
  Entity,
  EntityChange,
  EntityKey,
  EntityTrace,
  EntityVersion,
  FindRequest,
  ObjectStore,
  Page,
  PageRequest,
  StoredRecord,
  TimelineRequest,
  TimeRangeUs,
} from "../objects.ts";
import { indexedTerms, isClassTerm } from "../terms.ts";
import type { CqlValue, Statement } from "./cassandra.ts";
import type { Deadline } from "./deadline.ts";
import { EdgeTable } from "./edges.ts";
import { EntityTable } from "./entities.ts";
import { Finder } from "./finder.ts";
import { PostingTable } from "./postings.ts";
import { RecordTable } from "./records.ts";
import { ttlSeconds, type Tables } from "./tables.ts";
import { VersionTable } from "./versions.ts";

export class CassandraObjectStore implements ObjectStore {
  readonly #tables: Tables;
  readonly #entities: EntityTable;
  readonly #postings: PostingTable;
  readonly #finder: Finder;
  readonly #versions: VersionTable;
  readonly #edges: EdgeTable;
  readonly #records: RecordTable;

  constructor(tables: Tables) {
    this.#tables = tables;
    this.#entities = new EntityTable(tables);
    this.#postings = new PostingTable(tables);
    this.#finder = new Finder({ tables, entities: this.#entities, postings: this.#postings });
    this.#versions = new VersionTable(tables);
    this.#edges = new EdgeTable(tables, this.#entities);
    this.#records = new RecordTable(tables);
  }

  async change(changes: readonly EntityChange[]): Promise<void> {
    checkBatch(changes.length);
    changes.forEach(checkChange);
    const deadline = this.#tables.cassandra.deadline();
    await allWritten(changes.map((change) => this.#changeOne(change, deadline)));
  }

  async get(keys: readonly EntityKey[]): Promise<readonly (Entity | undefined)[]> {
    const deadline = this.#tables.cassandra.deadline();
    return Promise.all(keys.map((key) => this.#entities.get(key, deadline)));
  }

  async trace(keys: readonly EntityKey[]): Promise<readonly EntityTrace[]> {
    const deadline = this.#tables.cassandra.deadline();
    return Promise.all(keys.map((key) => this.#entities.trace(key, deadline)));
  }

  async find(request: FindRequest, page: PageRequest): Promise<Page<Entity>> {
    checkFind(request);
    return this.#finder.find(request, page);
  }

  scan(page: PageRequest): Promise<Page<Entity>> {
    return this.#entities.scan(page);
  }

  history(key: EntityKey, range: TimeRangeUs, page: PageRequest): Promise<Page<EntityVersion>> {
    return this.#versions.history(key, range, page);
  }

  edges(key: EntityKey, direction: "out" | "in", page: PageRequest & { readonly type?: string }): Promise<Page<Edge>> {
    return this.#edges.edges(key, direction, page);
  }

  async append(records: readonly StoredRecord[]): Promise<void> {
    checkBatch(records.length);
    records.forEach(checkRecord);
    const deadline = this.#tables.cassandra.deadline();
    await allWritten(this.#records.append(records, deadline));
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
    checkBatch(keys.length);
    for (const key of keys) checkRecordId(key.id);
    const deadline = this.#tables.cassandra.deadline();
    await allWritten(keys.map((key) => this.#records.remove(key, deadline)));
  }

  /**
   * What is derived is written before the change where it is added, and after it where it is taken away. What the removal
   * of an entity leaves behind it hides.
   */
  async #changeOne(change: EntityChange, deadline: Deadline): Promise<void> {
    const { cassandra } = this.#tables;
    const { key, timeUs } = change;
    const ttl = ttlSeconds(cassandra.runtime.clock, change.expiresAtMs);
    await Promise.all([
      this.#edges.announce(change, deadline),
      this.#postings.add({ key, terms: postingTerms(change.addTerms), timeUs, ttl }, deadline),
    ]);
    const besides = [...this.#edges.statements(change), ...this.#versions.statements(change)];
    await this.#writeTogether(besides, this.#entities.statements(change), deadline);
    const retracts = change.death === true || (change.dropEdges ?? []).length > 0;
    await Promise.all([
      retracts ? this.#edges.retract(change, deadline) : undefined,
      this.#postings.remove({ key, terms: postingTerms(change.dropTerms), timeUs }, deadline),
      change.forgetHistory ? this.#versions.forget(change, deadline) : undefined,
    ]);
  }

  /** In one logged batch, unless Cassandra would find it too large: then the entity comes last. */
  async #writeTogether(besides: readonly Statement[], entity: readonly Statement[], deadline: Deadline): Promise<void> {
    const { cassandra } = this.#tables;
    if (besides.length === 0) return cassandra.write(entity, deadline);
    const all = [...besides, ...entity];
    if (sizeOf(all) <= LOGGED_BATCH_MAX_BYTES) return cassandra.write(all, deadline, { logged: true });
    await Promise.all(besides.map((statement) => cassandra.write([statement], deadline)));
    await cassandra.write(entity, deadline);
  }
}

/** What Cassandra counts for a statement or an entry of a map besides the values, at least. */
const OVERHEAD_BYTES = 128;

function sizeOf(statements: readonly Statement[]): number {
  let size = 0;
  for (const { params } of statements) {
    size += OVERHEAD_BYTES;
    for (const value of params) size += sizeOfValue(value);
  }
  return size;
}

function sizeOfValue(value: CqlValue): number {
  if (typeof value === "string") return value.length * 3;
  if (value instanceof Uint8Array) return value.length;
  if (value instanceof Map) {
    let size = 0;
    for (const [name, bytes] of value as ReadonlyMap<string, Uint8Array>)
      size += OVERHEAD_BYTES + name.length * 3 + bytes.length;
    return size;
  }
  if (Array.isArray(value))
    return value.reduce((size: number, text: string) => size + OVERHEAD_BYTES + text.length * 3, 0);
  return 8;
}

function postingTerms(terms: readonly string[] | undefined): readonly string[] {
  return indexedTerms((terms ?? []).filter((term) => !isClassTerm(term)));
}

/** Waits for all. When some were written and others were not, the whole has an unknown outcome. */
async function allWritten(writes: readonly Promise<void>[]): Promise<void> {
  const [only, ...others] = writes;
  if (others.length === 0) return only;
  const outcomes = await Promise.allSettled(writes);
  const failures = outcomes
    .filter((outcome) => outcome.status === "rejected")
    .map((outcome) => outcome.reason as unknown);
  if (failures.length === 0) return;
  const plain = failures.find((failure) => !isAppError(failure, "unavailable", "unknown_outcome"));
  if (plain !== undefined) throw plain;
  const unknown = failures.find((failure) => isAppError(failure, "unknown_outcome"));
  if (unknown !== undefined || failures.length === writes.length) throw unknown ?? failures[0];
  throw new AppError(
    "unknown_outcome",
    `Cassandra took ${writes.length - failures.length} of ${writes.length} changes.`,
    { cause: failures[0] },
  );
}
