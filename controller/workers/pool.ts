import type { Logger } from "pino";
import { withinTime } from "../../common/concurrency.ts";
import { AppError, errorText } from "../../common/errors.ts";
import {
  WORKER_END_DEADLINE_MS,
  WORKER_HEAP_MAX_BYTES,
  WORKER_IDLE_MAX_MS,
  WORKER_QUEUE_MAX_TASKS,
  WORKER_QUEUE_TENANT_MAX_TASKS,
  WORKER_TASK_THREADS_MAX,
} from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import { type QueueBound, ShareQueue } from "./queue.ts";
import { type ShareLimits, Shares } from "./shares.ts";
import { cancelled, Task } from "./task.ts";
import { isOutOfMemory, TaskThread } from "./thread.ts";
import type { CloneableTasks, Input, Output, RunOptions, Tasks, ThreadMessage, ThrownError, Workers } from "./types.ts";

export interface PoolOptions {
  /** The built file that calls `serveTasks` with the same table of tasks. */
  readonly file: URL | string;
  /** Maximum number of threads. A thread starts when there is a task for it. */
  readonly threads: number;
  /** Passed to every thread as its `workerData`. */
  readonly data?: unknown;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  /** Absent values: the bounds of `common/limits`. */
  readonly limits?: Partial<PoolLimits>;
}

export interface PoolLimits extends QueueBound {
  readonly heapBytes: number;
  /** Maximum number of additional threads, used while as many tasks are blocked. */
  readonly standingThreads: number;
  /** Bounds of a tenant, then of each part of it that `share` of a task names. A level without an entry has none. */
  readonly shares: readonly ShareLimits[];
}

/** Bounds of a pool in which a tenant may have all threads. */
const LIMITS: PoolLimits = {
  tasks: WORKER_QUEUE_MAX_TASKS,
  tasksLimit: "WORKER_QUEUE_MAX_TASKS",
  heapBytes: WORKER_HEAP_MAX_BYTES,
  standingThreads: 0,
  shares: [
    {
      threads: Number.POSITIVE_INFINITY,
      standingThreads: 0,
      leavesRoom: false,
      tasks: WORKER_QUEUE_TENANT_MAX_TASKS,
      tasksLimit: "WORKER_QUEUE_TENANT_MAX_TASKS",
    },
  ],
};

/** A thread and its current task. */
interface Place {
  readonly thread: TaskThread;
  task: Task | undefined;
  /** Stops the timer of an idle thread. */
  wake?: () => void;
  /** True if the thread was told to end because it was idle, or spent. */
  retired?: boolean;
}

/**
 * Runs tasks in threads, one task per thread at a time. Tenants, and the parts of each tenant, take turns. A task is
 * stopped by terminating its thread. The end of a thread fails only the task that it had begun; the next tasks get a
 * new thread.
 */
