import { isAppError } from "../../../common/errors.ts";
import { TRIGGER_ORDER_OBJECTS } from "../../../common/limits.ts";
import type { Controllers } from "../../store/journal/index.ts";
import { triggerName, type ClassTriggers, type TriggerDefinition } from "../objects/index.ts";
import { systemPrincipal, type Principal } from "../permissions/index.ts";
import type { StoredTask, StoredTasks } from "./stored-tasks.ts";
import type { TriggerQueues } from "./trigger-queues.ts";
import { queueOf, type TriggerTask } from "./trigger-task.ts";

interface Dependencies {
  readonly objects: Pick<ClassTriggers, "triggers" | "triggerAt">;
  readonly storedTasks: StoredTasks;
  readonly queues: Pick<TriggerQueues, "scan" | "ready" | "resume">;
  readonly ospaceOf: (tenant: string) => Promise<string>;
  readonly controllers: Pick<Controllers, "own">;
}

/** Resumes stored changes that wait for triggers. Safe on several controllers. */
export class TaskResumption {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /**
   * Resumes the waiting changes of owners for which `isMine` is true, if they have no unfinished earlier change. This
   * controller becomes the owner of all of these waiting changes. Changes for disabled triggers keep their owner; those
   * for removed triggers are removed.
   */
  async resume(tenant: string, isMine: (owner: string) => boolean): Promise<void> {
    const { queues, storedTasks, ospaceOf, controllers } = this.#with;
    const platform = systemPrincipal(tenant, await ospaceOf(tenant), "");
    await queues.scan(async () => {
      for await (const page of storedTasks.waiting(tenant)) {
        const tasks: TriggerTask[] = [];
        for (const kept of page.filter(({ owner }) => isMine(owner))) {
          const task = await this.#taskOf(kept, platform);
          if (task === undefined) await storedTasks.remove(kept);
          else if (!task.trigger.disabled) tasks.push(await this.#claimed(task, kept.owner));
        }
        // In the meantime another controller may have claimed them, because it resumed earlier changes of the same
        // objects.
        const ready = await storedTasks.ofOwner(await queues.ready(tasks), controllers.own);
        const later = await this.#claimAfter(ready);
        for (const task of ready) queues.resume(task);
        for (const task of await queues.ready(later)) queues.resume(task);
      }
    });
  }

  /**
   * Claims the later changes of the same objects for this controller, so that one controller runs all changes of an
   * object. No other controller starts them in the meantime, because earlier changes still wait.
   */
  async #claimAfter(tasks: readonly TriggerTask[]): Promise<readonly TriggerTask[]> {
    const claimed: TriggerTask[] = [];
    const [first] = tasks;
    if (first === undefined) return claimed;
    const { tenant } = first.event;
    const ids = [...new Set(tasks.map(({ event }) => event.id))];
    const queues = new Map(tasks.map((task) => [queueOf(task), task]));
    for (let from = 0; from < ids.length; from += TRIGGER_ORDER_OBJECTS)
      for await (const { event, trigger, owner } of this.#with.storedTasks.waitingOf(
        tenant,
        ids.slice(from, from + TRIGGER_ORDER_OBJECTS),
      )) {
        const before = queues.get(queueOf({ event, trigger }));
        if (before !== undefined && before.event.timeMs < event.timeMs)
          claimed.push(await this.#claimed({ event, trigger: before.trigger }, owner));
      }
    return claimed;
  }

  /**
   * Makes this controller the owner of the stored change. Call before the run, because the run may remove the stored
   * change.
   */
  async #claimed(task: TriggerTask, owner: string): Promise<TriggerTask> {
    const { own } = this.#with.controllers;
    if (owner !== own) await this.#with.storedTasks.put([task], { state: "waiting", owner: own });
    return task;
  }

  /**
   * The task with the trigger version that applied at the time of the change. If the change has no owner, because a
   * user set it to waiting again, the current version applies. `undefined` if the trigger was removed.
   */
  async #taskOf({ event, trigger: named, owner }: StoredTask, platform: Principal): Promise<TriggerTask | undefined> {
    const { objects } = this.#with;
    const version = event.triggers?.find((one) => triggerName(one) === triggerName(named));
    if (version !== undefined && owner !== "") {
      const trigger = await objects.triggerAt(platform, version);
      return trigger && { event, trigger };
    }
    const trigger = await this.#present(platform, named);
    if (trigger === undefined) return undefined;
    const now = { class: trigger.class, name: trigger.name, atMs: trigger.modifiedAtMs };
    const others = (event.triggers ?? []).filter((one) => one !== version);
    return { event: { ...event, triggers: [...others, now] }, trigger };
  }

  async #present(platform: Principal, named: Pick<TriggerDefinition, "class" | "name">) {
    try {
      const triggers = await this.#with.objects.triggers(platform, named.class);
      return triggers.find(({ name }) => name === named.name);
    } catch (error) {
      if (isAppError(error, "not_found")) return undefined;
      throw error;
    }
  }
}
