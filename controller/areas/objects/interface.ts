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
  IngestOptions,
  InsertOptions,
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

/** Durable subscriptions of changes. Rights: the permission `objects:write`. */
export interface ObjectChanges {
  /**
   * Durable: when it resolves, every controller stores its changes of these classes as intents before it makes them.
   * Each controller that subscribes by the name delivers its own changes and those of controllers that are gone.
   * `AppError("unavailable")` when a controller did not acknowledge in time, and for writes while more than
   * `CHANGE_EVENTS_WAITING_MAX` events are undelivered.
   */
  subscribe(principal: Principal, subscription: ChangeSubscription): Promise<void>;
  /**
   * Ends the subscription for all controllers; undelivered events are dropped. A controller that subscribed calls it
   * before it subscribes by that name again.
   */
  unsubscribe(principal: Principal, name: string): Promise<void>;
}

/** Classes and edge types. */
export interface ClassDefinitions {
  /** Current for this controller; includes every change made through it that has resolved. */
  catalog(principal: Principal): Promise<ClassCatalog>;
  createClass(principal: Principal, spec: ClassSpec, options?: { readonly ifNotExists?: boolean }): Promise<ClassView>;
  alterClass(principal: Principal, path: string, change: ClassChange): Promise<ClassView>;
  /** `AppError("conflict")` while objects, versions or subclasses exist. */
  dropClass(principal: Principal, path: string, options?: { readonly ifExists?: boolean }): Promise<void>;
  createEdgeType(principal: Principal, type: EdgeType, options?: { readonly ifNotExists?: boolean }): Promise<void>;
  dropEdgeType(principal: Principal, name: string, options?: { readonly ifExists?: boolean }): Promise<void>;
}

export interface ObjectWrites {
  /**
   * Whole ids in the order of `rows`. An id that exists gets a new version; columns not named stay as they were.
   */
  insert(principal: Principal, path: string, rows: readonly Row[], options?: InsertOptions): Promise<readonly string[]>;
  /**
   * Records of a source that may replay: the same identity and time give the same row again. Also entities with keys
   * (upserts). `AppError("conflict")` when the class is another one than that of the basis.
   */
  ingest(
    principal: Principal,
    path: string,
    records: readonly NewRecord[],
    options?: IngestOptions,
  ): Promise<readonly string[]>;
  /** False when there is no such object, or it is not to be changed. */
  update(principal: Principal, ref: ObjectRef, edits: readonly Edit[], options?: UpdateOptions): Promise<boolean>;
  /** Writes the index entries of these objects again, and nothing else. Answers the number of objects. */
  refresh(principal: Principal, refs: readonly ObjectRef[]): Promise<number>;
  /**
   * Answers the number of removed objects; `withVersions` also removes the versions of objects that were removed
   * before, and counts these.
   */
  remove(
    principal: Principal,
    refs: readonly ObjectRef[],
    options?: PresetTime & { readonly withVersions?: boolean },
  ): Promise<number>;
  /**
   * Times in microseconds for writes that are made later and perhaps more than once, in the order of `refs`
   * (`undefined`: an id that is not generated yet). Each is above all known times of the object and above every time
   * this controller gave it before; it is the same for all objects that are not ahead of the clock.
   */
  writeTimes(principal: Principal, refs: readonly (ObjectRef | undefined)[]): Promise<readonly number[]>;
  /**
   * Calls the listener after each write of this controller, until the returned function is called. A listener must not
   * throw and must not wait. A write does no work for a listener whose `wants` refuses its tenant.
   */
  onChange(listener: (events: readonly ObjectChange[]) => void, wants?: (tenant: string) => boolean): () => void;
}

export interface ObjectReads {
  get(principal: Principal, refs: readonly ObjectRef[]): Promise<readonly (ObjectRow | undefined)[]>;
  read(principal: Principal, request: ReadRequest): AsyncIterable<readonly ObjectRow[]>;
  /**
   * The same objects as `read`, but those without a value, along an index in order; one that is written meanwhile may be
   * missing or come twice. `undefined` where no index has it, or `read` is expected to cost less. Given up after a part
   * of what `read` takes.
   */
  inOrder(principal: Principal, request: OrderedRequest): Promise<OrderedRead | undefined>;
  explain(principal: Principal, request: ReadRequest): Promise<ReadExplanation>;
  /**
   * About how many objects the read looks at, by the indexes alone: rows that the principal may not see are among them.
   * `undefined` where that is not known.
   */
  estimate(principal: Principal, request: ReadRequest): Promise<number | undefined>;
  /**
   * Counts exactly the objects that fulfil all of `where`, without making rows of them. `undefined` where indexes cannot
   * tell: then the caller reads.
   */
  count(principal: Principal, request: CountRequest): Promise<AsyncIterable<readonly Tally[]> | undefined>;

  /**
   * Edges from or to objects, each once, in no order. Leaves out edges with an end that does not exist or is of a class
   * that may not be read. A reference to a label of several classes means the objects of each.
   */
  edges(principal: Principal, refs: readonly ObjectRef[], request: EdgeRequest): AsyncIterable<readonly ObjectEdge[]>;
  /**
   * Versions of an object, newest first, for each class that the reference may mean. `AppError("invalid")` when none of
   * them keeps versions.
   */
  history(principal: Principal, ref: ObjectRef, range?: HistoryRange): AsyncIterable<readonly ObjectVersion[]>;
  /**
   * Objects of just this class that were removed at `fromMs` or later, have versions and were not inserted again.
   * `AppError("invalid")` when the class keeps no versions.
   */
  removed(
    principal: Principal,
    path: string,
    range?: Pick<HistoryRange, "fromMs" | "signal">,
  ): AsyncIterable<readonly ObjectRef[]>;

