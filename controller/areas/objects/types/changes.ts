import type { Row } from "../../../../common/value.ts";
import type { Principal } from "../../permissions/index.ts";
import type { TriggerVersion, TriggerDefinition } from "./definitions.ts";
import type { ObjectRow } from "./reading.ts";

/** A change of an object. Delivered at least once; (id, timeMs) is its identity. */
export interface ObjectChangeEvent {
  readonly tenant: string;
  readonly class: string;
  readonly id: string;
  readonly timeMs: number;
  readonly action: "INSERT" | "UPDATE" | "DELETE";
  readonly fields: Row;
  readonly traceparent: string;
  /** Number of triggers whose writes led to this change, one after the other; absent: none. */
  readonly steps?: number;
  /** Versions of the triggers that run after the change, in order. Absent: none, or stored before this member. */
  readonly triggers?: readonly TriggerVersion[];
  /** Only for subscriptions to whole objects. Absent if it was too large to be stored with the event. */
  readonly whole?: WholeChange;
}

/** An object around a change, without sealed columns. */
export interface WholeChange {
  /** After the write, or before the removal. */
  readonly object: Pick<ObjectRow, "values" | "vtimeMs" | "ctimeMs">;
  /** Columns that an update wrote, with their values before it; `null` if not set. Absent for other changes. */
  readonly before?: Pick<ObjectRow, "values" | "vtimeMs">;
  /** Members of `fields` that are edge types with ids of targets. */
  readonly relations: readonly string[];
}

/** A change for listeners in this process. */
export interface ObjectChange extends Omit<ObjectChangeEvent, "whole">, WholeChange {
  /** True if a trigger that ran before the write asked to announce it. */
  readonly announced?: boolean;
}

/** A write as triggers see it before it is made, without sealed columns. */
export interface TriggeredWrite {
  readonly action: "INSERT" | "UPDATE" | "DELETE";
  readonly class: string;
  /** Whole. */
  readonly id: string;
  /** The object as it would be written, with the relations that the write names. For a removal, the object as it is. */
  readonly object: Row;
  /** Absent for a new one. */
  readonly old: Row | undefined;
}

export interface TriggerOutcome {
  /** The object as it is to be written. */
  readonly object: Row;
  /** True if the change is to be announced. */
  readonly announced: boolean;
}

/** Runs the triggers of classes; given at the assembly. */
export interface ObjectTriggers {
  /**
   * Runs the triggers in their order, each on the result of the one before. `AppError("invalid")` refuses the write.
   * The principal's `chain` includes this step. Other writes of the object wait until it ends.
   */
  before(principal: Principal, triggers: readonly TriggerDefinition[], write: TriggeredWrite): Promise<TriggerOutcome>;
  /**
   * Takes changes of one tenant, like `ChangeSubscription.deliver`. `triggersOf` returns the triggers that run after a
   * change, in their order.
   */
  after(
    events: readonly ObjectChangeEvent[],
    triggersOf: (event: ObjectChangeEvent) => Promise<readonly TriggerDefinition[]>,
  ): Promise<void>;
}

/** A subscription to every change of the objects of some classes, even if the controller that made it fails. */
export interface ChangeSubscription {
  /** Letters, digits, `.`, `_`, `-`. Controllers that subscribe by the same name share the work. */
  readonly name: string;
  /** Class paths. A path with a slash at its end stands for the class and all classes below it. */
  readonly classes: readonly string[];
  /**
   * Called at least once for each write that was answered; (id, timeMs) identifies repetitions. The events of one
   * controller come in the order of its writes while it lives. The call is repeated if it rejects or does not resolve
   * within `CHANGE_DELIVERY_DEADLINE_MS`. After a crash it may receive a write that was never answered. That write may
   * not even have been made, if a later write of the same object was.
   */
  readonly deliver: (events: readonly ObjectChangeEvent[]) => Promise<void>;
  /** Maximum number of events in one call. Those of one write stay together. Default: `CHANGE_DELIVERY_EVENTS`. */
  readonly eventsAtOnce?: number;
}
