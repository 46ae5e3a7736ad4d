import type { MessagePort } from "node:worker_threads";
import type { AppErrorOptions, ErrorCode } from "../../common/errors.ts";
import type { Value } from "../../common/value.ts";

/**
 * Tasks by name. A thread has one task at a time, also while that one waits. A task may run twice: its answer is all it
 * does.
 */
export type Tasks = Readonly<Record<string, (input: never) => unknown>>;

export type Input<T extends Tasks, N extends keyof T> = Parameters<T[N]>[0];
export type Output<T extends Tasks, N extends keyof T> = Awaited<ReturnType<T[N]>>;

type Carried = Value | undefined | bigint | Date | ArrayBuffer | SharedArrayBuffer | ArrayBufferView | MessagePort;

/** The type as structured cloning brings it to the other side; `never` for functions, symbols and what has methods. */
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

/** `briefly`: it may go on soon, and counts as standing still within a limit of its own. */
export type Stand = boolean | "briefly";

export interface RunOptions {
  /** Whose task it is: tenants get the threads in rotation. */
  readonly tenant: string;
  /** Parts of the tenant whose task it is, from the larger to the smaller: each has its share of the threads. */
  readonly share?: readonly string[];
  /** From the call to the answer, waiting included. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Whether the task stands still just now, for what others do: within limits its thread then counts for nobody. */
  readonly stands?: () => Stand;
  /** Ports of the input, which go over to the thread. */
  readonly transfer?: readonly MessagePort[];
}

/** What areas are given of the pool. */
export interface Workers<T extends Tasks> {
  /**
   * What the task answers, run in a thread. Errors: an `AppError` that the task throws; `limited` while the queue is
   * full; `deadline`; `cancelled` by the signal; `too_large` when the task exhausts its thread's heap; `unavailable`
   * when the pool closes or no thread begins; `internal` when the task throws something else, ends its thread, or
   * cannot be sent.
   */
  run<N extends keyof T & string>(name: N, input: Input<T, N>, options: RunOptions): Promise<Output<T, N>>;
}

/** From the pool to a thread. */
export interface TaskMessage {
  readonly name: string;
  readonly input: unknown;
  readonly transfer?: readonly MessagePort[] | undefined;
}

/** From a thread to the pool: `begun` once for each task, then one of the others. */
export type ThreadMessage =
  | { readonly kind: "begun" }
  | { readonly kind: "done"; readonly output: unknown }
  | { readonly kind: "failed"; readonly error: ThrownError };

/** An error on its way between threads; `code` for an `AppError`. */
export interface ThrownError {
  readonly code?: ErrorCode;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly details?: AppErrorOptions["details"];
}
