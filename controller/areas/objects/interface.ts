import type { Row } from "../../../common/value.ts";
import type { Expected } from "../../../common/revisions.ts";
import type { Principal } from "../permissions/index.ts";
import type { SystemClass } from "./definitions/system-class.ts";
import type {
  ChangeSubscription,
  ClassCatalog,
  ClassChange,
  ClassSpec,
  ClassView,
  EdgeType,
  Edit,
  IndexStatus,
  RecordMarks,
  TriggerDefinition,
  TriggerVersion,
} from "./types.ts";
import type { UnrestrictedObjects } from "./unrestricted.ts";
import type { VisibleObjects } from "./visible/interface.ts";

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

export interface MakeOptions {
  readonly ifNotExists?: boolean;
  readonly expected?: Expected | undefined;
}

export interface DropOptions {
  readonly ifExists?: boolean;
  readonly expected?: Expected | undefined;
}

/** Classes and edge types. */
export interface ClassDefinitions {
  /**
   * The definitions as this controller knows them. They include every change that was made through it and has resolved.
   */
  catalog(principal: Principal): Promise<ClassCatalog>;
  /** The same, if it need not be waited for: `undefined` while the definitions are read. */
  catalogNow(principal: Principal): ClassCatalog | undefined;
  createClass(principal: Principal, spec: ClassSpec, options?: MakeOptions): Promise<ClassView>;
  /** Makes one change, or several as one. */
  alterClass(
    principal: Principal,
    path: string,
    change: ClassChange | readonly ClassChange[],
    expected?: Expected,
  ): Promise<ClassView>;
  /** `AppError("conflict")` while objects, versions or subclasses exist. */
  dropClass(principal: Principal, path: string, options?: DropOptions): Promise<void>;
  createEdgeType(principal: Principal, type: EdgeType, options?: { readonly ifNotExists?: boolean }): Promise<void>;
  dropEdgeType(principal: Principal, name: string, options?: { readonly ifExists?: boolean }): Promise<void>;
}

/**
 * The object database. Definitions need `requireDefining`. A bad value is an `AppError("invalid")` that names the
 * column. An unknown class or column is an `AppError("not_found")`.
 */
export interface Objects extends ClassDefinitions {
  /** Reads with the rights of a principal on rows and columns. */
  readonly visible: VisibleObjects;
  /** The only way to reads and writes of objects without row conditions and hidden columns. */
  readonly unrestricted: UnrestrictedObjects;
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
    expected?: Expected,
  ): Promise<TriggerDefinition>;
  /** Like `putTrigger`. `AppError("not_found")` if there is no trigger of that name. */
  dropTrigger(
    principal: Principal,
    trigger: Pick<TriggerDefinition, "class" | "name">,
    expected?: Expected,
  ): Promise<void>;
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
