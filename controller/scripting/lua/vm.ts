import { Lua, LuaEventMasks } from "wasmoon-lua5.1";
import { errorText } from "../../../common/errors.ts";
import { LUA_HOOK_INSTRUCTIONS } from "../../../common/limits.ts";
import { BOOTSTRAP, FINAL_ERRORS } from "./bootstrap.ts";

/** What a text of a VM reaches, and for how long. */
export interface LuaRun {
  /** JSON of an object: the global variables that the text begins with. */
  readonly globals: string;
  /** Global variables to answer. */
  readonly results: readonly string[];
  /** JSON of the host's objects, each with the list of its functions. */
  readonly objects: string;
  /** Of arguments as a JSON list. Answers `=` and JSON, nothing, or `!` and the text of the error to raise. */
  readonly host: (name: string, args: string) => string;
  /** Asked from time to time: whether the run is to end. */
  readonly isOver: () => boolean;
}

/** JSON of the results, or the text of the error. */
export type LuaReport =
  | { readonly results: string }
  | { readonly kind: "thrown" | "memory" | "stopped"; readonly message: string };

type Compile = (name: string, text: string) => true | string;
interface Functions {
  readonly compile: Compile;
  readonly run: Run;
}
type Run = (name: string, globals: string, objects: string, results: string) => string;

/**
 * A Lua 5.1 VM. Its texts share what they compile to and nothing else: each run begins with new global variables. As
 * one that uses up the memory breaks the VM for the others, they must be of one owner.
 */
export class LuaVm {
  readonly #compile: Compile;
  readonly #run: Run;
  readonly #lua: Lua;
  readonly #around: Surroundings;
  readonly #compiled = new Set<string>();
  #isBroken = false;

  private constructor(lua: Lua, around: Surroundings, { compile, run }: Functions) {
    this.#lua = lua;
    this.#around = around;
    this.#compile = compile;
    this.#run = run;
  }

  static async open(memoryMaxBytes: number): Promise<LuaVm> {
    const lua = await Lua.create({ enableProxy: false, injectObjects: false, traceAllocations: true });
    const around: Surroundings = { isOver: () => false, host: () => "!Nothing runs." };
    lua.global.setMemoryMax(memoryMaxBytes);
    stopInTime(lua, around);
    lua.ctx.__host = (name: string, args: string) => around.host(name, args);
    const functions = lua.doStringSync(BOOTSTRAP) as { $get(at: number): unknown };
    return new LuaVm(lua, around, { compile: functions.$get(1) as Compile, run: functions.$get(2) as Run });
  }

  /** Memory in use. */
  get bytes(): number {
    return this.#lua.global.getMemoryUsed();
  }

  /** It cannot run anything any more. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** The error of a text that does not parse, as `lua:<line>: <reason>`. Idempotent. */
  compile(name: string, text: string): string | undefined {
    if (this.#compiled.has(name)) return undefined;
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

  /** Of a name that was compiled. */
  run(name: string, { globals, objects, results, host, isOver }: LuaRun): LuaReport {
    this.#around.host = host;
    this.#around.isOver = isOver;
    try {
      return this.#told(this.#run(name, globals, objects, JSON.stringify(results)));
    } catch (error) {
      return this.#told(`E${errorText(error)}`);
    } finally {
      this.#around.isOver = () => false;
    }
  }

  #told(answer: string): LuaReport {
    if (answer.startsWith("R")) return { results: answer.slice(1) };
    const message = answer.slice(1);
    if (message.includes(FINAL_ERRORS.time)) return { kind: "stopped", message };
    if (!message.includes(FINAL_ERRORS.memory)) return { kind: "thrown", message };
    this.#isBroken = true;
    return { kind: "memory", message };
  }
}

/** What the run under way has around it. */
interface Surroundings {
  host: LuaRun["host"];
  isOver: LuaRun["isOver"];
}

/** Asks every so many instructions, also in coroutines, which inherit it. */
function stopInTime({ global, luaApi }: Lua, around: Surroundings): void {
  const hook = luaApi.module.addFunction((state: number) => {
    if (!around.isOver()) return;
    luaApi.lua_pushstring(state, FINAL_ERRORS.time);
    luaApi.lua_error(state);
  }, "vii");
  luaApi.lua_sethook(global.address, hook, LuaEventMasks.Count, LUA_HOOK_INSTRUCTIONS);
}
