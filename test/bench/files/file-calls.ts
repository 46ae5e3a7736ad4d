import { once } from "node:events";
import { Agent, request, type IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";

const BOUNDARY = "bench-of-files";
const CALL_DEADLINE_MS = 300_000;

/** A content that is made while it is sent. */
export interface Content {
  readonly size: number;
  readonly pieces: () => Iterable<Buffer>;
}

interface Body extends Content {
  readonly type: string;
}

/** How a server writes and reads a file. */
interface Ways {
  readonly write: (name: string, content: Content) => { readonly path: string; readonly body: Body };
  readonly read: (name: string) => string;
}

interface FileCallsOptions {
  readonly port: number;
  readonly atOnce: number;
  readonly ways: Ways;
}

/** Calls whose bodies and answers are streams, on connections that stay open. */
export class FileCalls {
  readonly #options: FileCallsOptions;
  readonly #agent: Agent;

  constructor(options: FileCallsOptions) {
    this.#options = options;
    this.#agent = new Agent({ keepAlive: true, maxSockets: options.atOnce });
  }

  async write(name: string, content: Content): Promise<void> {
    const { path, body } = this.#options.ways.write(name, content);
    requireSuccess(await text(await this.send("PUT", path, body)));
  }

  /** Throws if the file has another size. */
  async read(name: string, size: number): Promise<void> {
    const answer = await this.send("GET", this.#options.ways.read(name));
    let bytes = 0;
    for await (const piece of answer as AsyncIterable<Buffer>) bytes += piece.length;
    if (bytes !== size) throw new Error(`${name} has ${bytes} instead of ${size} bytes.`);
  }

  /** Resolves when the head of the answer has arrived. Throws if it is not 200. */
  async send(method: string, path: string, body?: Body): Promise<IncomingMessage> {
    const { port } = this.#options;
    const headers = body === undefined ? {} : { "content-type": body.type, "content-length": body.size };
    const signal = AbortSignal.timeout(CALL_DEADLINE_MS);
    const call = request({ agent: this.#agent, host: "127.0.0.1", port, path, method, headers, signal });
    // A pipeline would wait until the answer is read.
    Readable.from(body?.pieces() ?? []).pipe(call);
    const [answer] = (await once(call, "response")) as [IncomingMessage];
    if (answer.statusCode !== 200) throw new Error(`${method} ${path}: ${answer.statusCode} ${await text(answer)}`);
    return answer;
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** A file of odp is one part of a form. */
export function odpWays(folder: string, session: string): Ways {
  const path = (name: string): string => `/fs${folder}/${name}?sessionid=${session}`;
  return {
    write: (name, content) => ({ path: path(name), body: formOf(name, content) }),
    read: (name) => `${path(name)}&type=open`,
  };
}

/** A bare server takes the bytes as they are. */
export const BARE_WAYS: Ways = {
  write: (name, content) => ({ path: `/${name}`, body: { ...content, type: "application/octet-stream" } }),
  read: (name) => `/${name}`,
};

export function formOf(filename: string, { size, pieces }: Content): Body {
  const disposition = `content-disposition: form-data; name="uploadfile"; filename="${filename}"`;
  const head = Buffer.from(`--${BOUNDARY}\r\n${disposition}\r\ncontent-type: application/octet-stream\r\n\r\n`);
  const tail = Buffer.from(`\r\n--${BOUNDARY}--\r\n`);
  return {
    type: `multipart/form-data; boundary=${BOUNDARY}`,
    size: head.length + size + tail.length,
    *pieces() {
      yield head;
      yield* pieces();
      yield tail;
    },
  };
}

/** Throws if the envelope of odp reports a failure; a bare server answers without a text. */
export function requireSuccess(answer: string): void {
  if (answer !== "" && !answer.startsWith('{"status":"ok"')) throw new Error(answer.slice(0, 1_000));
}
