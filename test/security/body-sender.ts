import { once } from "node:events";
import { Worker } from "node:worker_threads";

export interface SentBody {
  readonly url: string;
  readonly method: string;
  readonly type: string;
  readonly payload: string;
}

/** Program of the thread. It holds a request until it is told to send it. */
const PROGRAM = `
const { parentPort } = require("node:worker_threads");
let request;
parentPort.on("message", async (message) => {
  if (message !== "send") {
    request = message;
    parentPort.postMessage("ready");
    return;
  }
  try {
    const { url, method, type, body } = request;
    const answer = await fetch(url, { method, headers: { "content-type": type, connection: "close" }, body });
    parentPort.postMessage(await answer.text());
  } catch (error) {
    parentPort.postMessage(JSON.stringify({ status: "error", code: "connection", message: String(error) }));
  }
});`;

/** Sends bodies from its own thread, so that the work of the sender is not measured with that of the receiver. */
export class BodySender implements AsyncDisposable {
  readonly #worker = new Worker(PROGRAM, { eval: true });

  /** Call before the receiver is measured. */
  async prepare({ payload, ...request }: SentBody): Promise<void> {
    const body = new TextEncoder().encode(payload);
    const ready = once(this.#worker, "message");
    this.#worker.postMessage({ ...request, body }, [body.buffer]);
    await ready;
  }

  /** Returns the code of the answer, or `ok`. */
  async send(): Promise<string> {
    const answered = once(this.#worker, "message") as Promise<[string]>;
    this.#worker.postMessage("send");
    const { status, code } = JSON.parse((await answered)[0]) as { status: string; code?: string };
    return status === "ok" ? "ok" : (code ?? status);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}