export class WorkerPool<T extends Tasks & CloneableTasks<T>> implements Workers<T> {
  readonly #options: PoolOptions;
  readonly #limits: PoolLimits;
  readonly #queue: ShareQueue<Task>;
  /** All existing threads, including those that are told to end. */
  readonly #places = new Set<Place>();
  readonly #idle = new Set<Place>();
  #ended = 0;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#limits = { ...LIMITS, ...options.limits };
    this.#queue = new ShareQueue(this.#limits);
  }

  /** Number of tasks that have a thread. */
  get running(): number {
    return this.#running().length;
  }

  /** Number of tasks without a thread. */
  get waiting(): number {
    return this.#queue.size;
  }

  /** Number of existing threads. */
  get threads(): number {
    return this.#places.size;
  }

  /** Number of threads that crashed or had to be terminated since the pool was created. */
  get ended(): number {
    return this.#ended;
  }

  async run<N extends keyof T & string>(name: N, input: Input<T, N>, options: RunOptions): Promise<Output<T, N>> {
    if (options.signal?.aborted) throw cancelled(name);
    if (this.#closed) throw closing();
    const { clock } = this.#options;
    const task = new Task({ ...options, name, input, clock, onGivenUp: (given, error) => this.#giveUp(given, error) });
    try {
      this.#queue.add(task);
    } catch (error) {
      task.fail(error as AppError);
    }
    this.#dispatch();
    return (await task.answer) as Output<T, N>;
  }

  /** Call when a task is blocked: another one may start. */
  heed(): void {
    this.#dispatch();
  }

  /**
   * Starts no more tasks; waiting tasks fail as `unavailable`. Running tasks have `timeoutMs`; then they are terminated
   * and fail in the same way. Idempotent.
   */
  async close(timeoutMs: number): Promise<void> {
    const { clock } = this.#options;
    this.#closed = true;
    for (let task = this.#queue.take(); task; task = this.#queue.take()) task.fail(closing());
    await withinTime(clock, Promise.allSettled(this.#running().map(({ answer }) => answer)), timeoutMs);
    for (const task of this.#running()) task.fail(closing());
    const exits = Array.from(this.#places, ({ thread }) => {
      thread.end();
      return thread.exited;
    });
    await withinTime(clock, Promise.all(exits), WORKER_END_DEADLINE_MS);
  }

  #running(): readonly Task[] {
    return Array.from(this.#places, ({ task }) => task).filter((task) => task !== undefined && !task.settled) as Task[];
  }

  #dispatch(): void {
    while (this.#queue.size > 0) {
      const shares = this.#shares();
      if (!shares.hasRoom) return;
      const task = this.#queue.take((path) => shares.mayBegin(path));
      if (!task) return;
      // Uses the most recently used thread, so that threads needed only for a peak become idle and end.
      this.#begin(task, [...this.#idle].at(-1));
    }
  }

  /** Ending threads count until they are gone. */
  #shares(): Shares {
    const busy = Array.from(this.#places)
      .filter((place) => !this.#idle.has(place))
      .map(({ task }) => ({ path: task?.path ?? [], stands: task?.stands ?? false }));
    const { standingThreads, shares } = this.#limits;
    return new Shares({ threads: this.#options.threads, standingThreads }, shares, busy);
  }

  #newPlace(): Place {
    const thread = new TaskThread({
      file: this.#options.file,
      heapMaxBytes: this.#limits.heapBytes,
      data: this.#options.data,
      onMessage: (message) => this.#hear(place, message),
      onExit: (error) => this.#lose(place, error),
    });
    const place: Place = { thread, task: undefined };
    this.#places.add(place);
    return place;
  }

  #begin(task: Task, idle: Place | undefined): void {
    try {
      this.#send(task, idle ?? this.#newPlace());
    } catch (error) {
      task.fail(notBegun(task.name, error));
    }
  }

  #send(task: Task, place: Place): void {
    this.#leaveIdle(place);
    task.threads += 1;
    task.begun = false;
    try {
      place.thread.send(task);
    } catch (error) {
      this.#rest(place);
      return task.fail(unsendable(task, error));
    }
    place.task = task;
  }

  #rest(place: Place): void {
    place.task = undefined;
    place.wake = this.#options.clock.after(WORKER_IDLE_MAX_MS, () => this.#retire(place));
    this.#idle.add(place);
  }

  #leaveIdle(place: Place): void {
    this.#idle.delete(place);
    place.wake?.();
  }

  #retire(place: Place): void {
    this.#leaveIdle(place);
    place.retired = true;
    place.thread.end();
  }

  #hear(place: Place, message: ThreadMessage): void {
    const { task } = place;
    // The task was given up: its thread is told to end and gets no other task.
    if (!task || task.settled) return;
    if (message.kind === "begun") {
      task.begun = true;
      return;
    }
    if (task.spendsThread()) this.#retire(place);
    else this.#rest(place);
    if (message.kind === "done") task.done(message.output);
    else task.fail(errorOf(task, message.error));
    this.#dispatch();
  }

  #giveUp(task: Task, error: AppError): void {
    task.fail(error);
    this.#queue.delete(task);
    for (const place of this.#places) if (place.task === task) place.thread.end();
  }

  /** Removes a thread that has ended. */
  #lose(place: Place, error: Error | undefined): void {
    const { task } = place;
    this.#places.delete(place);
    this.#leaveIdle(place);
    if (!this.#closed && !place.retired) {
      this.#ended += 1;
      const facts = { task: task?.name, tenant: task?.tenant, ...(error && { err: error }) };
      this.#options.log.warn(facts, "a worker thread ended");
    }
    if (task && !task.settled) this.#lostWith(task, error);
    this.#dispatch();
  }

  #lostWith(task: Task, error: Error | undefined): void {
    if (!this.#closed && !task.begun && task.threads < WORKER_TASK_THREADS_MAX) this.#queue.putBack(task);
    else task.fail(this.#lost(task, error));
  }

  #lost({ name, begun }: Task, cause: Error | undefined): AppError {
    if (!isOutOfMemory(cause)) return begun ? brokenOff(name, cause) : notBegun(name, cause);
    const message = `The task ${name} needs more than the ${this.#limits.heapBytes} bytes that a thread's heap has.`;
    return new AppError("too_large", message, { cause, details: { limit: "WORKER_HEAP_MAX_BYTES" } });
  }
}

function closing(): AppError {
  return new AppError("unavailable", "The worker threads are being ended.");
}

function brokenOff(name: string, cause: Error | undefined): AppError {
  return new AppError("internal", `The task ${name} failed: its thread ended.`, { cause });
}

function notBegun(name: string, cause: unknown): AppError {
  return new AppError("unavailable", `No thread began the task ${name}.`, { cause });
}

function unsendable({ name }: Task, cause: unknown): AppError {
  return new AppError("internal", `The input of the task ${name} cannot be sent: ${errorText(cause)}`, { cause });
}

function errorOf({ name }: Task, { code, message, stack, details }: ThrownError): AppError {
  if (code) return new AppError(code, message, details && { details });
  const cause = Object.assign(new Error(message), stack !== undefined && { stack });
  return new AppError("internal", `The task ${name} failed: ${message}`, { cause });
}
