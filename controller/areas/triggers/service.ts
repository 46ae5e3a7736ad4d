import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { listed } from "../../../common/text/listed.ts";
import {
  TRIGGER_ATTEMPTS_MAX,
  TRIGGER_ORDER_OBJECTS,
  TRIGGER_STOPPED_TOLD_MS,
  TRIGGER_TEXT_MAX_BYTES,
} from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import { counted } from "../../../common/text/counted.ts";
import type { Runtime } from "../../runtime.ts";
import type { BoundHost, ScriptEngine, ScriptHost } from "../../scripting/index.ts";
import type { Controllers } from "../../store/journal/index.ts";
import {
  triggerName,
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
  isUnrestricted,
  requireAllOwnGrants,
  requireDefining,
  requirePermission,
  systemPrincipal,
  type Principal,
} from "../permissions/index.ts";
import type { ConsoleLogService, RunLog } from "../consolelog/index.ts";
import { audited, type RunTrail } from "../audit/index.ts";
import { StoredTasks, type StoredTask } from "./stored-tasks.ts";
import { queueOf, type TriggerTask } from "./trigger-task.ts";
import { TriggerQueues } from "./trigger-queues.ts";
import { TriggerLog } from "./log.ts";
import { ChangeOrder } from "./order.ts";
import { checkTrigger, mayRunAgain, runTrigger, type RunOutcome } from "./run.ts";
import { listing, readTrigger, type TriggerInput, type TriggerListing } from "./wire.ts";

export interface TriggerDependencies {
  readonly objects: Objects & ClassTriggers;
  /** Absent: this controller runs no texts and stores none. */
  readonly engine: Pick<ScriptEngine, "run"> | undefined;
  /** Host functions available to the principal's texts; `log` receives their messages. */
  readonly host: (principal: Principal, log: RunLog) => BoundHost;
  readonly audit: Pick<RunTrail, "record">;
  /** The user with his current rights; `undefined` if he does not exist or is not active. */
  readonly author: (tenant: string, user: string) => Promise<Principal | undefined>;
  readonly ospaceOf: (tenant: string) => Promise<string>;
  readonly controllers: Controllers;
  readonly runtime: Runtime;
  readonly logs: Pick<ConsoleLogService, "append">;
  /** Passes changes to the subscribers of notifications. */
  readonly announce: (changes: readonly ObjectChange[]) => void;
}

/** Triggers of classes: stored in the definitions of the classes, run before and after writes of their objects. */
export class TriggerService implements ObjectTriggers {
  readonly #with: TriggerDependencies;
  readonly #log: TriggerLog;
  readonly #storedTasks: StoredTasks;
  readonly #queues: TriggerQueues;
  /** Time at which each stopped trigger last reported that it is stopped. */
  readonly #stopped = new Map<string, number>();

  constructor(dependencies: TriggerDependencies) {
    const { objects, runtime, ospaceOf, controllers, logs } = dependencies;
    this.#with = dependencies;
    this.#log = new TriggerLog({ logs, runtime });
    this.#storedTasks = new StoredTasks({ objects, ospaceOf });
    const order = new ChangeOrder({ objects, storedTasks: this.#storedTasks, ospaceOf, clock: runtime.clock });
    this.#queues = new TriggerQueues({
      runtime,
      run: (task) => this.#runAfter(task),
      earlier: (tasks) => order.earlier(tasks),
      keep: (tasks) => this.#storedTasks.put(tasks, { state: "waiting", owner: controllers.own }),
      done: (task) => this.#storedTasks.remove(task),
      failed: (task, error) => this.#fail(task, error),
      takeUp: (tenant) => this.#takeUp(tenant, (owner) => owner === controllers.own),
    });
  }

