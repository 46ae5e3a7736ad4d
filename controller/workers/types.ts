import type { MessagePort } from "node:worker_threads";
import type { AppErrorOptions, ErrorCode } from "../../common/errors.ts";
import type { Value } from "../../common/value.ts";

/**
 * Tasks by name. A thread has one task at a time, even while that task waits. A task may run twice, so it must have no
 * effect except its answer.
 */
export type Tasks = Readonly<Record<string, (input: never) => unknown>>;

export type Input<T extends Tasks, N extends keyof T> = Parameters<T[N]>[0];
export type Output<T extends Tasks, N extends keyof T> = Awaited<ReturnType<T[N]>>;

type Carried = Value | undefined | bigint | Date | ArrayBuffer | SharedArrayBuffer | ArrayBufferView | MessagePort;

/** The type after structured cloning; `never` for functions, symbols and objects with methods. */
export type Cloned<T> = T extends Carried
  ? T
  : T extends ReadonlyMap<infer K, infer V>
    ? ReadonlyMap<Cloned<K>, Cloned<V>>
    : T extends ReadonlySet<infer V>
      ? ReadonlySet<Cloned<V>>
      : T extends (...given: never) => unknown
        ? never
        : T extends object
          ? { [K in keyof T]: Cloned<T[K]> }
          : never;

type IsCloneable<T> = [T] extends [Cloned<T>] ? true : false;

/** For `T extends CloneableTasks<T>`: a task whose input or output cannot be cloned is a type error. */
export type CloneableTasks<T extends Tasks> = {
  readonly [N in keyof T]: IsCloneable<Input<T, N>> extends true
    ? IsCloneable<Output<T, N>> extends true
      ? T[N]
      : "Its output cannot be cloned."
    : "Its input cannot be cloned.";
};

/**
 * True: the task is blocked. `briefly`: it may continue soon. Only `brieflyThreads` such tasks of a share count as
 * blocked.
 */
export type Stand = boolean | "briefly";

export interface RunOptions {
  /** The tenant of the task: tenants get the threads in rotation. */
  readonly tenant: string;
  /** Parts of the tenant to which the task belongs, from the larger to the smaller. Each has a share of the threads. */
  readonly share?: readonly string[];
  /** Timeout from the call to the answer, including the wait for a thread. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Returns true while the task is blocked, waiting for others. Within limits its thread then counts for no share. */
  readonly stands?: () => Stand;
  /** Returns true if the thread can do no other task after this one. It is asked when the task is done. */
  readonly spendsThread?: () => boolean;
  /** Ports of the input that are transferred to the thread. */
  readonly transfer?: readonly MessagePort[];
}

/** The pool as areas see it. */
export interface Workers<T extends Tasks> {
  /**
   * Runs the task in a thread and returns its answer. Errors: an `AppError` that the task throws; `limited` if the
   * queue is full; `deadline`; `cancelled` by the signal; `too_large` if the task exhausts its thread's heap;
   * `unavailable` if the pool closes or no thread starts; `internal` if the task throws another error, ends its thread,
   * or cannot be sent.
   */
  run<N extends keyof T & string>(name: N, input: Input<T, N>, options: RunOptions): Promise<Output<T, N>>;
}

/** Message from the pool to a thread. */
export interface TaskMessage {
  readonly name: string;
  readonly input: unknown;
  readonly transfer?: readonly MessagePort[] | undefined;
}

/** Message from a thread to the pool: `begun` once for each task, then one of the others. */
export type ThreadMessage =
  | { readonly kind: "begun" }
  | { readonly kind: "done"; readonly output: unknown }
  | { readonly kind: "failed"; readonly error: ThrownError };

/** An error sent between threads; `code` is set for an `AppError`. */
export interface ThrownError {
  readonly code?: ErrorCode;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly details?: AppErrorOptions["details"];
}
