import { once } from "node:events";
import { Worker } from "node:worker_threads";

export interface SentBody {
  readonly url: string;
  readonly method: string;
  readonly type: string;
  readonly payload: string;
}

/** What the thread runs: it keeps a request until it is told to send it. */
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

/** Sends bodies from a thread of its own, so that the sender's work is not the receiver's. */
export class BodySender implements AsyncDisposable {
  readonly #worker = new Worker(PROGRAM, { eval: true });

  /** To be called before the receiver is measured. */
  async prepare({ payload, ...request }: SentBody): Promise<void> {
    const body = new TextEncoder().encode(payload);
    const ready = once(this.#worker, "message");
    this.#worker.postMessage({ ...request, body }, [body.buffer]);
    await ready;
  }

  /** The answer's code, or `ok`. */
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
