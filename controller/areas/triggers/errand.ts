import { objectOf, triggerName, type ObjectChangeEvent, type TriggerDefinition } from "../objects/index.ts";

/** One change for one trigger. */
export interface Errand {
  readonly event: ObjectChangeEvent;
  readonly trigger: TriggerDefinition;
}

/** An errand by its names. */
export interface Named {
  readonly event: Pick<ObjectChangeEvent, "tenant" | "class" | "id" | "timeMs" | "action">;
  readonly trigger: Pick<TriggerDefinition, "class" | "name">;
}

/** Changes of an errand's object that are earlier, not over, and for the same trigger. */
export interface Earlier {
  /** Those that are kept durably. */
  readonly kept: readonly Named[];
  /** Another controller has one that it did not deliver yet. */
  readonly isElsewhere: boolean;
}

/** Names the trigger within all tenants. */
export function nameOf({ event, trigger }: Named): string {
  return `${event.tenant} ${triggerName(trigger)}`;
}

/** Names the changes of one object for one trigger. */
export function laneOf(named: Named): string {
  return `${nameOf(named)} ${objectOf(named.event)}`;
}

export function keyOf(named: Named): string {
  return [laneOf(named), named.event.timeMs, named.event.action].join(" ");
}
