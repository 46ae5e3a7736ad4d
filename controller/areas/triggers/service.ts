import { AppError } from "../../../common/errors.ts";
import { revisionOf, type Expected } from "../../../common/revisions.ts";
import { listed } from "../../../common/text/listed.ts";
import { TRIGGER_ATTEMPTS_MAX, TRIGGER_TEXT_MAX_BYTES } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import { counted } from "../../../common/text/counted.ts";
import type { Runtime } from "../../runtime.ts";
import type { Controllers } from "../../store/journal/index.ts";
import {
  triggerName,
  triggerStamp,
  type ClassTriggers,
  type ObjectChange,
  type ObjectChangeEvent,
  type Objects,
  type ObjectTriggers,
  type TriggerDefinition,
  type TriggeredWrite,
  type TriggerOutcome,
} from "../objects/index.ts";
import {
  allows,
  requireAllOwnGrants,
  requireDefining,
  requirePermission,
  systemPrincipal,
  type Principal,
} from "../permissions/index.ts";
import type { ConsoleLogService } from "../consolelog/index.ts";
import { TaskResumption } from "./resuming.ts";
import { TriggerRunner, type RunnerDependencies } from "./runner.ts";
import { StoredTasks } from "./stored-tasks.ts";
import type { TriggerTask } from "./trigger-task.ts";
import { TriggerQueues } from "./trigger-queues.ts";
import { TriggerLog } from "./log.ts";
import { ChangeOrder } from "./order.ts";
import { listing, readTrigger, type TriggerInput, type TriggerListing } from "./wire.ts";

export interface TriggerDependencies extends RunnerDependencies {
  readonly objects: Objects & ClassTriggers;
  readonly ospaceOf: (tenant: string) => Promise<string>;
  readonly controllers: Controllers;
  readonly runtime: Runtime;
  readonly logs: Pick<ConsoleLogService, "append">;
  /** Passes changes to the subscribers of notifications. */
  readonly announce: (changes: readonly ObjectChange[]) => void;
}

/** Triggers of classes. They are stored in the definitions of the classes and run before or after writes of objects. */
export class TriggerService implements ObjectTriggers {
  readonly #with: TriggerDependencies;
  readonly #log: TriggerLog;
  readonly #storedTasks: StoredTasks;
  readonly #queues: TriggerQueues;
  readonly #runner: TriggerRunner;
  readonly #resumption: TaskResumption;

  constructor(dependencies: TriggerDependencies) {
    const { objects, runtime, ospaceOf, controllers, logs } = dependencies;
    this.#with = dependencies;
    const log = (this.#log = new TriggerLog({ logs, runtime }));
    this.#runner = new TriggerRunner({ ...dependencies, log });
    const storedTasks = (this.#storedTasks = new StoredTasks({ objects, ospaceOf }));
    const order = new ChangeOrder({ objects, storedTasks, ospaceOf, clock: runtime.clock });
    const queues = (this.#queues = new TriggerQueues({
      runtime,
      run: (task) => this.#runAfter(task),
      earlier: (tasks) => order.earlier(tasks),
      keep: (tasks) => storedTasks.put(tasks, { state: "waiting", owner: controllers.own }),
      done: (task) => storedTasks.remove(task),
      failed: (task, error) => this.#fail(task, error),
      takeUp: (tenant) => this.#resumption.resume(tenant, (owner) => owner === controllers.own),
    }));
    this.#resumption = new TaskResumption({ objects, storedTasks, queues, ospaceOf, controllers });
  }

