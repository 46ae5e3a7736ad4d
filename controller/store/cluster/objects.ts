import { AppError, isAppError } from "../../../common/errors.ts";
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
import type { Deadline } from "./deadline.ts";
import { EdgeTable } from "./edges.ts";
import { EntityTable } from "./entities.ts";
import { RecordTable } from "./records.ts";
import type { Tables } from "./tables.ts";

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

  async #changeOne(change: EntityChange, deadline: Deadline): Promise<void> {
    const { cassandra } = this.#tables;
    if (!touchesEdges(change)) return cassandra.write(this.#entities.statements(change), deadline);
    const ended = await this.#edges.endedBy(change, deadline);
    await this.#edges.announce(change, deadline);
    await cassandra.write(this.#entities.statements(change), deadline);
    await this.#edges.retract(change, ended, deadline);
  }
}

function touchesEdges({ death, addEdges, dropEdges }: EntityChange): boolean {
  return death === true || (addEdges ?? []).length > 0 || (dropEdges ?? []).length > 0;
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
