import { JSException, type JSValueHandle } from "quickjs-wasi";
import { errorText } from "../../../common/errors.ts";
import { SCRIPT_CALLS_MAX, SCRIPT_ERROR_MAX_CHARACTERS, SCRIPT_MACHINES_KEPT_MAX } from "../../../common/limits.ts";
import { CallEnd } from "../../workers/index.ts";
import {
  bounded,
  charactersMax,
  passedByArguments,
  passedByValues,
  refused,
  shortened,
  tooDeep,
  tooLong,
} from "../handover.ts";
import { steps, type Steps } from "../steps.ts";
import type { RunReport, ScriptFailure, ScriptInput, ScriptReport, ScriptTask, ScriptThreadData } from "../task.ts";
import { Machine, type MachineHost, prepareMachine, type PreparedMachine, UnhandledRejection } from "./machine.ts";
import { positionIn, type RequiredTexts } from "./position.ts";

/** Runs JavaScript. Each run finds its machine in the initial state, although machines are reused. */
export function javascriptTask({ functions }: ScriptThreadData): ScriptTask {
  let prepared: Promise<PreparedMachine> | undefined;
  const open = async (frame?: string): Promise<Machine> =>
    Machine.open(await (prepared ??= prepareMachine(functions)), frame);
  const machines = new Machines(open);
  return async (input) => {
    const { each, tenant, ...call } = input;
    const end = new CallEnd(input.line);
    if (each !== undefined) return runEach(new Series(call, end, open), each);
    const machine = await machines.take(tenant);
    const ran = run(machine, call, boundsOf(end, input.stepsMax));
    machines.leave(tenant, machine, ran);
    return ran.report;
  };
}

type RunInput = Omit<ScriptInput, "each" | "tenant">;

/**
 * Machines of this thread, each kept between two runs of one tenant and never shared. The least recently used one is
 * removed first.
 */
class Machines {
  readonly #open: () => Promise<Machine>;
  readonly #kept = new Map<string, Machine>();

  constructor(open: () => Promise<Machine>) {
    this.#open = open;
  }

  async take(tenant: string): Promise<Machine> {
    const kept = this.#kept.get(tenant);
    this.#kept.delete(tenant);
    return kept ?? this.#open();
  }

  leave(tenant: string, machine: Machine, { isSound }: Ran): void {
    if (!isSound || !machine.rewind()) return dispose(machine);
    const [longest] = this.#kept;
    if (this.#kept.size >= SCRIPT_MACHINES_KEPT_MAX && longest !== undefined) {
      this.#kept.delete(longest[0]);
      dispose(longest[1]);
    }
    this.#kept.set(tenant, machine);
  }
}

async function runEach(series: Series, each: readonly string[]): Promise<ScriptReport> {
  const reports: RunReport[] = [];
  try {
    for (const globals of each) {
      const report = await series.run(globals);
      if ("failure" in report && (report.failure.kind === "stopped" || report.failure.kind === "syntax")) return report;
      reports.push(report);
    }
    return { reports };
  } finally {
    series.close();
  }
}

/** Successive runs of one text. */
class Series {
  readonly #input: RunInput;
  readonly #end: CallEnd;
  readonly #open: (frame?: string) => Promise<Machine>;
  #machine: Machine | undefined;

  constructor(input: RunInput, end: CallEnd, open: (frame?: string) => Promise<Machine>) {
    this.#input = input;
    this.#end = end;
    this.#open = open;
  }

