import { objectOf, triggerName, type ObjectChangeEvent, type TriggerDefinition } from "../objects/index.ts";

/** One change that one trigger has to process. */
export interface TriggerTask {
  readonly event: ObjectChangeEvent;
  readonly trigger: TriggerDefinition;
}

/** A task, identified by its event and trigger. */
export interface Named {
  readonly event: Pick<ObjectChangeEvent, "tenant" | "class" | "id" | "timeMs" | "action">;
  readonly trigger: Pick<TriggerDefinition, "class" | "name">;
}

/** Unfinished earlier changes of the same object for the same trigger. */
export interface Earlier {
  /** Earlier changes that are stored durably. */
  readonly kept: readonly Named[];
  /** True if another controller has an earlier change that it has not delivered yet. */
  readonly isElsewhere: boolean;
}

/** Identifies the trigger across all tenants. */
export function nameOf({ event, trigger }: Named): string {
  return `${event.tenant} ${triggerName(trigger)}`;
}

/** Identifies the changes of one object for one trigger. */
export function queueOf(named: Named): string {
  return `${nameOf(named)} ${objectOf(named.event)}`;
}

export function keyOf(named: Named): string {
  return [queueOf(named), named.event.timeMs, named.event.action].join(" ");
}
