import { AppError } from "../../../../common/errors.ts";
import type { Stamp } from "../../../../common/revisions.ts";
import { encodeJson } from "../../../store/format.ts";
import type { KvCondition, KvOperation, KvTxn } from "../../../store/kv.ts";
import type { ColumnSpec, EdgeType, TriggerDefinition } from "../types.ts";
import { triggerName } from "./naming.ts";
import { classNotFound } from "./views.ts";
import {
  FIRST_COLUMN_NUMBER,
  ROOT_CID,
  isBelow,
  parentPath,
  type ClassDefinition,
  type ColumnDefinition,
  type Definitions,
  type SubscriptionDefinition,
} from "./definition.ts";

export const DEFINITIONS_PREFIX = "objects/";
export const COUNTER_KEY = `${DEFINITIONS_PREFIX}counter`;
export const CLASS_PREFIX = `${DEFINITIONS_PREFIX}class`;
export const EDGE_TYPE_PREFIX = `${DEFINITIONS_PREFIX}edgetype/`;
export const SUBSCRIPTION_PREFIX = `${DEFINITIONS_PREFIX}subscription/`;
export const TRIGGER_PREFIX = `${DEFINITIONS_PREFIX}trigger`;
/**
 * Prefix of marks of classes that are about to be dropped, under the lease of the controller that drops them. Marked
 * classes take no objects.
 */
export const DROPPING_PREFIX = `${DEFINITIONS_PREFIX}dropping`;

interface DraftOptions {
  readonly nowMs: number;
  readonly lease: string;
  /** Stamp of the changed classes. */
  readonly stamp: Stamp;
}

/** Definitions with a change that is not written yet. The rules of changes are in `classchanges.ts`. */
export class Draft {
  readonly nowMs: number;
  readonly #lease: string;
  readonly #stamp: Stamp;
  readonly #counterRevision: number;
  readonly #dropping: Definitions["dropping"];
  readonly #classes: Map<string, ClassDefinition>;
  readonly #edgeTypes: Map<string, EdgeType>;
  readonly #subscriptions: Map<string, SubscriptionDefinition>;
  readonly #triggers: Map<string, TriggerDefinition>;
  readonly #puts = new Map<string, unknown>();
  readonly #deletes = new Set<string>();
  readonly #marks = new Map<string, unknown>();
  readonly #conditions: KvCondition[] = [];
  #nextCid: number;
  #nextColumn: number;

  constructor(definitions: Definitions, { nowMs, lease, stamp }: DraftOptions) {
    this.nowMs = nowMs;
    this.#lease = lease;
    this.#stamp = stamp;
    this.#counterRevision = definitions.counterRevision;
    this.#dropping = definitions.dropping;
    this.#classes = new Map(definitions.classes);
    this.#edgeTypes = new Map(definitions.edgeTypes);
    this.#subscriptions = new Map(definitions.subscriptions);
    this.#triggers = new Map(definitions.triggers);
    this.#nextCid = definitions.counter?.nextCid ?? ROOT_CID;
    this.#nextColumn = definitions.counter?.nextColumn ?? FIRST_COLUMN_NUMBER;
  }