  /** Consequences of deleting the user: the triggers that would stop, as far as the principal may see them. */
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
   * Throws `AppError("syntax")` if the text does not parse.
   */
  async put(principal: Principal, input: TriggerInput): Promise<void> {
    requirePermission(principal, "triggers:write");
    const trigger = readTrigger(input);
    requireDefining(principal, trigger.class);
    requireAllOwnGrants(principal);
    if (Buffer.byteLength(trigger.text) > TRIGGER_TEXT_MAX_BYTES)
      throw new AppError("too_large", `A trigger has at most ${TRIGGER_TEXT_MAX_BYTES} bytes.`, {
        details: { limit: "TRIGGER_TEXT_MAX_BYTES" },
      });
    await checkTrigger(trigger, { engine: this.#engine(), host: NO_HOST, principal });
    await this.#with.objects.putTrigger(principal, trigger);
  }

  /** When it resolves, no controller runs the trigger. */
  async remove(principal: Principal, trigger: { readonly class: string; readonly name: string }): Promise<void> {
    requirePermission(principal, "triggers:write");
    await this.#with.objects.dropTrigger(principal, { ...trigger, class: trigger.class.replace(/\/+$/, "") });
  }

  async before(
    principal: Principal,
    triggers: readonly TriggerDefinition[],
    write: TriggeredWrite,
  ): Promise<TriggerOutcome> {
    let { object } = write;
    let announced = false;
    for (const trigger of triggers) {
      const { author } = await this.#author(trigger, principal);
      if (author === undefined) continue;
      const outcome = await this.#said(trigger, author, (log) =>
        this.#run(trigger, { ...write, object }, { author, log }),
      );
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

  /** Continues changes that wait for triggers and that no other running controller owns. */
  async maintain(tenant: string): Promise<void> {
    const { objects, ospaceOf, controllers } = this.#with;
    await objects.followTriggers(systemPrincipal(tenant, await ospaceOf(tenant), ""));
    await this.#takeUp(tenant, (owner) => owner === "" || owner === controllers.own || !controllers.has(owner));
  }

  /** Continues waiting changes that have no earlier change. This controller then owns the others as well. */
  async #takeUp(tenant: string, isMine: (owner: string) => boolean): Promise<void> {
    const platform = systemPrincipal(tenant, await this.#with.ospaceOf(tenant), "");
    await this.#queues.scan(async () => {
      for await (const page of this.#storedTasks.waiting(tenant)) {
        const tasks: TriggerTask[] = [];
        for (const kept of page.filter(({ owner }) => isMine(owner))) {
          const task = await this.#errandOf(kept, platform);
          if (task === undefined) await this.#storedTasks.remove(kept);
          else if (!task.trigger.disabled) tasks.push(await this.#claimed(task, kept.owner));
        }
        // Another controller may have claimed them when it resumed the changes before them.
        const ready = await this.#storedTasks.ofOwner(await this.#queues.ready(tasks), this.#with.controllers.own);
        const later = await this.#claimAfter(ready);
        for (const task of ready) this.#queues.resume(task);
        for (const task of await this.#queues.ready(later)) this.#queues.resume(task);
      }
    });
  }

  /**
   * Claims the later changes of the same objects for this controller, so that they do not move one by one. No other
   * controller starts them in the meantime, because the changes before them still wait.
   */
  async #claimAfter(tasks: readonly TriggerTask[]): Promise<readonly TriggerTask[]> {
    const claimed: TriggerTask[] = [];
    const [first] = tasks;
    if (first === undefined) return claimed;
    const { tenant } = first.event;
    const ids = [...new Set(tasks.map(({ event }) => event.id))];
    const queues = new Map(tasks.map((task) => [queueOf(task), task]));
    for (let from = 0; from < ids.length; from += TRIGGER_ORDER_OBJECTS)
      for await (const { event, trigger, owner } of this.#storedTasks.waitingOf(
        tenant,
        ids.slice(from, from + TRIGGER_ORDER_OBJECTS),
      )) {
        const before = queues.get(queueOf({ event, trigger }));
        if (before !== undefined && before.event.timeMs < event.timeMs)
          claimed.push(await this.#claimed({ event, trigger: before.trigger }, owner));
      }
    return claimed;
  }

  /** Call before the run, because the run may remove the stored change. */
  async #claimed(task: TriggerTask, owner: string): Promise<TriggerTask> {
    const { own } = this.#with.controllers;
    if (owner !== own) await this.#storedTasks.put([task], { state: "waiting", owner: own });
    return task;
  }

  /** Resolves when all messages of triggers so far are stored. */
  settled(): Promise<void> {
    return this.#log.settled();
  }

  async close(): Promise<void> {
    await this.#queues.close();
    await this.#log.settled();
  }

  /** `undefined` if the trigger was removed. The current trigger runs a change that a user set to waiting again. */
  async #errandOf({ event, trigger: named, owner }: StoredTask, platform: Principal): Promise<TriggerTask | undefined> {
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

  async #runAfter({ event, trigger }: TriggerTask): Promise<void> {
    const { id, tenant, steps = 0, traceparent } = event;
    const ospace = await this.#with.ospaceOf(tenant);
    const chain = {
      id: Buffer.from(this.#with.runtime.random.bytes(12)).toString("hex"),
      steps: steps + 1,
      holds: await this.#keyOf(event, ospace),
    };
    const { author, why } = await this.#author(trigger, { ...systemPrincipal(tenant, ospace, traceparent), chain });
    if (author === undefined) throw new AppError("denied", `It does not run: ${why}`);
    const write = writeOf(event, await this.#objectOf(event, author));
    const outcome = await this.#said(trigger, author, (log) => this.#run(trigger, write, { author, log }));
    if (outcome.announced && event.whole !== undefined)
      this.#with.announce([{ ...event, ...event.whole, announced: true }]);
    this.#with.runtime.log.debug({ trigger: triggerName(trigger), id }, "a trigger ran after a change");
  }

  /** Key of the object in the write queue. The trigger must not write this object. */
  async #keyOf(
    { class: path, id, tenant, traceparent }: ObjectChangeEvent,
    ospace: string,
  ): Promise<readonly string[]> {
    const catalog = await this.#with.objects.catalog(systemPrincipal(tenant, ospace, traceparent));
    const view = catalog.get(path);
    return view === undefined ? [] : [`${view.cid}:${id.slice(id.indexOf(":") + 1)}`];
  }

  /** The object as it is in the event; otherwise as it is now. */
  async #objectOf({ whole, class: path, id }: ObjectChangeEvent, author: Principal): Promise<Row> {
    if (whole !== undefined) return whole.object.values;
    const [now] = await this.#with.objects.get(author, [{ id, class: path }]);
    return now?.values ?? {};
  }

