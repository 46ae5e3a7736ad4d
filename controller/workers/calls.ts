import { MessageChannel, type MessagePort, receiveMessageOnPort } from "node:worker_threads";

/**
 * Calls that a task makes to the thread that runs the pool: the task's thread stands still until the answer is there,
 * the other one answers when it can.
 */
export interface CallLine {
  /** For the task's input, and to be transferred with it. */
  readonly port: MessagePort;
  readonly state: SharedArrayBuffer;
  /** Wakes a task that waits. No call is made from here on, also none that is on its way. */
  stop(): void;
  /** Stops it, if it is not. */
  close(): void;
}

export interface CallRequest {
  readonly name: string;
  /** JSON. */
  readonly args: string;
  readonly at?: string | undefined;
}

/** Cells of the shared state. */
const ANSWERS = 0;
const STOPPED = 1;
const CELLS = 2;

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
  }

  get stopped(): boolean {
    return Atomics.load(this.#cells, STOPPED) === 1;
  }

  /** Waits for the answer; undefined when the line is stopped. */
  call(request: CallRequest): string | undefined {
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