  async run(globals: string): Promise<RunReport> {
    this.#machine ??= await this.#open(this.#input.frame);
    const { stepsMax } = this.#input;
    const { report, isSound } = run(this.#machine, { ...this.#input, globals }, boundsOf(this.#end, stepsMax));
    if (!isSound || !this.#machine.rewind()) this.close();
    return report;
  }

  close(): void {
    if (this.#machine) dispose(this.#machine);
    this.#machine = undefined;
  }
}

interface Bounds {
  readonly end: CallEnd;
  readonly taken: Steps;
  readonly host: MachineHost;
}

/** Creates the bounds of one run. */
function boundsOf(end: CallEnd, stepsMax: number | undefined): Bounds {
  const taken = steps(stepsMax);
  const call = limitedCalls(end);
  return {
    end,
    taken,
    host: {
      call,
      get stopped() {
        return end.stopped || taken.more();
      },
    },
  };
}

interface Ran {
  readonly report: RunReport;
  /** True if the text ended by itself or by its own error, so the machine is still usable. */
  readonly isSound: boolean;
}

function run(machine: Machine, input: RunInput, bounds: Bounds): Ran {
  return bounds.end.within(() => runWithin(machine, input, bounds));
}

function runWithin(machine: Machine, input: RunInput, { end, taken, host }: Bounds): Ran {
  const { name, source } = input;
  let isFinishing = false;
  try {
    machine.begin(input, host);
    machine.evaluate(source, name);
    isFinishing = true;
    const text = machine.finish(input.results);
    // A call that got no answer may have left the machine in an incomplete state.
    if (end.stopped) return { report: stopped(name), isSound: false };
    return { report: answered(text, input), isSound: true };
  } catch (error) {
    if (end.stopped) return { report: stopped(name), isSound: false };
    if (taken.isOver) {
      const message = `${name} takes too many steps for one record.`;
      return { report: { failure: { kind: "endless", message } }, isSound: false };
    }
    const thrown = thrownBy(machine, error);
    const failure = failureOf(thrown, error, { ...input, required: machine.required });
    const isSound = thrown.isWhole && failure.kind !== "memory";
    // The results caused the overflow: at this point the script runs only code of its results.
    if (isFinishing && STACK_OVERFLOW.test(failure.message))
      return { report: refused(name, tooDeep()), isSound: false };
    return { report: { failure: bounded(failure) }, isSound };
  }
}

const STACK_OVERFLOW = /^(\w+: )?Maximum call stack size exceeded$/;

function answered(text: string, { name, outputMaxCharacters }: RunInput): RunReport {
  const passed = text.length > charactersMax(outputMaxCharacters) ? tooLong(outputMaxCharacters) : passedByValues(text);
  return passed ? refused(name, passed) : { results: text };
}

function stopped(name: string): RunReport {
  return { failure: { kind: "stopped", message: `${name} was stopped.` } };
}

/** A machine without memory may fail even here; the next machine is not affected. */
function dispose(machine: Machine): void {
  try {
    machine.dispose();
  } catch {
    // Its memory is freed with the last reference to it.
  }
}

function limitedCalls(end: CallEnd): (name: string, args: string, at: string) => string {
  let calls = 0;
  return (name, args, at) => {
    calls += 1;
    if (calls > SCRIPT_CALLS_MAX) return refusal("SCRIPT_CALLS_MAX", `More than ${SCRIPT_CALLS_MAX} host calls.`);
    const handed = shortened(name, args);
    const passed = passedByArguments(handed);
    if (passed) return refusal(passed.limit, `What ${name} is called with ${passed.message}.`);
    return end.call({ name, args: handed, at }) ?? "";
  };
}

function refusal(limit: string, message: string): string {
  return `!${JSON.stringify({ message, code: "too_large", details: { limit } })}`;
}

interface Thrown {
  /** True if the machine itself reported the error, so nothing was interrupted inside it. */
  readonly isWhole: boolean;
  readonly name?: string;
  readonly message: string;
  readonly stack?: string;
  readonly code?: string;
  readonly details?: ScriptFailure["details"];
}

interface FailedScript extends Pick<RunInput, "name" | "source"> {
  readonly required: RequiredTexts;
}

function failureOf(thrown: Thrown, error: unknown, main: FailedScript): ScriptFailure {
  const { name, message, stack = "", code, details } = thrown;
  if (/^(InternalError: )?out of memory$/.test(message) || (error as Error).name === "RuntimeError")
    return { kind: "memory", message: `${main.name} needs more memory than a script has.` };
  const kind = name === "SyntaxError" && code === undefined ? "syntax" : "thrown";
  const title = name === undefined || name === "Error" ? "" : `${name}: `;
  return {
    kind,
    message: `${title}${clientText(message)}`,
    code,
    details,
    ...positionIn(stack.slice(0, SCRIPT_ERROR_MAX_CHARACTERS), main, main.required),
  };
}

function thrownBy(machine: Machine, error: unknown): Thrown {
  const handle = handleOf(error);
  if (handle === undefined) return { isWhole: false, message: errorText(error) };
  try {
    return { ...(JSON.parse(machine.describe(handle)) as Omit<Thrown, "isWhole">), isWhole: true };
  } catch (failed) {
    return { isWhole: false, message: errorText(failed) };
  }
}

function handleOf(error: unknown): JSValueHandle | undefined {
  if (error instanceof JSException) return error.handle;
  return error instanceof UnhandledRejection ? error.reason : undefined;
}

/** Converts two messages to the form that clients know. */
function clientText(message: string): string {
  return message
    .replace(/^(\S+) is not defined$/, "'$1' is not defined")
    .replace(/^cannot read property '(.*)' of (undefined|null)$/, "Cannot access member '$1' of $2");
}