  /**
   * The last states of objects of just this class that were removed, have versions and were not inserted again. Also
   * for a class that keeps no versions any more.
   */
  removedObjects(
    principal: Principal,
    path: string,
    options?: { readonly ids?: readonly string[]; readonly signal?: AbortSignal },
  ): AsyncIterable<readonly ObjectRow[]>;
}

/** The stored history of objects, to be read and stored again as it is. Rights are those of `Objects`. */
export interface ObjectHistories {
  /** Times of objects of just this class, in the order of `ids`; `undefined` for those that do not exist. */
  times(principal: Principal, path: string, ids: readonly string[]): Promise<readonly (ObjectTimes | undefined)[]>;
  /**
   * Versions of an object of just this class up to `toUs`, newest first, without relations to objects of classes that the
   * principal does not see whole. `AppError("denied")` for a class that it does not see whole. None for a class that keeps
   * no versions.
   */
  pastStates(
    principal: Principal,
    ref: Required<ObjectRef>,
    range?: { readonly toUs?: number | undefined; readonly signal?: AbortSignal | undefined },
  ): AsyncIterable<readonly PastState[]>;
  /**
   * Stores earlier states of objects of just this class as their versions, with the times they had; of each object newest
   * first. Changes no object, runs no trigger and publishes nothing. Answers in the order of `states`.
   */
  restore(principal: Principal, path: string, states: readonly RestoredState[]): Promise<readonly Restored[]>;
}

/**
 * The object database. Rights: reading needs `classAccess(...).readable`, changing `writable`, definitions
 * `requireDefining`; row conditions and hidden columns are the query area's work. Bad values are `AppError("invalid")`
 * that names the column; an unknown class or column `AppError("not_found")`.
 */
export interface Objects extends ClassDefinitions, ObjectWrites, ObjectReads {
  /** Call before any tenant is opened; the class is made in every tenant when it opens. */
  registerSystemClass(definition: SystemClass): void;
  /** State of every index of classes that the principal may read. */
  indexStates(principal: Principal): Promise<readonly IndexStatus[]>;
}

/** Triggers as parts of class definitions. Changing one takes `requireDefining` of its class. */
export interface ClassTriggers {
  /** Triggers of this class alone; `AppError("not_found")` for a class that the principal may not read. */
  triggers(principal: Principal, path: string): Promise<readonly TriggerDefinition[]>;
  /** The triggers that the user stored, of classes that the principal may read. */
  triggersBy(principal: Principal, author: string): Promise<readonly TriggerDefinition[]>;
  /**
   * Inserts or replaces. When it resolves, every controller runs it and none the one before. `AppError("unavailable")`
   * when a controller did not acknowledge in time; then it is stored.
   */
  putTrigger(
    principal: Principal,
    trigger: Omit<TriggerDefinition, "author" | "modifiedAtMs">,
  ): Promise<TriggerDefinition>;
  /** As `putTrigger`; `AppError("not_found")` when there is none of that name. */
  dropTrigger(principal: Principal, trigger: Pick<TriggerDefinition, "class" | "name">): Promise<void>;
  /**
   * Takes part in the delivery of changes to triggers, also of those that another controller left. Call from time to
   * time; idempotent.
   */
  followTriggers(principal: Principal): Promise<void>;
  /**
   * That version, also after it was replaced; `disabled` as the trigger is now. Absent when the trigger was removed since,
   * also where another one has its name by now.
   */
  triggerAt(principal: Principal, version: TriggerVersion): Promise<TriggerDefinition | undefined>;
  /**
   * The earliest time of changes that other controllers stored and did not deliver yet, by their objects (`objectOf`). It
   * holds for changes of this controller that are later and were made before the call. Some of them may never be made, and no more
   * than `CHANGE_FOREIGN_EVENTS_MAX` are looked at.
   */
  foreignChanges(principal: Principal): Promise<ReadonlyMap<string, number>>;
}

/**
 * Checks definitions and rows against the current definitions without writing, so that a script is checked as a whole
 * before its first write. Errors are those of the real call. The caller checks rights on classes.
 */
export interface DryRun {
  /** The catalog with everything that was tried so far. */
  readonly catalog: ClassCatalog;
  createClass(spec: ClassSpec, options?: { readonly ifNotExists?: boolean }): void;
  alterClass(path: string, change: ClassChange): void;
  createEdgeType(type: EdgeType, options?: { readonly ifNotExists?: boolean }): void;
  /**
   * Checks names, values, key and sizes, and that a class has the label of each edge's target, not that the target
   * exists. Answers the whole id of the row, `undefined` when it would be generated.
   */
  checkRow(path: string, row: Row, marked?: RecordMarks): string | undefined;
  /** Checks names and values, and that a class has the label of each edge's target. */
  checkEdits(path: string, edits: readonly Edit[]): void;
  /** `AppError("too_large")` where the quota of the tenant has no room for the rows that were checked. */
  requireRoom(): Promise<void>;
}

export interface Rehearsals {
  rehearse(principal: Principal): Promise<DryRun>;
}