  /** Warning about the triggers that stop if the user is removed, as far as the principal may see them. */
  async endsWith(principal: Principal, username: string): Promise<readonly string[]> {
    requirePermission(principal, "users:write");
    if (!allows(principal, "triggers:read")) return [];
    const own = (await this.#with.objects.triggersBy(principal, username)).map(triggerName);
    return own.length === 0 ? [] : [`Triggers stop until another user saves them: ${listed(own)}.`];
  }

  /** Triggers of this class only, without its subclasses. */
  async list(principal: Principal, path: string): Promise<TriggerListing> {
    requirePermission(principal, "triggers:read");
    const name = path.replace(/\/+$/, "");
    return listing(name, await this.#with.objects.triggers(principal, name));
  }

  /**
   * Inserts or replaces a trigger; the caller becomes its author. When it resolves, every controller runs the trigger.
   * Throws `AppError("syntax")` if the text does not parse. Returns the revision of the trigger.
   */
  async put(principal: Principal, input: TriggerInput, expected?: Expected): Promise<string> {
    requirePermission(principal, "triggers:write");
    const trigger = readTrigger(input);
    requireDefining(principal, trigger.class);
    requireAllOwnGrants(principal);
    if (Buffer.byteLength(trigger.text) > TRIGGER_TEXT_MAX_BYTES)
      throw new AppError("too_large", `A trigger has at most ${TRIGGER_TEXT_MAX_BYTES} bytes.`, {
        details: { limit: "TRIGGER_TEXT_MAX_BYTES" },
      });
    await this.#runner.check(trigger, principal);
    return revisionOf(triggerStamp(await this.#with.objects.putTrigger(principal, trigger, expected)));
  }

  /** Removes a trigger. When it resolves, no controller runs the trigger any more. */
  async remove(
    principal: Principal,
    trigger: { readonly class: string; readonly name: string },
    expected?: Expected,
  ): Promise<void> {
    requirePermission(principal, "triggers:write");
    const named = { ...trigger, class: trigger.class.replace(/\/+$/, "") };
    await this.#with.objects.dropTrigger(principal, named, expected);
  }

  async before(
    principal: Principal,
    triggers: readonly TriggerDefinition[],
    write: TriggeredWrite,
  ): Promise<TriggerOutcome> {
    let { object } = write;
    let announced = false;
    for (const trigger of triggers) {
      const { author } = await this.#runner.author(trigger, principal);
      if (author === undefined) continue;
      const outcome = await this.#runner.run(trigger, author, { ...write, object });
      object = outcome.object;
      announced ||= outcome.announced;
    }
    return { object, announced };
  }

  async after(
    events: readonly ObjectChangeEvent[],
    triggersOf: (event: ObjectChangeEvent) => Promise<readonly TriggerDefinition[]>,
  ): Promise<void> {
    const tasks: TriggerTask[] = [];
    for (const event of events) for (const trigger of await triggersOf(event)) tasks.push({ event, trigger });
    await this.#queues.take(tasks);
  }

  /** Resumes waiting changes that have no owner, or whose owner is this controller or one that no longer runs. */
  async maintain(tenant: string): Promise<void> {
    const { objects, ospaceOf, controllers } = this.#with;
    await objects.followTriggers(systemPrincipal(tenant, await ospaceOf(tenant), ""));
    await this.#resumption.resume(
      tenant,
      (owner) => owner === "" || owner === controllers.own || !controllers.has(owner),
    );
  }

  /** Resolves when all messages of triggers so far are stored, or could not be stored. */
  settled(): Promise<void> {
    return this.#log.settled();
  }

  async close(): Promise<void> {
    await this.#queues.close();
    await this.#log.settled();
  }

  async #runAfter({ event, trigger }: TriggerTask): Promise<void> {
    const { id, tenant, steps = 0, traceparent } = event;
    const ospace = await this.#with.ospaceOf(tenant);
    const chain = {
      id: Buffer.from(this.#with.runtime.random.bytes(12)).toString("hex"),
      steps: steps + 1,
      holds: await this.#keyOf(event, ospace),
    };
    const { author, why } = await this.#runner.author(trigger, {
      ...systemPrincipal(tenant, ospace, traceparent),
      chain,
    });
    if (author === undefined) throw new AppError("denied", `It does not run: ${why}`);
    const write = writeOf(event, await this.#objectOf(event, author));
    const outcome = await this.#runner.run(trigger, author, write);
    if (outcome.announced && event.whole !== undefined)
      this.#with.announce([{ ...event, ...event.whole, announced: true }]);
    this.#with.runtime.log.debug({ trigger: triggerName(trigger), id }, "a trigger ran after a change");
  }

  /** Key of the object whose change the trigger runs for. The chain of the trigger must not write this object. */
  async #keyOf(
    { class: path, id, tenant, traceparent }: ObjectChangeEvent,
    ospace: string,
  ): Promise<readonly string[]> {
    const catalog = await this.#with.objects.catalog(systemPrincipal(tenant, ospace, traceparent));
    const view = catalog.get(path);
    return view === undefined ? [] : [`${view.cid}:${id.slice(id.indexOf(":") + 1)}`];
  }

  /** The object from the event. If the event does not contain it, the current object. */
  async #objectOf({ whole, class: path, id }: ObjectChangeEvent, author: Principal): Promise<Row> {
    if (whole !== undefined) return whole.object.values;
    const [now] = await this.#with.objects.unrestricted.get(author, [{ id, class: path }]);
    return now?.values ?? {};
  }

  async #fail(task: TriggerTask, error: string): Promise<void> {
    const { event, trigger } = task;
    const attempts = TRIGGER_ATTEMPTS_MAX;
    await this.#storedTasks.put([task], { state: "failed", owner: "", attempts, error });
    const ospace = await this.#with.ospaceOf(event.tenant);
    const log = this.#log.begin();
    log.fail(`The change of ${event.id} is set aside after ${counted(attempts, "run")} that failed: ${error}`);
    this.#log.end({ tenant: event.tenant, ospace, traceparent: event.traceparent }, triggerName(trigger), log);
  }
}

/** The change in the form that the trigger sees. `old`: the object with the former values of the changed columns. */
function writeOf({ action, class: path, id, whole }: ObjectChangeEvent, object: Row): TriggeredWrite {
  const write = { action, class: path, id, object };
  if (action === "DELETE") return { ...write, old: object };
  if (action === "INSERT" || whole?.before === undefined) return { ...write, old: undefined };
  const old = Object.entries({ ...object, ...whole.before.values }).filter(([, value]) => value !== null);
  return { ...write, old: Object.fromEntries(old) };
}
