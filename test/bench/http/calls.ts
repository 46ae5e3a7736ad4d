import { Agent, request } from "node:http";

const FORM = "application/x-www-form-urlencoded";
const JSON_TYPE = "application/json";

export interface Reply {
  readonly status: number;
  readonly text: string;
}

export interface CallsOptions {
  readonly port: number;
  readonly atOnce: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** HTTP calls at the least cost for the caller: connections stay open, and bodies are made before. */
export class Calls {
  readonly #options: CallsOptions;
  readonly #agent: Agent;

  constructor(options: CallsOptions) {
    this.#options = options;
    this.#agent = new Agent({ keepAlive: true, maxSockets: options.atOnce });
  }

  get(path: string): Promise<Reply> {
    return this.#call("GET", path);
  }

  form(path: string, fields: Readonly<Record<string, string>>): Promise<Reply> {
    return this.#call("POST", path, { type: FORM, text: new URLSearchParams(fields).toString() });
  }

  json(path: string, value: unknown, method: "POST" | "PUT" | "PATCH" = "POST"): Promise<Reply> {
    return this.#call(method, path, { type: JSON_TYPE, text: JSON.stringify(value) });
  }

  close(): void {
    this.#agent.destroy();
  }

  #call(method: string, path: string, body?: { readonly type: string; readonly text: string }): Promise<Reply> {
    const { port, headers } = this.#options;
    const about =
      body === undefined ? {} : { "content-type": body.type, "content-length": Buffer.byteLength(body.text) };
    return new Promise((resolve, reject) => {
      const call = request(
        { agent: this.#agent, port, path, method, host: "127.0.0.1", headers: { ...headers, ...about } },
        (response) => {
          const parts: Buffer[] = [];
          response.on("data", (part: Buffer) => parts.push(part));
          response.on("error", reject);
          response.on("end", () =>
            resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString() }),
          );
        },
      );
      call.on("error", reject);
      call.end(body?.text);
    });
  }
}

/** Throws if the reply is a failure, because a bench of failures measures nothing. */
export async function succeeding(reply: Promise<Reply>): Promise<Reply> {
  const { status, text } = await reply;
  if (status < 200 || status > 299 || text.startsWith('{"status":"error"') || text.startsWith('{"status":"signin"'))
    throw new Error(`${status}: ${text.slice(0, 1_000)}`);
  return { status, text };
}
