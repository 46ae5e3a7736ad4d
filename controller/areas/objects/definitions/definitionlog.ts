import { decodeStored } from "../../../store/format.ts";
import type { KvEntry, KvEvent } from "../../../store/kv.ts";
import type { EdgeType, TriggerDefinition } from "../types.ts";
import type { ClassDefinition, Counter, Definitions, DroppingMark, SubscriptionDefinition } from "./definition.ts";
import {
  CLASS_PREFIX,
  COUNTER_KEY,
  DROPPING_PREFIX,
  EDGE_TYPE_PREFIX,
  SUBSCRIPTION_PREFIX,
  TRIGGER_PREFIX,
} from "./draft.ts";

const RECENT_CHANGES = 256;

/** Merges entries and events of the key-value store into definitions, however a list and a watch overlap. */
export class DefinitionLog {
  readonly #revisions = new Map<string, number>();
  readonly #recent = new Set<string>();
  #classes = new Map<string, ClassDefinition>();
  #edgeTypes = new Map<string, EdgeType>();
  #dropping = new Map<string, DroppingMark>();
  #subscriptions = new Map<string, SubscriptionDefinition>();
  #triggers = new Map<string, TriggerDefinition>();
  #counter: Counter | undefined;
  #definitions: Definitions | undefined;
  #revision = 0;

  get revision(): number {
    return this.#revision;
  }

  get counterRevision(): number {
    return this.#revisions.get(COUNTER_KEY) ?? 0;
  }

  /** The current definitions; later changes do not alter the answer. */
  definitions(): Definitions {
    this.#definitions ??= {
      counter: this.#counter,
      counterRevision: this.counterRevision,
      classes: new Map(this.#classes),
      edgeTypes: new Map(this.#edgeTypes),
      dropping: new Map(this.#dropping),
      subscriptions: new Map(this.#subscriptions),
      triggers: new Map(this.#triggers),
    };
    return this.#definitions;
  }

  /** True if the change of that name is among the latest ones. */
  saw(change: string): boolean {
    return this.#recent.has(change);
  }

  /** Replaces everything by the entries read at `revision`. */
  replace(entries: readonly KvEntry[], revision: number): void {
    this.#revisions.clear();
    this.#classes.clear();
    this.#edgeTypes.clear();
    this.#dropping.clear();
    this.#subscriptions.clear();
    this.#triggers.clear();
    this.#counter = undefined;
    this.#definitions = undefined;
    for (const entry of entries) this.#take(entry);
    this.#revision = revision;
  }

  apply(events: readonly KvEvent[]): void {
    this.#definitions = undefined;
    for (const event of events) {
      if (event.kind === "put") this.#take(event.entry);
      else if (event.revision > (this.#revisions.get(event.key) ?? 0)) this.#forget(event.key);
      this.#revision = Math.max(this.#revision, event.kind === "put" ? event.entry.revision : event.revision);
    }
  }

  #take(entry: KvEntry): void {
    const { key } = entry;
    if (entry.revision <= (this.#revisions.get(key) ?? 0)) return;
    this.#revisions.set(key, entry.revision);
    if (key === COUNTER_KEY) this.#takeCounter(decodeStored<Counter>(entry.value));
    else if (key.startsWith(EDGE_TYPE_PREFIX))
      this.#edgeTypes.set(key.slice(EDGE_TYPE_PREFIX.length), decodeStored<EdgeType>(entry.value));
    else if (key.startsWith(SUBSCRIPTION_PREFIX))
      this.#subscriptions.set(key.slice(SUBSCRIPTION_PREFIX.length), decodeStored<SubscriptionDefinition>(entry.value));
    else if (key.startsWith(TRIGGER_PREFIX))
      this.#triggers.set(key.slice(TRIGGER_PREFIX.length), decodeStored<TriggerDefinition>(entry.value));
    else if (key.startsWith(DROPPING_PREFIX))
      this.#dropping.set(key.slice(DROPPING_PREFIX.length), { revision: entry.revision, lease: entry.lease });
    else if (key.startsWith(CLASS_PREFIX))
      this.#classes.set(key.slice(CLASS_PREFIX.length), decodeStored<ClassDefinition>(entry.value));
  }

  #takeCounter(counter: Counter): void {
    this.#counter = counter;
    this.#recent.add(counter.change);
    for (const oldest of this.#recent) {
      if (this.#recent.size <= RECENT_CHANGES) break;
      this.#recent.delete(oldest);
    }
  }

  #forget(key: string): void {
    this.#revisions.delete(key);
    if (key.startsWith(EDGE_TYPE_PREFIX)) this.#edgeTypes.delete(key.slice(EDGE_TYPE_PREFIX.length));
    else if (key.startsWith(SUBSCRIPTION_PREFIX)) this.#subscriptions.delete(key.slice(SUBSCRIPTION_PREFIX.length));
    else if (key.startsWith(TRIGGER_PREFIX)) this.#triggers.delete(key.slice(TRIGGER_PREFIX.length));
    else if (key.startsWith(DROPPING_PREFIX)) this.#dropping.delete(key.slice(DROPPING_PREFIX.length));
    else if (key.startsWith(CLASS_PREFIX)) this.#classes.delete(key.slice(CLASS_PREFIX.length));
  }
}
