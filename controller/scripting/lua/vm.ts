import { createRequire } from "node:module";
import type * as Wasmoon from "wasmoon-lua5.1";
import { errorText } from "../../../common/errors.ts";
import { LUA_HOOK_INSTRUCTIONS } from "../../../common/limits.ts";
import { BOOTSTRAP, FINAL_ERRORS } from "./bootstrap.ts";
import { linesOf } from "./literal.ts";

const load = createRequire(import.meta.url);

/**
 * Loads the package with the first VM, so a thread that runs no Lua does not load it. An `import` would first search
 * the whole package for its exports.
 */
function wasmoon(): typeof Wasmoon {
  return load("wasmoon-lua5.1") as typeof Wasmoon;
}

/** Input of a call of `run`, its host functions and its end. */
export interface LuaRun {
  /** JSON of an object for each run: its global variables at the start. Not empty. */
  readonly each: readonly string[];
  /** Names of the global variables to return. */
  readonly results: readonly string[];
  /** Maximum length of the results as JSON. */
  readonly outputMaxCharacters: number;
  /**
   * Host call with the arguments as a JSON list. Returns `=` and JSON, an empty text, or `!` and the text of the error
   * to raise. `run` counts from 0.
   */
  readonly host: (name: string, args: string, run: number) => string;
  /** Called periodically. Returns true if the run has to end; `run` is -1 between runs. */
  readonly isOver: (run: number) => boolean;
}

/** JSON of the results, or the text of the error. */
export type LuaReport =
  | { readonly results: string }
  | { readonly kind: "thrown" | "memory" | "stopped" | "output"; readonly message: string };

type Compile = (name: string, text: string) => true | string;
type Run = (name: string, each: string, results: string, outputMaxCharacters: number) => string;
interface Functions {
  readonly compile: Compile;
  readonly run: Run;
}

/**
 * A Lua 5.1 VM. Its texts share compiled code and nothing else: each run begins with new global variables. All texts
 * must be of one owner, because a text that exhausts the memory breaks the VM for the others.
 */
export class LuaVm {
  readonly #compile: Compile;
  readonly #run: Run;
  readonly #lua: Wasmoon.Lua;
  readonly #around: Surroundings;
  readonly #compiled = new Set<string>();
  #isBroken = false;

  private constructor(lua: Wasmoon.Lua, around: Surroundings, { compile, run }: Functions) {
    this.#lua = lua;
    this.#around = around;
    this.#compile = compile;
    this.#run = run;
  }

  /** `objects`: JSON of the host objects, each with the list of its functions. `frame`: as in `ScriptSeries`. */
  static async open(
    memoryMaxBytes: number,
    { objects = "{}", frame }: { readonly objects?: string; readonly frame?: string | undefined } = {},
  ): Promise<LuaVm> {
    const lua = await wasmoon().Lua.create({ enableProxy: false, injectObjects: false, traceAllocations: true });
    const around: Surroundings = { isOver: () => false, host: () => "!Nothing runs." };
    lua.global.setMemoryMax(memoryMaxBytes);
    stopInTime(lua, around, madeProgress(lua));
    lua.ctx.__host = (name: string, args: string, run: number) => around.host(name, args, run - 1);
    const functions = lua.doStringSync(BOOTSTRAP) as { $get(at: number): unknown };
    (functions.$get(3) as (objects: string) => void)(objects);
    if (frame !== undefined) (functions.$get(4) as (text: string) => void)(frame);
    return new LuaVm(lua, around, { compile: functions.$get(1) as Compile, run: functions.$get(2) as Run });
  }

  /** Memory in use, in bytes. */
  get bytes(): number {
    return this.#lua.global.getMemoryUsed();
  }

  /** True if the VM cannot run anything any more. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Compiles a text. Returns the error of a text that does not parse, as `lua:<line>: <reason>`. Idempotent. */
  compile(name: string, text: string): string | undefined {
    if (this.#compiled.has(name)) return undefined;
    const end = text.indexOf("\0");
    // Lua would take it for the end of the text and run the part before it.
    if (end !== -1) return `lua:${text.slice(0, end).split("\n").length}: a text has no character of the code 0`;
    try {
      const done = this.#compile(name, text);
      if (done !== true) return done;
    } catch (error) {
      this.#isBroken = true;
      return errorText(error);
    }
    this.#compiled.add(name);
    return undefined;
  }

  /**
   * Runs the compiled text of that name. Returns the reports of the first runs, or none if it is unknown which of
   * several failed. Call again for the missing runs: one at a time if there was no report, and with another VM if this
   * one is broken.
   */
  run(name: string, { each, results, outputMaxCharacters, host, isOver }: LuaRun): readonly LuaReport[] {
    this.#around.host = host;
    this.#around.isOver = isOver;
    try {
      const lines = [...linesOf(each)].join("\n");
      const answers = this.#run(name, lines, JSON.stringify(results), outputMaxCharacters);
      return answers.split("\n").map((answer) => this.#told(answer));
    } catch (error) {
      const failed = this.#failed(errorText(error));
      return each.length === 1 ? [failed] : [];
    } finally {
      this.#around.isOver = () => false;
    }
  }

  #told(answer: string): LuaReport {
    if (answer === "O") return { kind: "output", message: "It answers too much." };
    return answer.startsWith("E") ? this.#failed(JSON.parse(answer.slice(1)) as string) : { results: answer };
  }

  #failed(message: string): LuaReport {
    if (message.includes(FINAL_ERRORS.time)) return { kind: "stopped", message };
    if (!message.includes(FINAL_ERRORS.memory)) return { kind: "thrown", message };
    this.#isBroken = true;
    return { kind: "memory", message };
  }
}

/** Host functions and end of the current run. */
interface Surroundings {
  host: LuaRun["host"];
  isOver: LuaRun["isOver"];
}

/** Creates a table in which the VM stores the position of the current run, from 1. Returns a reference to the table. */
function madeProgress({ global, luaApi }: Wasmoon.Lua): number {
  const { LUA_GLOBALSINDEX, LUA_REGISTRYINDEX } = wasmoon();
  luaApi.lua_createtable(global.address, 1, 0);
  luaApi.lua_pushvalue(global.address, TOP);
  luaApi.lua_setfield(global.address, LUA_GLOBALSINDEX, "__progress");
  return luaApi.luaL_ref(global.address, LUA_REGISTRYINDEX);
}

const TOP = -1;

/** Checks for the end after a number of instructions, also in coroutines, which inherit the hook. */
function stopInTime({ global, luaApi }: Wasmoon.Lua, around: Surroundings, progress: number): void {
  const { LUA_REGISTRYINDEX, LuaEventMasks } = wasmoon();
  const placeOf = (state: number): number => {
    luaApi.lua_rawgeti(state, LUA_REGISTRYINDEX, progress);
    luaApi.lua_rawgeti(state, TOP, 1);
    const place = luaApi.lua_tonumber(state, TOP);
    luaApi.lua_pop(state, 2);
    return place - 1;
  };
  const hook = luaApi.module.addFunction((state: number) => {
    if (!around.isOver(placeOf(state))) return;
    luaApi.lua_pushstring(state, FINAL_ERRORS.time);
    luaApi.lua_error(state);
  }, "vii");
  luaApi.lua_sethook(global.address, hook, LuaEventMasks.Count, LUA_HOOK_INSTRUCTIONS);
}
