import { JSException, type JSValueHandle } from "quickjs-wasi";
import { SCRIPT_CALL_MAX_CHARACTERS, SCRIPT_CALLS_MAX, SCRIPT_OUTPUT_MAX_CHARACTERS } from "../../../common/limits.ts";
import { CallEnd } from "../../workers/index.ts";
import { eachOf } from "../each.ts";
import { steps, type Steps } from "../steps.ts";
import type { RunReport, ScriptFailure, ScriptInput, ScriptTask, ScriptThreadData } from "../task.ts";
import { Machine, prepareMachine, type PreparedMachine, UnhandledRejection } from "./machine.ts";
import { positionIn } from "./position.ts";

/** Runs JavaScript, each text in a machine of its own. */
export function javascriptTask({ functions }: ScriptThreadData): ScriptTask {
  let prepared: Promise<PreparedMachine> | undefined;
  return eachOf(async (input) => {
    const end = new CallEnd(input.line);
    const taken = steps(input.stepsMax);
    const machine = await Machine.open(await (prepared ??= prepareMachine(functions)), {
      call: limitedCalls(end),
      get stopped() {
        return end.stopped || taken.more();
      },
    });
    return run(machine, input, { end, taken });
  });
}

interface Bounds {
  readonly end: CallEnd;
  readonly taken: Steps;
}

function run(machine: Machine, input: Omit<ScriptInput, "each">, { end, taken }: Bounds): RunReport {
  const { name, source, globals, results, seed, outputMaxCharacters = SCRIPT_OUTPUT_MAX_CHARACTERS } = input;
  try {
    machine.begin(globals, seed, name);
    machine.evaluate(source, name);
    const text = machine.finish(results);
    // A call that was not answered any more may have left it with half of what it needs.
    if (end.stopped) return stopped(name);
    if (text.length <= outputMaxCharacters) return { results: text };
    return { failure: { kind: "output", message: `${name} answers more than a script may.` } };
  } catch (error) {
    if (end.stopped) return stopped(name);
    if (taken.isOver) return { failure: { kind: "endless", message: `${name} takes too many steps for one record.` } };
    return { failure: failureOf(machine, error, name) };
  } finally {
    dispose(machine);
  }
}

function stopped(name: string): RunReport {
  return { failure: { kind: "stopped", message: `${name} was stopped.` } };
}

/** A machine whose memory is used up may fail even in this; the next one knows nothing of it. */
function dispose(machine: Machine): void {
  try {
    machine.dispose();
  } catch {
    // Its memory goes with the last reference to it.
  }
}

function limitedCalls(end: CallEnd): (name: string, args: string, at: string) => string {
  let calls = 0;
  return (name, args, at) => {
    calls += 1;
    if (calls > SCRIPT_CALLS_MAX) return refusal("SCRIPT_CALLS_MAX", `More than ${SCRIPT_CALLS_MAX} host calls.`);
    if (args.length > SCRIPT_CALL_MAX_CHARACTERS)
      return refusal("SCRIPT_CALL_MAX_CHARACTERS", `The arguments of ${name} are too large.`);
    return end.call({ name, args, at }) ?? "";
  };
}

function refusal(limit: string, message: string): string {
  return `!${JSON.stringify({ message, code: "too_large", details: { limit } })}`;
}

interface Thrown {
  readonly name?: string;
  readonly message: string;
  readonly stack?: string;
  readonly code?: string;
  readonly details?: ScriptFailure["details"];
}

function failureOf(machine: Machine, error: unknown, main: string): ScriptFailure {
  const thrown = thrownBy(machine, error);
  const { name, message, stack = "", code, details } = thrown;
  if (/^(InternalError: )?out of memory$/.test(message) || (error as Error).name === "RuntimeError")
    return { kind: "memory", message: `${main} needs more memory than a script has.` };
  const kind = name === "SyntaxError" && code === undefined ? "syntax" : "thrown";
  const title = name === undefined || name === "Error" ? "" : `${name}: `;
  return { kind, message: `${title}${clientText(message)}`, code, details, ...positionIn(stack, main) };
}

function thrownBy(machine: Machine, error: unknown): Thrown {
  const handle = handleOf(error);
  if (handle === undefined) return { message: error instanceof Error ? error.message : String(error) };
  try {
    return JSON.parse(machine.describe(handle)) as Thrown;
  } catch (failed) {
    return { message: failed instanceof Error ? failed.message : String(failed) };
  }
}

function handleOf(error: unknown): JSValueHandle | undefined {
  if (error instanceof JSException) return error.handle;
  return error instanceof UnhandledRejection ? error.reason : undefined;
}

/** As clients know these two. */
function clientText(message: string): string {
  return message
    .replace(/^(\S+) is not defined$/, "'$1' is not defined")
    .replace(/^cannot read property '(.*)' of (undefined|null)$/, "Cannot access member '$1' of $2");
}
