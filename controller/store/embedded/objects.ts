import { CHANGE_SLICE_MAX } from "../../../common/limits.ts";
import { AppError } from "../../../common/errors.ts";
import { checkBatch, checkChange, checkFind, checkRecord, checkRecordId } from "../checks.ts";
import type { AlsoInCommit } from "../also-in-commit.ts";
import type {
  ClassCount,
  Edge,
  Entity,
  EntityChange,
  EntityKey,
  EntityTrace,
  EntityVersion,
  FindEstimate,
  FindRequest,
  ObjectStore,
  Page,
  PageRequest,
  RecordsInCommit,
  RecordSpan,
  RemovedRecord,
  StoredRecord,
  TermsRequest,
  TimelineRequest,
  TimeRangeUs,
} from "../objects.ts";
import type { Posting } from "../scrub.ts";
import type { InTurn } from "./environment/read-turns.ts";
import type { EmbeddedRuntime } from "./runtime.ts";
import type { EmbeddedBlobStore } from "./blobs/blobs.ts";
import type { EmbeddedKvStore } from "./kv/kv.ts";
import { Entities } from "./entities/entities.ts";
import type { Environment } from "./environment/environment.ts";
import { Expiry } from "./environment/expiry.ts";
import { Finder } from "./entities/find.ts";
import { EXPIRY_KINDS } from "./bytes/object-keys.ts";
import { Records } from "./records/records.ts";
import { readTerms } from "./entities/term-list.ts";

export interface ObjectStoreOptions {
  readonly env: Environment;
  readonly runtime: EmbeddedRuntime;
  readonly inTurn: InTurn;
  /** Identifies this store in cursors. */
  readonly place: string;
  /** The other seams of the environment. */
  readonly kv: Pick<EmbeddedKvStore, "within">;
  readonly blobs: Pick<EmbeddedBlobStore, "within">;
}

/** The object seam on LMDB. */
export class EmbeddedObjectStore implements ObjectStore {
  readonly spansSeams = true;
  readonly #env: Environment;
  readonly #inTurn: InTurn;
  readonly #place: string;
  readonly #nowMs: () => number;
  readonly #expiry: Expiry;
  readonly #entities: Entities;
  readonly #finder: Finder;
  readonly #records: Records;
  readonly #seams: Pick<ObjectStoreOptions, "kv" | "blobs">;

  constructor({ env, runtime, inTurn, place, ...seams }: ObjectStoreOptions) {
    this.#seams = seams;
    this.#env = env;
    this.#inTurn = inTurn;
    this.#place = place;
    this.#nowMs = () => runtime.clock.nowMs();
    this.#expiry = new Expiry(env, runtime, (kind, key, due) => this.#visit(kind, key, due));
    this.#entities = new Entities({ env, expiry: this.#expiry, nowMs: this.#nowMs });
    this.#finder = new Finder({ env, lists: this.#entities.lists, nowMs: this.#nowMs });
    this.#records = new Records(env, this.#expiry, this.#nowMs);
  }

  async change(changes: readonly EntityChange[], inCommit?: RecordsInCommit): Promise<void> {
    checkBatch(changes.length);
    for (const change of changes) checkChange(change);
    if (inCommit?.also !== undefined && changes.length > CHANGE_SLICE_MAX)
      throw new AppError("invalid", `One commit takes at most ${CHANGE_SLICE_MAX} changes, not ${changes.length}.`);
    await this.#inSlices(changes, (slice) => slice.forEach((change) => this.#entities.change(change)), inCommit);
  }

  /** Call it inside a write transaction: see `Entities.forgetTerm`. */
  forgetTerm(posting: Posting): void {
    this.#entities.forgetTerm(posting);
  }

  get(keys: readonly EntityKey[]): Promise<readonly (Entity | undefined)[]> {
    return this.#inTurn(() => keys.map((key) => this.#entities.get(key)));
  }

  async trace(keys: readonly EntityKey[]): Promise<readonly EntityTrace[]> {
    return this.#inTurn(() => keys.map((key) => this.#entities.trace(key)));
  }

