/** A process to start. It gets only the file descriptors 0 to 2, and only the environment variables of `env`. */
export interface ProcessSpec {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** The user as which the process runs. Absent: the user of the controller. */
  readonly user?: { readonly uid: number; readonly gid: number };
  /** `reported`: `onOutput` receives it. `inherited`: the process uses the standard error of the controller. */
  readonly stderr: "reported" | "inherited";
  /** True if the process leads a process group. Then `kill` sends the signal to the whole group. */
  readonly isGroup: boolean;
}

/** Called with one piece of output at a time; nothing more is read from that pipe until it resolves. */
export type OnOutput = (bytes: Uint8Array) => void | Promise<void>;

export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface StartedProcess {
  /**
   * Resolves when the process has ended. `AppError("unavailable")` if it could not be started, or if the spawner ended.
   */
  readonly ended: Promise<ProcessEnd>;
  /** Resolves when the process has ended and `onOutput` has taken all of its output. Same errors as `ended`. */
  readonly drained: Promise<ProcessEnd>;
  /** Sends a signal. Does nothing if the process has ended; for a group, if all members have closed their output. */
  kill(signal: NodeJS.Signals): void;
}

/** Starts processes that inherit nothing from the controller. */
export interface Processes {
  start(spec: ProcessSpec, onOutput: OnOutput): StartedProcess;
}

type Pipe = "stdout" | "stderr";

/** Messages from the controller to the spawner. Each process has its own `id`, which is never reused. */
export type Order =
  | { readonly kind: "start"; readonly id: number; readonly spec: ProcessSpec }
  | { readonly kind: "taken"; readonly id: number; readonly pipe: Pipe }
  | { readonly kind: "kill"; readonly id: number; readonly signal: NodeJS.Signals };

/** Messages from the spawner to the controller. `failed` or `closed` is the last message with an `id`. */
export type Report =
  | { readonly kind: "started"; readonly id: number; readonly pid: number }
  | { readonly kind: "failed"; readonly id: number; readonly message: string }
  | { readonly kind: "output"; readonly id: number; readonly pipe: Pipe; readonly bytes: Uint8Array }
  | { readonly kind: "ended"; readonly id: number; readonly end: ProcessEnd }
  | { readonly kind: "closed"; readonly id: number };
