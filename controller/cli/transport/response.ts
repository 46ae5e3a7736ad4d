import type { ClientRequest, IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import type { FetchBody, FetchRead, FetchResponse } from "../../../common/client/index.ts";
import { closedError } from "./failures.ts";

/** Statuses of answers without a body. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

interface Exchanged {
  readonly request: ClientRequest;
  readonly method: string;
}

/** The answer as `fetch` gives it. Its body is decompressed by the first read. */
export function responseOf(response: IncomingMessage, { request, method }: Exchanged): FetchResponse {
  const { statusCode: status = 0, headers } = response;
  // The reader gets the errors; without a listener, they end the process.
  response.on("error", () => undefined);
  // The rest of an upload is not wanted any more.
  response.once("end", () => {
    if (!request.writableFinished) request.destroy();
  });
  const isBodiless = method === "HEAD" || BODILESS.has(status);
  if (isBodiless) response.resume();
  return {
    status,
    headers: { get: (name) => textOf(headers[name.toLowerCase()]) },
    body: isBodiless ? null : new ResponseBody(response),
  };
}

function textOf(value: string | readonly string[] | undefined): string | null {
  if (value === undefined) return null;
  return typeof value === "string" ? value : value.join(", ");
}

/** A body that is read piece by piece. A `ReadableStream` would take longer to load than a short answer to arrive. */
class ResponseBody implements FetchBody {
  readonly #response: IncomingMessage;
  #pieces: Promise<AsyncIterator<Uint8Array>> | undefined;

  constructor(response: IncomingMessage) {
    this.#response = response;
  }

  getReader(): ReturnType<FetchBody["getReader"]> {
    return { read: () => this.#read(), cancel: () => this.cancel(), releaseLock: () => undefined };
  }

  /** Closes the connection, unless the answer has arrived as a whole. */
  cancel(): Promise<void> {
    this.#response.destroy();
    return Promise.resolve();
  }

  async #read(): Promise<FetchRead> {
    try {
      const pieces = await (this.#pieces ??= piecesOf(this.#response));
      const { done, value } = await pieces.next();
      return done === true ? { done } : { done: false, value };
    } catch (error) {
      throw closedError(error);
    }
  }
}

async function piecesOf(response: IncomingMessage): Promise<AsyncIterator<Uint8Array>> {
  const content = await decompressed(response);
  return (content as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
}

async function decompressed(response: IncomingMessage): Promise<Readable> {
  const coding = response.headers["content-encoding"]?.toLowerCase();
  if (coding !== "gzip" && coding !== "x-gzip") return response;
  const [{ pipeline }, { constants, createGunzip }] = await Promise.all([import("node:stream"), import("node:zlib")]);
  // As browsers do it: what came of an answer that was cut off is read, too.
  const flush = constants.Z_SYNC_FLUSH;
  return pipeline(response, createGunzip({ flush, finishFlush: flush }), () => undefined);
}
