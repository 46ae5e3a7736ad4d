import { once } from "node:events";
import type { ClientRequest } from "node:http";
import type { FetchInit } from "../../../common/client/index.ts";

/** Sends the body of a request, and ends it. `fail` gets the error of a stream that fails. */
export function sendBody(request: ClientRequest, body: FetchInit["body"], fail: (error: unknown) => void): void {
  if (body === undefined) request.end();
  else if (typeof body === "string" || body instanceof Uint8Array) {
    request.setHeader("content-length", Buffer.byteLength(body));
    request.end(body);
  } else {
    if (body instanceof Blob) request.setHeader("content-length", body.size);
    sendStream(request, body instanceof Blob ? body.stream() : body).catch(fail);
  }
}

/** Asks for the next piece when the connection takes it. When the request closes, the source is told. */
async function sendStream(request: ClientRequest, stream: ReadableStream<Uint8Array>): Promise<void> {
  const reader = stream.getReader();
  const closed = new AbortController();
  request.once("close", () => {
    closed.abort();
    reader.cancel().catch(() => undefined);
  });
  for (;;) {
    const { done, value } = await reader.read();
    if (request.destroyed) return;
    if (done) {
      request.end();
      return;
    }
    if (!request.write(value)) await drained(request, closed.signal);
  }
}

async function drained(request: ClientRequest, signal: AbortSignal): Promise<void> {
  await once(request, "drain", { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
