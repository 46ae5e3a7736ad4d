import { AppError, isAppError } from "../../../common/errors.ts";
import { TRIGGER_RUN_MAX_MS } from "../../../common/limits.ts";
import type { Row, Value } from "../../../common/value.ts";
import type { ScriptEngine, ScriptHost } from "../../scripting/index.ts";
import { triggerName, type TriggerDefinition, type TriggeredWrite, type TriggerOutcome } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { withUntouched } from "./untouched.ts";

export interface RunOptions {
  readonly engine: Pick<ScriptEngine, "run">;
  readonly host: ScriptHost;
  /** The author with the current rights, and the chain of triggers that led to this run. */
  readonly principal: Principal;
}

/** `isRefused`: the script returned `false`. */
export interface RunOutcome extends TriggerOutcome {
  readonly isRefused: boolean;
}

/** The parts of a trigger that determine how its script runs. */
export type TriggerText = Pick<TriggerDefinition, "class" | "name" | "text" | "language">;

/** Code before and after the script. `begin` is on the first line of the script, so its line numbers stay the same. */
const FRAMES = {
  lua: { begin: "RETURN=(function() ", check: "do return end ", end: "\nend)()" },
  javascript: { begin: "var RETURN=(function(){", check: "return;", end: "\n})()" },
} as const;

/** Runs the script once. Throws the errors of the script as the engine reports them. */
export async function runTrigger(trigger: TriggerText, write: TriggeredWrite, of: RunOptions): Promise<RunOutcome> {
  const { begin, end } = FRAMES[trigger.language];
  const { action, id, object, old } = write;
  const about = { id, class: write.class };
  const { results } = await of.engine.run(
    {
      ...callOf(trigger, of.principal),
      source: begin + trigger.text + end,
      globals: {
        OBJECT: { ...object, ...about },
        ACTION: action,
        DATACHANGE: false,
        ...(old && { OLD: { ...old, ...about } }),
      },
      results: ["OBJECT", "DATACHANGE", "RETURN"],
    },
    of.host,
  );
  const left = objectOf(results["OBJECT"], trigger);
  return {
    object: trigger.language === "lua" ? withUntouched({ ...object, ...about }, left) : left,
    announced: results["DATACHANGE"] === true,
    isRefused: results["RETURN"] === false,
  };
}

/** Checks the syntax of the script without running it. Throws `AppError("syntax")` if it is wrong. */
export async function checkTrigger(trigger: TriggerText, of: RunOptions): Promise<void> {
  const { begin, check, end } = FRAMES[trigger.language];
  const source = begin + check + trigger.text + end;
  const call = { ...callOf(trigger, of.principal), kind: "serverjs" } as const;
  await of.engine.run({ ...call, source, globals: {}, results: [] }, of.host);
}

/** True if the script did not cause the error, so the same run may succeed later. */
export function mayRunAgain(error: unknown): boolean {
  return isAppError(error, "unavailable", "limited", "cancelled", "unknown_outcome");
}

function callOf(trigger: TriggerText, { tenant, user, scriptDepth = 0 }: Principal) {
  return {
    tenant,
    kind: "trigger",
    user,
    language: trigger.language,
    name: triggerName(trigger),
    timeoutMs: TRIGGER_RUN_MAX_MS,
    depth: scriptDepth,
    owner: user,
  } as const;
}

function objectOf(value: Value | undefined, trigger: TriggerText): Row {
  if (typeof value === "object" && value !== null && (!Array.isArray(value) || value.length === 0))
    return { ...(value as Row) };
  throw new AppError("invalid", `The trigger ${triggerName(trigger)} left no OBJECT.`);
}