  find(request: FindRequest, page: PageRequest): Promise<Page<Entity>> {
    return this.#inTurn(() => {
      checkFind(request);
      return this.#finder.find(request, page, this.#place);
    });
  }

  async estimate(request: FindRequest): Promise<FindEstimate> {
    checkFind(request);
    return this.#inTurn(() => this.#finder.estimate(request));
  }

  async countClass(term: string, cursor?: string): Promise<ClassCount> {
    checkFind({ terms: [term] });
    return this.#inTurn(() => this.#finder.countClass(term, cursor, this.#place));
  }

  async countRecords(span: RecordSpan, cursor?: string): Promise<ClassCount> {
    return this.#inTurn(() => this.#records.count(span, cursor, this.#place));
  }

  async terms(request: TermsRequest, page: PageRequest): Promise<Page<string>> {
    return this.#inTurn(() => readTerms(this.#env, request, { ...page, place: this.#place }));
  }

  async scan(page: PageRequest): Promise<Page<Entity>> {
    return this.#inTurn(() => this.#entities.scan(page, this.#place));
  }

  async history(key: EntityKey, range: TimeRangeUs, page: PageRequest): Promise<Page<EntityVersion>> {
    return this.#inTurn(() =>
      this.#entities.history.read(key, range, { page, nowMs: this.#nowMs(), place: this.#place }),
    );
  }

  async edges(
    key: EntityKey,
    direction: "out" | "in",
    page: PageRequest & { readonly type?: string },
  ): Promise<Page<Edge>> {
    return this.#inTurn(() =>
      this.#entities.edges.read(key, direction, { page, nowMs: this.#nowMs(), place: this.#place }),
    );
  }

  async append(records: readonly StoredRecord[], inCommit?: RecordsInCommit): Promise<void> {
    checkBatch(records.length);
    for (const record of records) checkRecord(record);
    await this.#inSlices(records, (slice) => this.#records.append(slice), inCommit);
  }

  timeline(request: TimelineRequest, page: PageRequest): Promise<Page<StoredRecord>> {
    return this.#inTurn(() => this.#records.timeline(request, page, this.#place));
  }

  async getRecords(keys: readonly EntityKey[]): Promise<readonly (StoredRecord | undefined)[]> {
    for (const key of keys) checkRecordId(key.id);
    return this.#inTurn(() => keys.map((key) => this.#records.get(key)));
  }

  async removeRecords(records: readonly RemovedRecord[]): Promise<void> {
    checkBatch(records.length);
    for (const { id } of records) checkRecordId(id);
    await this.#inSlices(records, (slice) => slice.forEach((record) => this.#records.remove(record)));
  }

  /** Cleans up expired data; also runs periodically by itself. */
  async sweep(): Promise<number> {
    return this.#expiry.sweep();
  }

  async close(): Promise<void> {
    await this.#expiry.close();
  }

  /** Writes items in their order. Many items take several commits, so that other work gets its turn in between. */
  #inSlices<T>(items: readonly T[], action: (slice: readonly T[]) => void, inCommit?: RecordsInCommit): Promise<void> {
    if (items.length > CHANGE_SLICE_MAX) return this.#inOrder(items, action);
    const also = inCommit?.also && this.#also(inCommit.also);
    return this.#env.write(() => {
      also?.write();
      action(items);
      if (inCommit !== undefined) this.#records.append(inCommit.records());
    }, also?.committed);
  }

  /** `write` throws before its first write if a condition does not hold. */
  #also(also: AlsoInCommit): { readonly write: () => void; readonly committed: () => void } {
    const { decide, committed } = this.#seams.kv.within(also.kv);
    const store = also.content && this.#seams.blobs.within(also.content);
    const write = (): void => {
      if (!decide()) {
        also.unmet();
        throw new AppError("conflict", "Another change came first: nothing was written.");
      }
      store?.();
    };
    return { write, committed };
  }

  async #inOrder<T>(items: readonly T[], action: (slice: readonly T[]) => void): Promise<void> {
    const writes: Promise<void>[] = [];
    for (let start = 0; start < items.length; start += CHANGE_SLICE_MAX) {
      const slice = items.slice(start, start + CHANGE_SLICE_MAX);
      writes.push(this.#env.write(() => action(slice)));
    }
    const outcomes = await Promise.allSettled(writes);
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  }

  #visit(kind: number, key: Uint8Array, due: { readonly atMs: number; readonly nowMs: number }): void {
    if (kind === EXPIRY_KINDS.entity) this.#entities.visit(key, due);
    else if (kind === EXPIRY_KINDS.edge) this.#entities.edges.visit(key, due);
    else if (kind === EXPIRY_KINDS.version) this.#entities.history.visit(key, due.atMs);
    else this.#records.visit(key, due.atMs);
  }
}
