import { AppError } from "../../../common/errors.ts";
import { TRIGGER_EVENTS_AT_ONCE } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { Expected } from "../../../common/revisions.ts";
import type { Principal } from "../permissions/index.ts";
import { requireDefiner } from "./definitions/definers.ts";
import type { Definitions } from "./definitions/definition.ts";
import type { Draft } from "./definitions/draft.ts";
import { triggerName } from "./definitions/naming.ts";
import { dropTrigger, putTrigger, TRIGGER_SUBSCRIPTION, triggersAfter } from "./definitions/triggers.ts";
import { classNotFound } from "./definitions/views.ts";
import type { ClassTriggers } from "./interface.ts";
import type { OpenTenants } from "./opening.ts";
import type { TenantObjects } from "./tenant.ts";
import type {
  ChangeSubscription,
  ObjectChangeEvent,
  ObjectTriggers,
  TriggerDefinition,
  TriggerVersion,
} from "./types.ts";

interface TriggersOptions {
  readonly tenants: OpenTenants;
  readonly clock: Clock;
  /** Absent: no trigger runs. */
  readonly runner: ObjectTriggers | undefined;
}

/** Triggers as parts of class definitions. Also delivers changes to triggers. */
export class Triggers implements ClassTriggers {
  readonly #options: TriggersOptions;

  constructor(options: TriggersOptions) {
    this.#options = options;
  }

  async triggers(principal: Principal, path: string): Promise<readonly TriggerDefinition[]> {
    const { snapshot, readable } = await this.#options.tenants.reading(principal);
    const view = snapshot.get(path);
    if (view === undefined || !readable(view)) throw classNotFound(path);
    return [...snapshot.definitions.triggers.values()].filter((trigger) => trigger.class === path);
  }

  async triggersBy(principal: Principal, author: string): Promise<readonly TriggerDefinition[]> {
    const { snapshot, readable } = await this.#options.tenants.reading(principal);
    return [...snapshot.definitions.triggers.values()].filter((trigger) => {
      const view = snapshot.get(trigger.class);
      return trigger.author === author && view !== undefined && readable(view);
    });
  }

  async putTrigger(
    principal: Principal,
    trigger: Omit<TriggerDefinition, "author" | "modifiedAtMs">,
    expected?: Expected,
  ): Promise<TriggerDefinition> {
    requireDefiner(principal, trigger.class);
    const made = { ...trigger, author: principal.user, modifiedAtMs: this.#options.clock.nowMs() };
    let stored: TriggerDefinition = made;
    const { catalog, versions } = await this.#options.tenants.defining(principal);
    const name = triggerName(trigger);
    await versions.keep(catalog.current().definitions.triggers.get(name));
    let former: TriggerDefinition | undefined;
    await this.#changeTriggers(principal, (draft) => {
      former = draft.triggers.get(name);
      stored = putTrigger(draft, made, expected);
    });
    await versions.keep(former);
    return stored;
  }

  async dropTrigger(
    principal: Principal,
    trigger: Pick<TriggerDefinition, "class" | "name">,
    expected?: Expected,
  ): Promise<void> {
    requireDefiner(principal, trigger.class);
    await this.#changeTriggers(principal, (draft) => dropTrigger(draft, trigger, expected));
  }

  async followTriggers(principal: Principal): Promise<void> {
    this.attach(await this.#options.tenants.of(principal));
  }

  async triggerAt(principal: Principal, version: TriggerVersion): Promise<TriggerDefinition | undefined> {
    const { catalog, versions } = await this.#options.tenants.of(principal);
    const { definitions } = catalog.current();
    const trigger = await versions.find(version, definitions);
    return trigger && { ...trigger, disabled: isDisabled(trigger, definitions) };
  }

  async foreignChanges(principal: Principal): Promise<ReadonlyMap<string, number>> {
    const { changes } = await this.#options.tenants.of(principal);
    return changes.foreign();
  }

  /** When it resolves, every controller runs the changed triggers, and none runs the former ones. */
  async #changeTriggers(principal: Principal, edit: (draft: Draft) => void): Promise<void> {
    const { catalog, changes, versions } = await this.#options.tenants.defining(principal);
    const revision = await catalog.change(edit);
    this.attach({ changes, catalog, versions });
    if (await catalog.acknowledged(revision)) return;
    throw new AppError(
      "unavailable",
      "The trigger is changed, but another controller does not say that it knows. Try again.",
    );
  }

  /** Takes part in the delivery to triggers if there are any; otherwise ends it. */
  attach({ changes, catalog, versions }: Pick<TenantObjects, "changes" | "catalog" | "versions">): void {
    const { runner } = this.#options;
    const subscription = catalog.current().definitions.subscriptions.get(TRIGGER_SUBSCRIPTION);
    const isAttached = changes.isAttached(TRIGGER_SUBSCRIPTION);
    if (runner === undefined || isAttached === (subscription !== undefined)) return;
    if (subscription === undefined) return changes.detach(TRIGGER_SUBSCRIPTION);
    const triggersOf = async (event: ObjectChangeEvent): Promise<readonly TriggerDefinition[]> => {
      const current = catalog.current();
      const found: TriggerDefinition[] = [];
      for (const version of event.triggers ?? triggersAfter(current, event.class)) {
        const trigger = await versions.find(version, current.definitions);
        if (trigger !== undefined && !isDisabled(trigger, current.definitions)) found.push(trigger);
      }
      return found;
    };
    const deliver: ChangeSubscription["deliver"] = (events) => runner.after(events, triggersOf);
    changes.attach({ ...subscription, deliver, eventsAtOnce: TRIGGER_EVENTS_AT_ONCE });
  }
}

/** True when no enabled trigger has this name now, in any version. */
function isDisabled(trigger: TriggerDefinition, { triggers }: Pick<Definitions, "triggers">): boolean {
  return triggers.get(triggerName(trigger))?.disabled !== false;
}
