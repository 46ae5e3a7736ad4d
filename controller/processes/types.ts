/** A process to start. It gets descriptors 0 to 2 and no others, and no variables but those named here. */
export interface ProcessSpec {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** The user it runs as; the controller's own when absent. */
  readonly user?: { readonly uid: number; readonly gid: number };
  /** `reported`: `onOutput` gets it. `inherited`: it goes where the controller's own goes. */
  readonly stderr: "reported" | "inherited";
  /** True: it leads a process group, and `kill` ends the whole group. */
  readonly isGroup: boolean;
}

/** Called with one piece of output at a time; nothing more is read from that pipe until it resolves. */
export type OnOutput = (bytes: Uint8Array) => void | Promise<void>;

export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface StartedProcess {
  /** Resolves when the process has ended. `AppError("unavailable")` when it could not be started or the spawner ended. */
  readonly ended: Promise<ProcessEnd>;
  /** Resolves when it has ended and `onOutput` has taken all of its output. Fails as `ended` does. */
  readonly drained: Promise<ProcessEnd>;
  /** Sends a signal; does nothing once the process has ended, or once a group has closed its output. */
  kill(signal: NodeJS.Signals): void;
}

/** Starts processes that inherit nothing from the controller. */
export interface Processes {
  start(spec: ProcessSpec, onOutput: OnOutput): StartedProcess;
}

type Pipe = "stdout" | "stderr";

/** Messages of the controller to the spawner. `id` is given once for each process. */
export type Order =
  | { readonly kind: "start"; readonly id: number; readonly spec: ProcessSpec }
  | { readonly kind: "taken"; readonly id: number; readonly pipe: Pipe }
  | { readonly kind: "kill"; readonly id: number; readonly signal: NodeJS.Signals };

/** Messages of the spawner to the controller. After `failed` or `closed` no other message has that `id`. */
export type Report =
  | { readonly kind: "started"; readonly id: number; readonly pid: number }
  | { readonly kind: "failed"; readonly id: number; readonly message: string }
  | { readonly kind: "output"; readonly id: number; readonly pipe: Pipe; readonly bytes: Uint8Array }
  | { readonly kind: "ended"; readonly id: number; readonly end: ProcessEnd }
  | { readonly kind: "closed"; readonly id: number };
