import { createHash } from "node:crypto";
import {
  LUA_VM_KEPT_MAX_BYTES,
  LUA_VMS_PER_THREAD_MAX,
  SCRIPT_CALLS_MAX,
  SCRIPT_MEMORY_MAX_BYTES,
} from "../../../common/limits.ts";
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
import type {
  CallFailure,
  RunReport,
  ScriptFailure,
  ScriptInput,
  ScriptReport,
  ScriptTask,
  ScriptThreadData,
} from "../task.ts";
import { TOO_DEEP } from "./json.ts";
import { LuaVm, type LuaReport, type LuaRun } from "./vm.ts";

/** Runs Lua 5.1. Equal texts of one owner share a VM; every run has its own variables. */
export function luaTask({ functions }: ScriptThreadData): ScriptTask {
  const objects: Record<string, string[]> = {};
  for (const { object, name } of functions) (objects[object] ??= []).push(name);
  const machines = new Machines(JSON.stringify(objects));
  return (input) => machines.run(input);
}

/** The VMs of this thread by owner and text. The least recently used one is removed first. */
class Machines {
  readonly #objects: string;
  readonly #machines = new Map<string, LuaVm>();

  constructor(objects: string) {
    this.#objects = objects;
  }

  async run(input: ScriptInput): Promise<ScriptReport> {
    const { each = [input.globals] } = input;
    const key = keyOf(input);
    const end = new CallEnd(input.line);
    const reports: RunReport[] = [];
    let atOnce = each.length;
    while (reports.length < each.length) {
      const vm = await this.#take(input, key);
      const piece = each.slice(reports.length, reports.length + atOnce);
      const made = end.within(() => runIn(vm, { ...input, each: piece, end }));
      this.#keep(input, key, vm);
      if ("failure" in made) return made;
      reports.push(...made.reports);
      atOnce = made.reports.length === 0 ? 1 : each.length;
    }
    const [only] = reports;
    return input.each === undefined && only !== undefined ? only : { reports };
  }

  async #take({ frame }: ScriptInput, key: string): Promise<LuaVm> {
    const known = this.#machines.get(key);
    const vm = known ?? (await LuaVm.open(SCRIPT_MEMORY_MAX_BYTES, { objects: this.#objects, frame }));
    this.#machines.delete(key);
    return vm;
  }

  #keep({ owner }: ScriptInput, key: string, vm: LuaVm): void {
    // Without an owner it is unknown who may use the VM next.
    if (vm.isBroken || vm.bytes > LUA_VM_KEPT_MAX_BYTES || owner === undefined) return;
    const [oldest] = this.#machines.keys();
    if (this.#machines.size >= LUA_VMS_PER_THREAD_MAX && oldest !== undefined) this.#machines.delete(oldest);
    this.#machines.set(key, vm);
  }
}

function keyOf({ owner = "", name, source, frame = "" }: ScriptInput): string {
  const digest = createHash("sha256").update(frame).update("\0").update(source).digest("base64");
  return JSON.stringify([owner, name, digest]);
}

interface Piece extends ScriptInput {
  readonly each: readonly string[];
  readonly end: CallEnd;
}

/** Returns the reports of the first runs of a piece, or the reason why no run continues. */
function runIn(
  vm: LuaVm,
  input: Piece,
): { readonly reports: readonly RunReport[] } | { readonly failure: ScriptFailure } {
  const { name, source, each, results, end, stepsMax, outputMaxCharacters } = input;
  const wrong = vm.compile(name, source);
  if (wrong !== undefined) return { failure: bounded({ kind: "syntax", ...placed(wrong, name) }) };
  const runs = each.map(() => ({ failures: new Map<string, CallFailure>(), taken: steps(stepsMax), calls: 0 }));
  const made = vm.run(name, {
    each,
    results,
    outputMaxCharacters: charactersMax(outputMaxCharacters),
    host: limitedCalls(end, runs),
    isOver: (at) => end.stopped || runs[at]?.taken.more() === true,
  });
  // A call that got no answer may have left the VM in an incomplete state.
  if (end.stopped) return { failure: { kind: "stopped", message: `${name} was stopped.` } };
  return { reports: made.map((report, at) => reportOf(report, { name, outputMaxCharacters, run: runs[at] })) };
}

/** State of one run besides its report. */
interface Run {
  /** Failures of host calls by their message, because Lua errors carry only a text. */
  readonly failures: Map<string, CallFailure>;
  readonly taken: Steps;
  calls: number;
}

function reportOf(
  report: LuaReport,
  {
    name,
    outputMaxCharacters,
    run,
  }: Pick<ScriptInput, "name" | "outputMaxCharacters"> & { readonly run: Run | undefined },
): RunReport {
  if (run?.taken.isOver)
    return { failure: { kind: "endless", message: `${name} takes too many steps for one record.` } };
  if ("results" in report) return answered(report, name);
  if (report.kind === "output") return refused(name, tooLong(outputMaxCharacters));
  if (report.kind === "memory")
    return { failure: { kind: "memory", message: `${name} needs more memory than a script has.` } };
  if (report.message === TOO_DEEP) return refused(name, tooDeep());
  const thrown = placed(report.message, name);
  const { code, details } = run?.failures.get(thrown.message) ?? {};
  return { failure: bounded({ kind: "thrown", ...thrown, code, details }) };
}

function answered(report: { readonly results: string }, name: string): RunReport {
  const passed = passedByValues(report.results);
  return passed ? refused(name, passed) : report;
}

/** Lua puts the position before the message. */
function placed(message: string, name: string): Pick<ScriptFailure, "message" | "file" | "line" | "column"> {
  const place = /^lua:(\d+): /.exec(message);
  if (place === null) return { message };
  const [head, line] = place;
  return { message: message.slice(head.length), file: name, line: Number(line), column: 1 };
}

function limitedCalls(end: CallEnd, runs: readonly Run[]): LuaRun["host"] {
  return (name, args, at) => {
    const run = runs[at];
    if (run === undefined) return `!${name} is called where nothing runs.`;
    const refusal = (failure: CallFailure): string => {
      run.failures.set(failure.message, failure);
      return `!${failure.message}`;
    };
    run.calls += 1;
    if (run.calls > SCRIPT_CALLS_MAX)
      return refusal(tooMuch(`More than ${SCRIPT_CALLS_MAX} host calls.`, "SCRIPT_CALLS_MAX"));
    const handed = shortened(name, args);
    const passed = passedByArguments(handed);
    if (passed) return refusal(tooMuch(`What ${name} is called with ${passed.message}.`, passed.limit));
    const answer = end.call({ name, args: handed, at: "" }) ?? "";
    return answer.startsWith("!") ? refusal(JSON.parse(answer.slice(1)) as CallFailure) : answer;
  };
}

function tooMuch(message: string, limit: string): CallFailure {
  return { message, code: "too_large", details: { limit } };
}
