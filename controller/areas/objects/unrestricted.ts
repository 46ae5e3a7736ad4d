import type { Row } from "../../../common/value.ts";
import type { Principal } from "../permissions/index.ts";
import type {
  CountRequest,
  EdgeRequest,
  Edit,
  HistoryRange,
  InCommit,
  IngestOptions,
  InsertOptions,
  NewRecord,
  ObjectChange,
  ObjectEdge,
  ObjectRef,
  ObjectRow,
  ObjectTimes,
  ObjectVersion,
  OrderedRead,
  OrderedRequest,
  PastState,
  ReadExplanation,
  ReadRequest,
  RemoveOptions,
  Restored,
  RestoredState,
  Tally,
  UpdateOptions,
} from "./types.ts";

export interface ObjectWrites {
  /**
   * Returns whole ids in the order of `rows`. An object whose id exists gets a new version; columns that are not named
   * keep their values.
   */
  insert(principal: Principal, path: string, rows: readonly Row[], options?: InsertOptions): Promise<readonly string[]>;
  /**
   * Writes records of a source that may repeat itself: the same identity and time give the same row. Also writes
   * entities with keys (upserts). `AppError("conflict")` when the class is not the class of the basis.
   */
  ingest(
    principal: Principal,
    path: string,
    records: readonly NewRecord[],
    options?: IngestOptions,
  ): Promise<readonly string[]>;
  /** False when there is no such object, or `compute` returned `undefined`. */
  update(principal: Principal, ref: ObjectRef, edits: readonly Edit[], options?: UpdateOptions): Promise<boolean>;
  /** Writes the index entries of these objects again, and nothing else. Returns the number of objects. */
  refresh(principal: Principal, refs: readonly ObjectRef[]): Promise<number>;
  /** Returns the number of removed objects. */
  remove(principal: Principal, refs: readonly ObjectRef[], options?: RemoveOptions): Promise<number>;
  /**
   * Times in microseconds for writes that are made later and perhaps more than once, in the order of `refs`.
   * `undefined` in `refs` stands for an id that is not generated yet. Each time is above all known times of the object,
   * and above every time that this controller gave it before. All objects that are not ahead of the clock get the same
   * time.
   */
  writeTimes(principal: Principal, refs: readonly (ObjectRef | undefined)[]): Promise<readonly number[]>;
  /**
   * Calls the listener after each write of this controller, until the returned function is called. A listener must not
   * throw and must not wait. Writes do no work for a listener whose `wants` refuses their tenant.
   */
  onChange(listener: (events: readonly ObjectChange[]) => void, wants?: (tenant: string) => boolean): () => void;
}

/** For the owner of a class of records that other writes store in their commits. */
export interface RecordsOfCommits {
  /** Writes only these records. `records` is not called if the store does not make records inside a commit. */
  ingestInCommit(principal: Principal, inCommit: InCommit): Promise<void>;
}

export interface ObjectReads {
  get(principal: Principal, refs: readonly ObjectRef[]): Promise<readonly (ObjectRow | undefined)[]>;
  read(principal: Principal, request: ReadRequest): AsyncIterable<readonly ObjectRow[]>;
  /**
   * Reads the objects of `read` that have a value in the column of the order, along an index. An object that is written
   * meanwhile may be missing or come twice. `undefined` if no index has the order, or if `read` is expected to cost
   * less. The read is given up after a share of the cost of `read`; see `OrderedRead.isWhole`.
   */
  inOrder(principal: Principal, request: OrderedRequest): Promise<OrderedRead | undefined>;
  explain(principal: Principal, request: ReadRequest): Promise<ReadExplanation>;
  /**
   * Estimates by indexes how many objects the read looks at. The number includes rows that the principal may not see.
   * `undefined` if it is unknown.
   */
  estimate(principal: Principal, request: ReadRequest): Promise<number | undefined>;
  /**
   * Counts exactly the objects that fulfil all of `where`, without making rows. `undefined` if indexes cannot answer;
   * the caller reads in that case.
   */
  count(principal: Principal, request: CountRequest): Promise<AsyncIterable<readonly Tally[]> | undefined>;

  /**
   * Edges from or to objects, each once, in no order. Leaves out edges with an end that does not exist, or whose class
   * may not be read. A reference with a label of several classes means the object of each class.
   */
  edges(principal: Principal, refs: readonly ObjectRef[], request: EdgeRequest): AsyncIterable<readonly ObjectEdge[]>;
  /**
   * Versions of an object, newest first, for each class that the reference may mean. `AppError("invalid")` when none of
   * them keeps versions.
   */
  history(principal: Principal, ref: ObjectRef, range?: HistoryRange): AsyncIterable<readonly ObjectVersion[]>;
  /**
   * Objects of just this class that have versions, were removed at `fromMs` or later, and were not inserted again.
   * `AppError("invalid")` when the class keeps no versions.
   */
  removed(
    principal: Principal,
    path: string,
    range?: Pick<HistoryRange, "fromMs" | "signal">,
  ): AsyncIterable<readonly ObjectRef[]>;

  /**
   * The last states of objects of just this class that have versions, were removed, and were not inserted again. Also
   * for a class that keeps no versions any more.
   */
  removedObjects(
    principal: Principal,
    path: string,
    options?: { readonly ids?: readonly string[]; readonly signal?: AbortSignal },
  ): AsyncIterable<readonly ObjectRow[]>;
}

/**
 * The stored history of objects, in a form that can be read and stored again unchanged. The rights are those of
 * `ObjectReads` and `ObjectWrites`.
 */
export interface ObjectHistories {
  /** Times of objects of just this class, in the order of `ids`; `undefined` for objects that do not exist. */
  times(principal: Principal, path: string, ids: readonly string[]): Promise<readonly (ObjectTimes | undefined)[]>;
  /**
   * Versions of an object of just this class up to `toUs`, newest first. Leaves out relations to objects of classes
   * that the principal does not see whole. `AppError("denied")` if it does not see this class whole. Empty for a class
   * that keeps no versions.
   */
  pastStates(
    principal: Principal,
    ref: Required<ObjectRef>,
    range?: { readonly toUs?: number | undefined; readonly signal?: AbortSignal | undefined },
  ): AsyncIterable<readonly PastState[]>;
  /**
   * Stores earlier states of objects of just this class as versions, with their former times. The states of one object
   * must be newest first. Changes no object, runs no trigger and publishes nothing. Returns the outcomes in the order
   * of `states`.
   */
  restore(principal: Principal, path: string, states: readonly RestoredState[]): Promise<readonly Restored[]>;
}

/**
 * Reads and writes of objects that check only the rights on classes: reading needs `classAccess(...).readable`, changing
 * needs `writable`. Row conditions and hidden columns are not applied. So a service that answers a user with what it
 * read here shows objects that are hidden from that user. Each call outside this area is listed with its reason in
 * `test/tools/ratchets/unrestricted.json`.
 */
export interface UnrestrictedObjects extends ObjectWrites, ObjectReads, ObjectHistories, RecordsOfCommits {}

/** The unrestricted calls that a service needs, by name. */
export interface Unrestricted<Names extends keyof UnrestrictedObjects> {
  readonly unrestricted: Pick<UnrestrictedObjects, Names>;
}
