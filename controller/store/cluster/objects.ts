import { AppError, isAppError } from "../../../common/errors.ts";
import { checkBatch, checkChange, checkFind, checkRecord, checkRecordId } from "../checks.ts";
import type {
  CellChoice,
  ClassCount,
  Edge,
  Entity,
  EntityChange,
  EntityKey,
  EntityTrace,
  EntityVersion,
  FindEstimate,
  FindRequest,
  FoundPage,
  ObjectStore,
  Page,
  PageRequest,
  RecordSpan,
  RemovedRecord,
  StoredRecord,
  TermsRequest,
  TimelineRequest,
  TimeRangeUs,
} from "../objects.ts";
import { indexedTerms, isClassTerm } from "../terms.ts";
import type { Deadline } from "./deadline.ts";
import { EdgeTable } from "./edges/edges.ts";
import { EntityTable } from "./entities/entities.ts";
import { Finder } from "./entities/finder.ts";
import { PostingTable } from "./postings/postings.ts";
import { RecordTable } from "./records/records.ts";
import { allWritten } from "./cassandra/writes.ts";
import { selectionOf } from "./entities/selection.ts";
import { derivedTimeUs, ttlSeconds, type Tables } from "./tables.ts";
import { CellSweeps } from "./upkeep/sweeps.ts";
import { VersionTable } from "./entities/versions.ts";
import type { WordTable } from "./postings/words.ts";

export class CassandraObjectStore implements ObjectStore {
  readonly #tables: Tables;
  readonly #entities: EntityTable;
  readonly #postings: PostingTable;
  readonly #finder: Finder;
  readonly #versions: VersionTable;
  readonly #edges: EdgeTable;
  readonly #records: RecordTable;
  readonly #sweeps: CellSweeps;

  readonly #words: WordTable | undefined;

  /** `words` absent: words are not listed. */
  constructor(tables: Tables, words?: WordTable) {
    this.#tables = tables;
    this.#words = words;
    this.#entities = new EntityTable(tables);
    this.#postings = new PostingTable(tables, words);
    this.#finder = new Finder({ tables, entities: this.#entities, postings: this.#postings });
    this.#versions = new VersionTable(tables, this.#entities);
    this.#edges = new EdgeTable(tables, this.#entities);
    this.#records = new RecordTable(tables, words);
    this.#sweeps = new CellSweeps(tables);
  }

  async change(changes: readonly EntityChange[]): Promise<void> {
    checkBatch(changes.length);
    changes.forEach(checkChange);
    const deadline = this.#tables.cassandra.deadline();
    await this.#written(changes.map((change) => this.#changeOne(change, deadline)));
  }

  async get(keys: readonly EntityKey[], cells?: CellChoice): Promise<readonly (Entity | undefined)[]> {
    const deadline = this.#tables.cassandra.deadline();
    const selection = selectionOf(cells);
    return Promise.all(keys.map((key) => this.#entities.get(key, deadline, selection)));
  }

  async trace(keys: readonly EntityKey[]): Promise<readonly EntityTrace[]> {
    const deadline = this.#tables.cassandra.deadline();
    return Promise.all(keys.map((key) => this.#entities.trace(key, deadline)));
  }

  async find(request: FindRequest, page: PageRequest): Promise<FoundPage> {
    checkFind(request);
    return this.#finder.find(request, page);
  }

  async estimate(request: FindRequest): Promise<FindEstimate> {
    checkFind(request);
    return this.#finder.estimate(request);
  }

  async countClass(term: string, cursor?: string): Promise<ClassCount> {
    checkFind({ terms: [term] });
    return this.#entities.countClass(term, cursor);
  }

  /** Only words are listed: an index of Cassandra has no order of terms. */
  async terms(request: TermsRequest, page: PageRequest): Promise<Page<string> | undefined> {
    return this.#words?.list(request, page);
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
    await this.#written(this.#records.append(records, deadline));
  }

  timeline(request: TimelineRequest, page: PageRequest): Promise<Page<StoredRecord>> {
    return this.#records.timeline(request, page);
  }

  countRecords(span: RecordSpan, cursor?: string): Promise<ClassCount> {
    return this.#records.count(span, cursor);
  }

  async getRecords(keys: readonly EntityKey[]): Promise<readonly (StoredRecord | undefined)[]> {
    for (const key of keys) checkRecordId(key.id);
    const deadline = this.#tables.cassandra.deadline();
    return this.#records.get(keys, deadline);
  }

  async removeRecords(records: readonly RemovedRecord[]): Promise<void> {
    checkBatch(records.length);
    for (const { id } of records) checkRecordId(id);
    const deadline = this.#tables.cassandra.deadline();
    await allWritten(records.flatMap((record) => this.#records.remove(record, deadline)));
  }

  /** A failed write may mean that the keyspace was lost, so cached knowledge is dropped. */
  async #written(writes: readonly Promise<void>[]): Promise<void> {
    try {
      await allWritten(writes);
    } catch (error) {
      this.#words?.forget();
      this.#records.forget();
      throw error;
    }
  }

  /**
   * The write of the entity makes the change visible: before it, readers ignore the data that earlier steps added. So
   * additions come before that write, and removals after it. The removal of an entity hides all its data that is not
   * removed yet.
   */
  async #changeOne(change: EntityChange, deadline: Deadline): Promise<void> {
    const { cassandra } = this.#tables;
    const { key, timeUs } = change;
    const besides = [
      ...this.#versions.writes(change, deadline),
      ...this.#edges.writes(change, deadline),
      ...this.#sweeps.writes(change, deadline),
    ];
    const terms = postingTerms(change.addTerms);
    const ttl = ttlSeconds(cassandra.runtime.clock, change.expiresAtMs);
    const postedUs = derivedTimeUs(cassandra, timeUs);
    await allWritten([
      ...besides,
      ...(terms.length > 0 ? [this.#postings.add({ key, terms, timeUs: postedUs, ttl }, deadline)] : []),
    ]);
    const entity = cassandra.write(this.#entities.statements(change), deadline);
    await (besides.length > 0 ? afterOthers(entity) : entity);
    // Before the removals: until then a late change may not be effective.
    await afterOthers(this.#sweeps.admit(change, deadline));
    await afterOthers(
      Promise.all([
        this.#edges.retract(change, deadline),
        this.#postings.remove({ key, terms: postingTerms(change.dropTerms), timeUs }, deadline),
        change.forgetHistory ? this.#versions.forget(change, deadline) : this.#versions.end(change, deadline),
      ]),
    );
    await this.#sweeps.sweepIfDue(change, deadline);
  }
}

/** Turns `unavailable` into an unknown outcome: earlier writes of the change stay, so something was done. */
async function afterOthers(writes: Promise<unknown>): Promise<void> {
  try {
    await writes;
  } catch (error) {
    if (!isAppError(error, "unavailable")) throw error;
    throw new AppError("unknown_outcome", `A change was written in part: ${error.message}`, { cause: error });
  }
}

function postingTerms(terms: readonly string[] | undefined): readonly string[] {
  return indexedTerms((terms ?? []).filter((term) => !isClassTerm(term)));
}
