import { createHash } from "node:crypto";
import {
  LUA_VM_KEPT_MAX_BYTES,
  LUA_VMS_PER_THREAD_MAX,
  SCRIPT_CALL_MAX_CHARACTERS,
  SCRIPT_CALLS_MAX,
  SCRIPT_MEMORY_MAX_BYTES,
  SCRIPT_OUTPUT_MAX_CHARACTERS,
} from "../../../common/limits.ts";
import { CallEnd } from "../../workers/index.ts";
import { eachOf } from "../each.ts";
import { steps } from "../steps.ts";
import type { CallFailure, RunReport, ScriptFailure, ScriptInput, ScriptTask, ScriptThreadData } from "../task.ts";
import { LuaVm, type LuaReport } from "./vm.ts";

/** Runs Lua 5.1. Texts of one owner that are the same share a VM; every run has variables of its own. */
export function luaTask({ functions }: ScriptThreadData): ScriptTask {
  const objects: Record<string, string[]> = {};
  for (const { object, name } of functions) (objects[object] ??= []).push(name);
  const machines = new Machines(JSON.stringify(objects));
  return eachOf((input) => machines.run(input));
}

type RunInput = Omit<ScriptInput, "each">;

/** The VMs of this thread by owner and text; the one used longest ago leaves first. */
class Machines {
  readonly #objects: string;
  readonly #machines = new Map<string, LuaVm>();

  constructor(objects: string) {
    this.#objects = objects;
  }

  async run(input: RunInput): Promise<RunReport> {
    const key = keyOf(input);
    const vm = this.#machines.get(key) ?? (await LuaVm.open(SCRIPT_MEMORY_MAX_BYTES));
    this.#machines.delete(key);
    const report = runIn(vm, input, this.#objects);
    // Without an owner nothing says whose it may be next.
    if (!vm.isBroken && vm.bytes <= LUA_VM_KEPT_MAX_BYTES && input.owner !== undefined) this.#keep(key, vm);
    return report;
  }

  #keep(key: string, vm: LuaVm): void {
    const [oldest] = this.#machines.keys();
    if (this.#machines.size >= LUA_VMS_PER_THREAD_MAX && oldest !== undefined) this.#machines.delete(oldest);
    this.#machines.set(key, vm);
  }
}

function keyOf({ owner = "", name, source }: RunInput): string {
  return JSON.stringify([owner, name, createHash("sha256").update(source).digest("base64")]);
}

function runIn(vm: LuaVm, input: RunInput, objects: string): RunReport {
  const { name, source, globals, results, line, stepsMax, outputMaxCharacters = SCRIPT_OUTPUT_MAX_CHARACTERS } = input;
  const end = new CallEnd(line);
  const wrong = vm.compile(name, source);
  if (wrong !== undefined) return { failure: { kind: "syntax", ...placed(wrong, name) } };
  const failures = new Map<string, CallFailure>();
  const host = limitedCalls(end, failures);
  const taken = steps(stepsMax);
  const report = vm.run(name, { globals, objects, results, host, isOver: () => end.stopped || taken.more() });
  // A call that was not answered any more may have left it with half of what it needs.
  if (end.stopped) return { failure: { kind: "stopped", message: `${name} was stopped.` } };
  if (taken.isOver) return { failure: { kind: "endless", message: `${name} takes too many steps for one record.` } };
  return reportOf(report, { name, failures, outputMaxCharacters });
}

interface Told {
  readonly name: string;
  readonly failures: ReadonlyMap<string, CallFailure>;
  readonly outputMaxCharacters: number;
}

function reportOf(report: LuaReport, { name, failures, outputMaxCharacters }: Told): RunReport {
  if ("results" in report) {
    if (report.results.length <= outputMaxCharacters) return report;
    return { failure: { kind: "output", message: `${name} answers more than a script may.` } };
  }
  if (report.kind === "memory")
    return { failure: { kind: "memory", message: `${name} needs more memory than a script has.` } };
  const thrown = placed(report.message, name);
  const { code, details } = failures.get(thrown.message) ?? {};
  return { failure: { kind: "thrown", ...thrown, code, details } };
}

/** Lua says where something went wrong before what did. */
function placed(message: string, name: string): Pick<ScriptFailure, "message" | "file" | "line" | "column"> {
  const place = /^lua:(\d+): /.exec(message);
  if (place === null) return { message };
  const [head, line] = place;
  return { message: message.slice(head.length), file: name, line: Number(line), column: 1 };
}

/** Keeps what each failure of a call was by its text, as Lua errors bear nothing else. */
function limitedCalls(end: CallEnd, failures: Map<string, CallFailure>): (name: string, args: string) => string {
  let calls = 0;
  const refusal = (failure: CallFailure): string => {
    failures.set(failure.message, failure);
    return `!${failure.message}`;
  };
  return (name, args) => {
    calls += 1;
    if (calls > SCRIPT_CALLS_MAX)
      return refusal(tooMuch(`More than ${SCRIPT_CALLS_MAX} host calls.`, "SCRIPT_CALLS_MAX"));
    if (args.length > SCRIPT_CALL_MAX_CHARACTERS)
      return refusal(tooMuch(`The arguments of ${name} are too large.`, "SCRIPT_CALL_MAX_CHARACTERS"));
    const answer = end.call({ name, args, at: "" }) ?? "";
    return answer.startsWith("!") ? refusal(JSON.parse(answer.slice(1)) as CallFailure) : answer;
  };
}

function tooMuch(message: string, limit: string): CallFailure {
  return { message, code: "too_large", details: { limit } };
}
