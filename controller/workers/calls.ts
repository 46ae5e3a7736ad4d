import { MessageChannel, type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { ownThread } from "./processor.ts";

/**
 * Calls from a task to the thread that runs the pool. The task's thread blocks until the answer arrives; the other
 * thread answers asynchronously.
 */
export interface CallLine {
  /** Pass it in the task's input, and transfer it. */
  readonly port: MessagePort;
  readonly state: SharedArrayBuffer;
  /**
   * Counts the points at which the task could be stopped. Undefined while none is expected: outside of `within`, and
   * while the task waits for an answer.
   */
  readonly pulse: number | undefined;
  /** Number of the task's thread (`ownThread`); undefined before the task has begun. */
  readonly thread: number | undefined;
  /** Wakes a waiting task. From then on no call begins, not even one that was sent before. */
  stop(): void;
  /** Closes the line; stops it first if necessary. */
  close(): void;
}

export interface CallRequest {
  readonly name: string;
  /** JSON of the arguments. */
  readonly args: string;
  readonly at?: string | undefined;
}

/** Indexes of the cells of the shared state. */
const ANSWERS = 0;
const STOPPED = 1;
const BEATS = 2;
const EXPECTED = 3;
const THREAD = 4;
const CELLS = 5;

/** `answer` must not throw. */
export function openCallLine(answer: (request: CallRequest) => Promise<string>): CallLine {
  const { port1, port2 } = new MessageChannel();
  const state = new SharedArrayBuffer(CELLS * Int32Array.BYTES_PER_ELEMENT);
  const cells = new Int32Array(state);
  const wake = (): void => {
    Atomics.add(cells, ANSWERS, 1);
    Atomics.notify(cells, ANSWERS);
  };
  const stop = (): void => {
    Atomics.store(cells, STOPPED, 1);
    wake();
  };
  port1.on("message", (request: CallRequest) => {
    if (Atomics.load(cells, STOPPED) === 1) return;
    void answer(request).then((text) => {
      port1.postMessage(text);
      wake();
    });
  });
  port1.unref();
  return {
    port: port2,
    state,
    get pulse() {
      return Atomics.load(cells, EXPECTED) === 1 ? Atomics.load(cells, BEATS) : undefined;
    },
    get thread() {
      return Atomics.load(cells, THREAD) || undefined;
    },
    stop,
    close: () => {
      stop();
      port1.close();
    },
  };
}

/** The task's end of a line. */
export class CallEnd {
  readonly #port: MessagePort;
  readonly #cells: Int32Array;

  constructor({ port, state }: Pick<CallLine, "port" | "state">) {
    this.#port = port;
    this.#cells = new Int32Array(state);
    Atomics.store(this.#cells, THREAD, ownThread() ?? 0);
  }

  /** Check it at every point at which the task can be stopped. */
  get stopped(): boolean {
    Atomics.add(this.#cells, BEATS, 1);
    return Atomics.load(this.#cells, STOPPED) === 1;
  }

  /** Runs work in which such checks are expected. */
  within<T>(work: () => T): T {
    this.#expect(1);
    try {
      return work();
    } finally {
      this.#expect(0);
    }
  }

  /** Waits for the answer; `undefined` if the line is stopped. */
  call(request: CallRequest): string | undefined {
    const expected = Atomics.load(this.#cells, EXPECTED);
    this.#expect(0);
    try {
      return this.#answer(request);
    } finally {
      this.#expect(expected);
    }
  }

  #expect(expected: number): void {
    Atomics.add(this.#cells, BEATS, 1);
    Atomics.store(this.#cells, EXPECTED, expected);
  }

  #answer(request: CallRequest): string | undefined {
    if (this.stopped) return undefined;
    this.#port.postMessage(request);
    for (;;) {
      const seen = Atomics.load(this.#cells, ANSWERS);
      if (this.stopped) return undefined;
      const received = receiveMessageOnPort(this.#port) as { readonly message: string } | undefined;
      if (received) return received.message;
      Atomics.wait(this.#cells, ANSWERS, seen);
    }
  }
}
