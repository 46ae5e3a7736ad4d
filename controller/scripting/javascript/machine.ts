import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type JSValueHandle, QuickJS, type Snapshot } from "quickjs-wasi";
import {
  SCRIPT_MEMORY_MAX_BYTES,
  SCRIPT_MEMORY_READY_BYTES,
  SCRIPT_REQUIRED_TEXTS_MAX_CHARACTERS,
  SCRIPT_STACK_MAX_BYTES,
} from "../../../common/limits.ts";
import type { HostFunctionName } from "../types.ts";
import type { RequiredTexts } from "./position.ts";
import { PRELUDE, PRELUDE_NAME } from "./prelude.ts";

const LIMITS = { memoryLimit: SCRIPT_MEMORY_MAX_BYTES, maxStackSize: SCRIPT_STACK_MAX_BYTES };
/** Names by which the snapshot refers to the functions of the thread. */
const HOST = "odp host";
const COMPILE = "odp compile";
/** Holds the functions of the prelude until a machine removes it. */
const FRAME = "odp frame";

/** A Node global that is missing in its types. */
const { WebAssembly: Wasm } = globalThis as unknown as {
  readonly WebAssembly: { compile(bytes: Uint8Array): Promise<WebAssembly.Module> };
};

/** A machine as it is after the prelude. Every machine starts from a copy. */
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
    // Grows the heap to the size that an ordinary run needs; freed memory stays in the heap. A machine whose memory
    // grows during a run cannot be rewound.
    vm.evalCode(`new ArrayBuffer(${SCRIPT_MEMORY_READY_BYTES})`, PRELUDE_NAME).dispose();
    return { wasm, snapshot: vm.snapshot() };
  } finally {
    vm.dispose();
  }
}

export interface MachineHost {
  call(name: string, args: string, at: string): string;
  readonly stopped: boolean;
}

interface RunBeginning {
  /** JSON of the object of globals. */
  readonly globals: string;
  /** Seed of the script's random numbers. */
  readonly seed: number;
  readonly name: string;
}

/** Node's types do not export this type. */
interface MachineMemory {
  readonly buffer: ArrayBuffer;
}

/** Functions that surround a run; see `frame` in `ScriptSeries`. */
interface Around {
  readonly begin: JSValueHandle;
  readonly finish: JSValueHandle;
}

const NOT_ASCII = /[^\0-\x7f]/;

const NOBODY: MachineHost = { call: () => "", stopped: true };

/** One virtual machine for successive runs. `rewind` restores its initial state between runs. */
export class Machine {
  readonly #vm: QuickJS;
  readonly #memory: MachineMemory;
  readonly #frame: JSValueHandle;
  readonly #rejected = new Map<number, JSValueHandle>();
  readonly #required = new Map<string, string>();
  #requiredCharacters = 0;
  #host = NOBODY;
  #around: Around | undefined;
  #mark: Uint8Array | undefined;

  /** Opens a machine in its initial state, with that frame around the runs. */
  static async open({ wasm, snapshot }: PreparedMachine, frame?: string): Promise<Machine> {
    let memory: MachineMemory | undefined;
    const vm: QuickJS = await QuickJS.restore(snapshot, {
      wasm,
      ...LIMITS,
      wasi: (own: MachineMemory) => ((memory = own), {}),
      interruptHandler: () => machine.#host.stopped,
      onUnhandledRejection: (promise: JSValueHandle, reason: JSValueHandle, isHandled: boolean) =>
        machine.#rejection(promise, reason, isHandled),
    });
    if (memory === undefined) throw new Error("The machine has no memory.");
    const machine = new Machine(vm, memory);
    machine.#stand(frame);
    return machine;
  }

  private constructor(vm: QuickJS, memory: MachineMemory) {
    this.#vm = vm;
    this.#memory = memory;
    vm.registerHostCallback(HOST, (name, args, at) =>
      vm.newString(this.#host.call(textOf(name), textOf(args), textOf(at))),
    );
    vm.registerHostCallback(COMPILE, (text, name) => this.#compile(textOf(text), textOf(name)));
    this.#frame = vm.global.getProp(FRAME);
    vm.evalCode(`delete globalThis["${FRAME}"]`, PRELUDE_NAME).dispose();
  }

  /** The texts that this run required, within their bound. Only texts beyond ASCII: in others a unit is a byte. */
  get required(): RequiredTexts {
    return this.#required;
  }

  #compile(text: string, name: string): JSValueHandle {
    const total = this.#requiredCharacters + text.length;
    if (NOT_ASCII.test(text) && total <= SCRIPT_REQUIRED_TEXTS_MAX_CHARACTERS) {
      this.#requiredCharacters = total;
      this.#required.set(name, text);
    }
    return this.#vm.evalCode(text, name);
  }

  /** Installs a frame around the runs and saves the memory for `rewind`. */
  #stand(frame: string | undefined): void {
    // Handles that the machine creates lazily must exist before the memory is saved.
    const { global, undefined: none } = this.#vm;
    void [this.#vm.null, this.#vm.true, this.#vm.false];
    if (frame !== undefined) {
      const around = this.#vm.evalCode(frame, PRELUDE_NAME);
      const made = this.#vm.callFunction(around, none, global);
      this.#around = { begin: made.getProp("begin"), finish: made.getProp("finish") };
    }
    this.#mark = new Uint8Array(this.#memory.buffer).slice();
  }

  /** Removes everything that ran. Returns false if the machine's memory has grown; discard the machine then. */
  rewind(): boolean {
    this.#host = NOBODY;
    const memory = new Uint8Array(this.#memory.buffer);
    if (this.#mark?.byteLength !== memory.byteLength) return false;
    memory.set(this.#mark);
    this.#rejected.clear();
    this.#required.clear();
    this.#requiredCharacters = 0;
    return true;
  }

  begin({ globals, seed, name }: RunBeginning, host: MachineHost): void {
    this.#host = host;
    this.#call("begin", this.#vm.newString(globals), this.#vm.newNumber(seed), this.#vm.newString(name)).dispose();
    if (this.#around) this.#vm.callFunction(this.#around.begin, this.#vm.undefined).dispose();
  }

  /** Runs the script and its pending promises. */
  evaluate(source: string, name: string): void {
    this.#vm.evalCode(source, name).dispose();
    this.#runJobs();
  }

  /** Returns JSON of the named variables. */
  finish(names: readonly string[]): string {
    if (this.#around) this.#vm.callFunction(this.#around.finish, this.#vm.undefined).dispose();
    const list = JSON.stringify(names);
    if (this.#call("settle", this.#vm.newString(list)).consume((found) => found.toBoolean())) this.#runJobs();
    return this.#call("finish", this.#vm.newString(list)).consume(String);
  }

  /** Returns JSON of `{name?, message, stack?, code?, details?}`. */
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

/** A promise of the script was rejected and the script does not handle it. */
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