  /** The definitions with the change. */
  definitions(): Definitions {
    const counter = { nextCid: this.#nextCid, nextColumn: this.#nextColumn, change: "" };
    return {
      counter,
      counterRevision: this.#counterRevision,
      classes: this.#classes,
      edgeTypes: this.#edgeTypes,
      dropping: this.#dropping,
      subscriptions: this.#subscriptions,
      triggers: this.#triggers,
    };
  }

  get classCount(): number {
    return this.#classes.size;
  }

  get edgeTypeCount(): number {
    return this.#edgeTypes.size;
  }

  edgeTypeNames(): Iterable<string> {
    return this.#edgeTypes.keys();
  }

  get subscriptionCount(): number {
    return this.#subscriptions.size;
  }

  get triggers(): ReadonlyMap<string, TriggerDefinition> {
    return this.#triggers;
  }

  class(path: string): ClassDefinition | undefined {
    return this.#classes.get(path);
  }

  classOf(cid: number): ClassDefinition | undefined {
    for (const definition of this.#classes.values()) if (definition.cid === cid) return definition;
    return undefined;
  }

  /** `AppError("not_found")` when there is none. */
  requireClass(path: string): ClassDefinition {
    const found = this.#classes.get(path);
    if (found === undefined) throw classNotFound(path);
    return found;
  }

  edgeType(name: string): EdgeType | undefined {
    return this.#edgeTypes.get(name);
  }

  subscription(name: string): SubscriptionDefinition | undefined {
    return this.#subscriptions.get(name);
  }

  /** The class and what it inherits from, the class first. */
  lineage(path: string): ClassDefinition[] {
    const found: ClassDefinition[] = [];
    for (let at: string | undefined = path; at !== undefined; at = parentPath(at)) {
      const definition = this.#classes.get(at);
      if (definition !== undefined) found.push(definition);
    }
    return found;
  }

  /** All classes below, without the class itself. */
  below(path: string): ClassDefinition[] {
    return [...this.#classes.values()].filter((definition) => isBelow(definition.path, path));
  }

  /** Own and inherited. */
  columns(path: string): Map<string, ColumnDefinition> {
    return new Map(
      this.lineage(path).flatMap((definition) => definition.columns.map((column) => [column.name, column] as const)),
    );
  }

  takeCid(): number {
    return this.#nextCid++;
  }

  numbered(column: ColumnSpec): ColumnDefinition {
    return { ...column, number: this.takeNumber() };
  }

  /** The next number for a column or an index; both use one series. */
  takeNumber(): number {
    return this.#nextColumn++;
  }

  /** Stores a class that is new or changed, with a new revision. */
  putClass(definition: ClassDefinition): void {
    this.noteClass({ ...definition, stamp: this.#stamp });
  }

  /** Stores what odp notes about a class. The class keeps its revision. */
  noteClass(definition: ClassDefinition): void {
    const written = { ...definition, modifiedAtMs: this.nowMs };
    this.#classes.set(definition.path, written);
    this.#put(CLASS_PREFIX + definition.path, written);
  }

  deleteClass(path: string): void {
    this.#classes.delete(path);
    this.#delete(CLASS_PREFIX + path);
    for (const trigger of [...this.#triggers.values()]) if (trigger.class === path) this.deleteTrigger(trigger);
    if (this.#dropping.has(path)) this.#delete(DROPPING_PREFIX + path);
  }

  putEdgeType(type: EdgeType): void {
    this.#edgeTypes.set(type.name, type);
    this.#put(EDGE_TYPE_PREFIX + type.name, type);
  }

  deleteEdgeType(name: string): void {
    this.#edgeTypes.delete(name);
    this.#delete(EDGE_TYPE_PREFIX + name);
  }

  putSubscription(subscription: SubscriptionDefinition): void {
    this.#subscriptions.set(subscription.name, subscription);
    this.#put(SUBSCRIPTION_PREFIX + subscription.name, subscription);
  }

  deleteSubscription(name: string): void {
    if (this.#subscriptions.delete(name)) this.#delete(SUBSCRIPTION_PREFIX + name);
  }

  putTrigger(trigger: TriggerDefinition): void {
    this.#triggers.set(triggerName(trigger), trigger);
    this.#put(TRIGGER_PREFIX + triggerName(trigger), trigger);
  }

  deleteTrigger(trigger: Pick<TriggerDefinition, "class" | "name">): void {
    this.#triggers.delete(triggerName(trigger));
    this.#delete(TRIGGER_PREFIX + triggerName(trigger));
  }

  /**
   * Marks the class as about to be dropped. It takes no objects after all controllers know the mark. The mark ends with
   * the lease of the controller that made it.
   */
  markDropping(path: string): void {
    const mark = this.#dropping.get(path);
    if (mark?.lease === this.#lease) return;
    if (mark !== undefined)
      throw new AppError("conflict", `[Valid] class ${path} is just being dropped by somebody else.`);
    this.#marks.set(DROPPING_PREFIX + path, { cid: this.requireClass(path).cid });
  }

  unmarkDropping(path: string): void {
    if (this.#dropping.get(path)?.lease === this.#lease) this.#delete(DROPPING_PREFIX + path);
  }

  /** Fails unless the mark has existed without a gap, and still exists when the change is written. */
  requireMark(path: string): void {
    const mark = this.#dropping.get(path);
    if (mark?.lease !== this.#lease)
      throw new AppError("unavailable", `Dropping the class ${path} was interrupted: nothing was changed, try again.`);
    this.#conditions.push({ key: DROPPING_PREFIX + path, revision: mark.revision });
  }

  /**
   * Undefined when nothing changed. The counter comes last, so a controller that has seen it has seen the whole change.
   */
  request(change: string): KvTxn | undefined {
    const operations: KvOperation[] = [...this.#deletes].map((key) => ({ kind: "delete", key }));
    for (const [key, value] of this.#puts) operations.push({ kind: "put", key, value: encodeJson(value) });
    for (const [key, value] of this.#marks)
      operations.push({ kind: "put", key, value: encodeJson(value), lease: this.#lease });
    if (operations.length === 0) return undefined;
    const counter = { nextCid: this.#nextCid, nextColumn: this.#nextColumn, change };
    return {
      if: [{ key: COUNTER_KEY, revision: this.#counterRevision }, ...this.#conditions],
      then: [...operations, { kind: "put", key: COUNTER_KEY, value: encodeJson(counter) }],
    };
  }

  #put(key: string, value: unknown): void {
    this.#deletes.delete(key);
    this.#puts.set(key, value);
  }

  #delete(key: string): void {
    this.#puts.delete(key);
    this.#deletes.add(key);
  }
}
