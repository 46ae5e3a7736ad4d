import type { Row } from "../../../common/value.ts";
import type { Principal } from "../permissions/index.ts";
import type { SystemClass } from "./definitions/system-class.ts";
import type {
  ChangeSubscription,
  ClassCatalog,
  ClassChange,
  ClassSpec,
  ClassView,
  CountRequest,
  EdgeRequest,
  EdgeType,
  Edit,
  HistoryRange,
  IndexStatus,
  NewRecord,
  RecordMarks,
  ObjectChange,
  ObjectEdge,
  ObjectRef,
  ObjectRow,
  ObjectTimes,
  ObjectVersion,
  OrderedRead,
  OrderedRequest,
  PastState,
  PresetTime,
  ReadExplanation,
  ReadRequest,
  Restored,
  RestoredState,
  Tally,
  TriggerDefinition,
  TriggerVersion,
  UpdateOptions,
} from "./types.ts";
import type { InCommit, IngestOptions, InsertOptions } from "./write-options.ts";

/** Durable subscriptions to changes. They need the permission `objects:write`. */
export interface ObjectChanges {
  /**
   * Durable: when it resolves, every controller stores its changes of these classes as intents before it makes them.
   * Each controller that subscribes by the name delivers its own changes, and those of controllers that are gone.
   * `AppError("unavailable")` if a controller did not acknowledge in time. Writes get this error, too, while more than
   * `CHANGE_EVENTS_WAITING_MAX` events are undelivered.
   */
  subscribe(principal: Principal, subscription: ChangeSubscription): Promise<void>;
  /**
   * Ends the subscription for all controllers and drops undelivered events. A controller that subscribed must call this
   * before it subscribes by that name again.
   */
  unsubscribe(principal: Principal, name: string): Promise<void>;
}

/** Classes and edge types. */
export interface ClassDefinitions {
  /**
   * The definitions as this controller knows them. They include every change that was made through it and has resolved.
   */
  catalog(principal: Principal): Promise<ClassCatalog>;
  /** The same, if it need not be waited for: `undefined` while the definitions are read. */
  catalogNow(principal: Principal): ClassCatalog | undefined;
  createClass(principal: Principal, spec: ClassSpec, options?: { readonly ifNotExists?: boolean }): Promise<ClassView>;
  alterClass(principal: Principal, path: string, change: ClassChange): Promise<ClassView>;
  /** `AppError("conflict")` while objects, versions or subclasses exist. */
  dropClass(principal: Principal, path: string, options?: { readonly ifExists?: boolean }): Promise<void>;
  createEdgeType(principal: Principal, type: EdgeType, options?: { readonly ifNotExists?: boolean }): Promise<void>;
  dropEdgeType(principal: Principal, name: string, options?: { readonly ifExists?: boolean }): Promise<void>;
}

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
  /**
   * Returns the number of removed objects. `withVersions` also removes the versions of objects that were removed
   * before, and counts these objects.
   */
  remove(
    principal: Principal,
    refs: readonly ObjectRef[],
    options?: PresetTime & { readonly withVersions?: boolean },
  ): Promise<number>;
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
 * `Objects`.
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
 * The object database. Reading needs `classAccess(...).readable`, changing needs `writable`, definitions need
 * `requireDefining`. The query area applies row conditions and hidden columns. A bad value is an `AppError("invalid")`
 * that names the column. An unknown class or column is an `AppError("not_found")`.
 */
export interface Objects extends ClassDefinitions, ObjectWrites, ObjectReads {
  /** Call before any tenant is opened. The class is made in every tenant when the tenant opens. */
  registerSystemClass(definition: SystemClass): void;
  /** State of every index of classes that the principal may read. */
  indexStates(principal: Principal): Promise<readonly IndexStatus[]>;
}

/** Triggers as parts of class definitions. Changing a trigger needs `requireDefining` of its class. */
export interface ClassTriggers {
  /** Triggers of this class alone; `AppError("not_found")` for a class that the principal may not read. */
  triggers(principal: Principal, path: string): Promise<readonly TriggerDefinition[]>;
  /** The triggers that the user stored, of classes that the principal may read. */
  triggersBy(principal: Principal, author: string): Promise<readonly TriggerDefinition[]>;
  /**
   * Inserts or replaces the trigger. When it resolves, every controller runs the new trigger and none runs the former.
   * `AppError("unavailable")` if a controller did not acknowledge in time; the trigger is stored in that case.
   */
  putTrigger(
    principal: Principal,
    trigger: Omit<TriggerDefinition, "author" | "modifiedAtMs">,
  ): Promise<TriggerDefinition>;
  /** Like `putTrigger`. `AppError("not_found")` if there is no trigger of that name. */
  dropTrigger(principal: Principal, trigger: Pick<TriggerDefinition, "class" | "name">): Promise<void>;
  /**
   * Takes part in the delivery of changes to triggers, also of changes that another controller left. Call it regularly;
   * idempotent.
   */
  followTriggers(principal: Principal): Promise<void>;
  /**
   * That version of the trigger, even if it was replaced since. `disabled` has the current state of the trigger. Absent
   * if the trigger was removed since, even if another trigger has its name now. Also absent if the version was replaced
   * more than `CHANGE_INTENT_KEEP_MS` ago.
   */
  triggerAt(principal: Principal, version: TriggerVersion): Promise<TriggerDefinition | undefined>;
  /**
   * The earliest time of changes that other controllers stored and did not deliver yet, by object (`objectOf`). Some of
   * these changes may never be made. At most `CHANGE_FOREIGN_EVENTS_MAX` are looked at. Compare the times only with
   * changes of this controller that are later and were made before the call.
   */
  foreignChanges(principal: Principal): Promise<ReadonlyMap<string, number>>;
}

/**
 * Checks definitions and rows against the current definitions without writing, so that a script is checked completely
 * before its first write. The errors are those of the real call. The caller checks rights on classes.
 */
export interface DryRun {
  /** The catalog including every change that was tried so far. */
  readonly catalog: ClassCatalog;
  createClass(spec: ClassSpec, options?: { readonly ifNotExists?: boolean }): void;
  alterClass(path: string, change: ClassChange): void;
  createEdgeType(type: EdgeType, options?: { readonly ifNotExists?: boolean }): void;
  /**
   * Checks names, values, key and sizes. Checks that a class has the label of each edge's target, but not that the
   * target exists. Returns the whole id of the row; `undefined` if it would be generated.
   */
  checkRow(path: string, row: Row, marked?: RecordMarks): string | undefined;
  /** Checks names and values, and that a class has the label of each edge's target. */
  checkEdits(path: string, edits: readonly Edit[]): void;
  /** `AppError("too_large")` if the quota of the tenant has no room for the rows that were checked. */
  requireRoom(): Promise<void>;
}

export interface Rehearsals {
  rehearse(principal: Principal): Promise<DryRun>;
}