  async #run(
    trigger: TriggerDefinition,
    write: TriggeredWrite,
    { author, log }: { readonly author: Principal; readonly log: RunLog },
  ): Promise<RunOutcome> {
    const host = this.#with.host(author, log);
    const run = {
      principal: author,
      kind: "TRIGGER",
      object: triggerName(trigger),
      permission: "triggers:write",
      host,
    } as const;
    const outcome = await audited(this.#with.audit, run, (recorded) =>
      runTrigger(trigger, write, { engine: this.#engine(), host: recorded, principal: author }),
    );
    if (outcome.isRefused && trigger.before)
      throw new AppError("invalid", `The trigger ${triggerName(trigger)} refused the write.`);
    return outcome;
  }

  #engine(): Pick<ScriptEngine, "run"> {
    const { engine } = this.#with;
    if (engine === undefined) throw new AppError("unavailable", "No trigger is run here.");
    return engine;
  }

  /** Runs the work with a log; a failure becomes an entry of that log. */
  async #said<T>(trigger: TriggerDefinition, author: Principal, work: (log: RunLog) => Promise<T>): Promise<T> {
    const name = triggerName(trigger);
    const log = this.#log.begin();
    try {
      return await work(log);
    } catch (error) {
      log.fail(errorText(error));
      throw mayRunAgain(error) || !isAppError(error) ? error : refusal(error, name);
    } finally {
      this.#log.end(author, name, log);
    }
  }

  /** Returns the author as the principal of the run. Without an author the trigger is stopped, and its log says so. */
  async #author(trigger: TriggerDefinition, by: Principal): Promise<Runner> {
    const { tenant, traceparent, chain, scriptDepth } = by;
    const { author, why } = runnerOf(trigger, await this.#with.author(tenant, trigger.author));
    if (author !== undefined)
      return { author: { ...author, traceparent, ...(chain && { chain }), ...(scriptDepth && { scriptDepth }) } };
    this.#standsStill(trigger, by, why);
    return { why };
  }

  #standsStill(trigger: TriggerDefinition, by: Principal, why: string): void {
    const name = triggerName(trigger);
    const key = `${by.tenant} ${name}`;
    const nowMs = this.#with.runtime.clock.nowMs();
    if (nowMs - (this.#stopped.get(key) ?? -Infinity) < TRIGGER_STOPPED_TOLD_MS) return;
    this.#stopped.set(key, nowMs);
    const log = this.#log.begin();
    log.fail(`It does not run: ${why}`);
    this.#log.end(by, name, log);
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

/** The principal that runs a trigger, or the reason why the trigger does not run. */
type Runner =
  | { readonly author: Principal; readonly why?: undefined }
  | { readonly author?: undefined; readonly why: string };

/**
 * A trigger receives whole objects of its class and of the subclasses. Its author therefore needs unrestricted access
 * to all of them, as when the trigger was stored.
 */
function runnerOf({ author: name, class: path }: TriggerDefinition, author: Principal | undefined): Runner {
  if (author === undefined) return { why: `its author ${name} is not active.` };
  if (isUnrestricted(author, path)) return { author };
  return { why: `its author ${name} may not read and write all of ${path}, and of the classes below it, any more.` };
}

/** A text that is only checked makes no calls. */
const NO_HOST: ScriptHost = { call: () => Promise.reject(new AppError("unsupported", "Nothing is called here.")) };

function refusal({ message, details }: AppError, trigger: string): AppError {
  return new AppError("invalid", message, { details: { ...details, trigger } });
}

/** The change as the trigger sees it. `old`: the object with the former values in place of the changed ones. */
function writeOf({ action, class: path, id, whole }: ObjectChangeEvent, object: Row): TriggeredWrite {
  const write = { action, class: path, id, object };
  if (action === "DELETE") return { ...write, old: object };
  if (action === "INSERT" || whole?.before === undefined) return { ...write, old: undefined };
  const old = Object.entries({ ...object, ...whole.before.values }).filter(([, value]) => value !== null);
  return { ...write, old: Object.fromEntries(old) };
}
