import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { TRIGGER_STOPPED_TOLD_MS } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { BoundHost, ScriptEngine, ScriptHost } from "../../scripting/index.ts";
import { audited, type RunTrail } from "../audit/index.ts";
import type { RunLog } from "../consolelog/index.ts";
import { triggerName, type TriggerDefinition, type TriggeredWrite } from "../objects/index.ts";
import { isUnrestricted, type Principal } from "../permissions/index.ts";
import type { TriggerLog } from "./log.ts";
import { checkTrigger, mayRunAgain, runTrigger, type RunOutcome, type TriggerText } from "./run.ts";

export interface RunnerDependencies {
  /** Absent: this controller neither runs nor stores triggers. */
  readonly engine: Pick<ScriptEngine, "run"> | undefined;
  /** Host functions with the rights of the principal. `log` receives the messages of the run. */
  readonly host: (principal: Principal, log: RunLog) => BoundHost;
  readonly audit: Pick<RunTrail, "record">;
  /** The user with the current rights; `undefined` if the user does not exist or is not active. */
  readonly author: (tenant: string, user: string) => Promise<Principal | undefined>;
  readonly runtime: Pick<Runtime, "clock">;
}

/** The principal that runs a trigger, or the reason why the trigger does not run. */
type Runner =
  | { readonly author: Principal; readonly why?: undefined }
  | { readonly author?: undefined; readonly why: string };

/** Runs triggers with the rights of their authors, with an audit record and a log for each run. */
export class TriggerRunner {
  readonly #with: RunnerDependencies & { readonly log: TriggerLog };
  /** Time at which each stopped trigger last reported that it is stopped. */
  readonly #stopped = new Map<string, number>();

  constructor(dependencies: RunnerDependencies & { readonly log: TriggerLog }) {
    this.#with = dependencies;
  }

  /**
   * Checks the syntax of the script. `AppError("syntax")` if it is wrong; `unavailable` if this controller runs no
   * triggers.
   */
  async check(trigger: TriggerText, principal: Principal): Promise<void> {
    await checkTrigger(trigger, { engine: this.#engine(), host: NO_HOST, principal });
  }

  /**
   * Returns the trigger's author as principal of the run. If the author cannot run it, returns the reason and writes it
   * to the trigger's log, at most once per `TRIGGER_STOPPED_TOLD_MS`.
   */
  async author(trigger: TriggerDefinition, by: Principal): Promise<Runner> {
    const { tenant, traceparent, chain, scriptDepth } = by;
    const { author, why } = runnerOf(trigger, await this.#with.author(tenant, trigger.author));
    if (author !== undefined)
      return { author: { ...author, traceparent, ...(chain && { chain }), ...(scriptDepth && { scriptDepth }) } };
    this.#standsStill(trigger, by, why);
    return { why };
  }

  /**
   * Runs the trigger once. Every error is logged. If the script fails, or a script before the write refuses it, throws
   * `AppError("invalid")`. Errors for which `mayRunAgain` is true, and errors other than `AppError`, are thrown
   * unchanged.
   */
  async run(trigger: TriggerDefinition, author: Principal, write: TriggeredWrite): Promise<RunOutcome> {
    const name = triggerName(trigger);
    const log = this.#with.log.begin();
    try {
      return await this.#run(trigger, write, { author, log });
    } catch (error) {
      log.fail(errorText(error));
      throw mayRunAgain(error) || !isAppError(error) ? error : refusal(error, name);
    } finally {
      this.#with.log.end(author, name, log);
    }
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

  #standsStill(trigger: TriggerDefinition, by: Principal, why: string): void {
    const name = triggerName(trigger);
    const key = `${by.tenant} ${name}`;
    const nowMs = this.#with.runtime.clock.nowMs();
    if (nowMs - (this.#stopped.get(key) ?? -Infinity) < TRIGGER_STOPPED_TOLD_MS) return;
    this.#stopped.set(key, nowMs);
    const log = this.#with.log.begin();
    log.fail(`It does not run: ${why}`);
    this.#with.log.end(by, name, log);
  }
}

/**
 * The author as the one who runs the trigger. A trigger receives whole objects of its class and of all subclasses, so
 * its author needs unrestricted access to these. That was also required when the trigger was stored.
 */
function runnerOf({ author: name, class: path }: TriggerDefinition, author: Principal | undefined): Runner {
  if (author === undefined) return { why: `its author ${name} is not active.` };
  if (isUnrestricted(author, path)) return { author };
  return { why: `its author ${name} may not read and write all of ${path}, and of the classes below it, any more.` };
}

/** Host for a check of the syntax, which makes no calls. */
const NO_HOST: ScriptHost = { call: () => Promise.reject(new AppError("unsupported", "Nothing is called here.")) };

function refusal({ message, details }: AppError, trigger: string): AppError {
  return new AppError("invalid", message, { details: { ...details, trigger } });
}
