import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type JSValueHandle, QuickJS, type Snapshot } from "quickjs-wasi";
import { SCRIPT_MEMORY_MAX_BYTES, SCRIPT_STACK_MAX_BYTES } from "../../../common/limits.ts";
import type { HostFunctionName } from "../types.ts";
import { PRELUDE, PRELUDE_NAME } from "./prelude.ts";

const LIMITS = { memoryLimit: SCRIPT_MEMORY_MAX_BYTES, maxStackSize: SCRIPT_STACK_MAX_BYTES };
/** Names by which the snapshot knows the functions of the thread. */
const HOST = "odp host";
const COMPILE = "odp compile";
/** Holds the functions of the prelude until a run takes them away. */
const FRAME = "odp frame";

/** A global of Node that its types lack. */
const { WebAssembly: Wasm } = globalThis as unknown as {
  readonly WebAssembly: { compile(bytes: Uint8Array): Promise<WebAssembly.Module> };
};

/** A machine that stands where the prelude has ended; every run begins with a copy. */
export interface PreparedMachine {
  readonly wasm: WebAssembly.Module;
  readonly snapshot: Snapshot;
}

export async function prepareMachine(functions: readonly HostFunctionName[]): Promise<PreparedMachine> {
  const { resolve } = createRequire(import.meta.url);
  const wasm = await Wasm.compile(readFileSync(resolve("quickjs-wasi/quickjs.wasm")));
  const vm = await QuickJS.create({ wasm, ...LIMITS });
  try {
    vm.evalCode(
      readFileSync(resolve("underscore/underscore-umd-min.js"), "utf8"),
      `${PRELUDE_NAME}/underscore`,
    ).dispose();
    const none = (): JSValueHandle => vm.undefined;
    const host = vm.newFunction(HOST, none);
    const compile = vm.newFunction(COMPILE, none);
    const prelude = vm.evalCode(PRELUDE, PRELUDE_NAME);
    const frame = vm.callFunction(prelude, vm.undefined, vm.hostToHandle(functions), host, compile, vm.global);
    vm.setProp(vm.global, FRAME, frame);
    return { wasm, snapshot: vm.snapshot() };
  } finally {
    vm.dispose();
  }
}

export interface MachineHost {
  call(name: string, args: string, at: string): string;
  readonly stopped: boolean;
}

/** One virtual machine for one run. */
export class Machine {
  readonly #vm: QuickJS;
  readonly #frame: JSValueHandle;
  readonly #rejected = new Map<number, JSValueHandle>();

  static async open({ wasm, snapshot }: PreparedMachine, host: MachineHost): Promise<Machine> {
    const vm: QuickJS = await QuickJS.restore(snapshot, {
      wasm,
      ...LIMITS,
      interruptHandler: () => host.stopped,
      onUnhandledRejection: (promise: JSValueHandle, reason: JSValueHandle, isHandled: boolean) =>
        machine.#rejection(promise, reason, isHandled),
    });
    const machine = new Machine(vm, host);
    return machine;
  }

  private constructor(vm: QuickJS, host: MachineHost) {
    this.#vm = vm;
    vm.registerHostCallback(HOST, (name, args, at) => vm.newString(host.call(textOf(name), textOf(args), textOf(at))));
    vm.registerHostCallback(COMPILE, (text, name) => vm.evalCode(textOf(text), textOf(name)));
    this.#frame = vm.global.getProp(FRAME);
    vm.evalCode(`delete globalThis["${FRAME}"]`, PRELUDE_NAME).dispose();
  }

  begin(globals: string, seed: number, name: string): void {
    this.#call("begin", this.#vm.newString(globals), this.#vm.newNumber(seed), this.#vm.newString(name)).dispose();
  }

  /** The script, and all that it promised. */
  evaluate(source: string, name: string): void {
    this.#vm.evalCode(source, name).dispose();
    this.#runJobs();
  }

  /** JSON of the named variables. */
  finish(names: readonly string[]): string {
    const list = JSON.stringify(names);
    if (this.#call("settle", this.#vm.newString(list)).consume((found) => found.toBoolean())) this.#runJobs();
    return this.#call("finish", this.#vm.newString(list)).consume(String);
  }

  /** JSON of `{name?, message, stack?, code?, details?}`. */
  describe(thrown: JSValueHandle): string {
    return this.#call("describe", thrown).consume(String);
  }

  dispose(): void {
    this.#vm.dispose();
  }

  #call(name: string, ...args: JSValueHandle[]): JSValueHandle {
    return this.#frame.getProp(name).consume((called) => this.#vm.callFunction(called, this.#vm.undefined, ...args));
  }

  #runJobs(): void {
    this.#vm.executePendingJobs();
    const [reason] = this.#rejected.values();
    if (reason) throw new UnhandledRejection(reason);
  }

  #rejection(promise: JSValueHandle, reason: JSValueHandle, isHandled: boolean): void {
    if (isHandled) this.#rejected.delete(promise.identity);
    else this.#rejected.set(promise.identity, reason.dup());
  }
}

/** A promise of the script failed, and the script does not look at it. */
export class UnhandledRejection extends Error {
  readonly reason: JSValueHandle;

  constructor(reason: JSValueHandle) {
    super("A promise failed.");
    this.reason = reason;
  }
}

function textOf(handle: JSValueHandle | undefined): string {
  return handle?.isString === true ? handle.toString() : "";
}
