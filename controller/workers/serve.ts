import { parentPort, workerData } from "node:worker_threads";
import { AppError, errorText } from "../../common/errors.ts";
import type { CloneableTasks, TaskMessage, Tasks, ThreadMessage, ThrownError } from "./types.ts";

/** Makes this thread part of a pool. Call it once, in the thread's main file. */
export function serveTasks<const T extends Tasks & CloneableTasks<T>>(tasks: T): void {
  const port = parentPort;
  if (port === null) throw new Error("This file runs in a worker thread.");
  const post = (message: ThreadMessage): void => port.postMessage(message);
  port.on("message", ({ name, input }: TaskMessage) => {
    post({ kind: "begun" });
    const done = (output: unknown): void => post({ kind: "done", output });
    const failed = (error: unknown): void => postFailure(post, thrown(error));
    try {
      const output = runTask(tasks, name, input);
      if (output instanceof Promise) output.then(done).catch(failed);
      else done(output);
    } catch (error) {
      failed(error);
    }
  });
}

/** The `data` of the pool's options. */
export function threadData(): unknown {
  return workerData;
}

function runTask(tasks: Tasks, name: string, input: unknown): unknown {
  const task = tasks[name];
  if (task === undefined) throw new AppError("internal", `The thread knows no task ${name}.`);
  return task(input as never);
}

function thrown(error: unknown): ThrownError {
  if (error instanceof AppError) return { message: error.message, code: error.code, details: error.details };
  return { message: errorText(error), stack: error instanceof Error ? error.stack : undefined };
}

/** Details may hold any value. An error that cannot be sent with its details is sent without them. */
function postFailure(post: (message: ThreadMessage) => void, error: ThrownError): void {
  try {
    post({ kind: "failed", error });
  } catch {
    post({ kind: "failed", error: { ...error, details: undefined } });
  }
}
