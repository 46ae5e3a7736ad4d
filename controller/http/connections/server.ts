import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { AppError } from "../../../common/errors.ts";
import {
  HTTP_CONNECTIONS_MAX,
  HTTP_DEADLINE_CHECK_MS,
  HTTP_HEAD_DEADLINE_MS,
  HTTP_KEEP_ALIVE_MS,
  HTTP_UPLOAD_DEADLINE_MS,
} from "../../../common/limits.ts";
import { BROWSER_LINES } from "./browsers.ts";
import { failureEnvelope } from "../answer/failure.ts";
import type { Pipelines } from "./pipeline.ts";
import type { SilenceWatch } from "./silence.ts";

export interface ServerDeadlines {
  /** Deadline for the head of a request. */
  readonly headMs?: number;
}

export interface ServerBounds {
  readonly pipelines: Pipelines;
  readonly silence: SilenceWatch;
  readonly deadlines?: ServerDeadlines | undefined;
}

/** Node's HTTP server, with the limits of this interface on connections. */
export function boundedServer(handle: RequestListener, { pipelines, silence, deadlines }: ServerBounds): Server {
  const { headMs = HTTP_HEAD_DEADLINE_MS } = deadlines ?? {};
  const options = {
    // `SilenceWatch` closes all connections but those of uploads earlier.
    requestTimeout: HTTP_UPLOAD_DEADLINE_MS,
    headersTimeout: headMs,
    keepAliveTimeout: HTTP_KEEP_ALIVE_MS,
    // Deadlines of connections take effect only when they are checked.
    connectionsCheckingInterval: HTTP_DEADLINE_CHECK_MS,
  };
  const bounded = pipelines.bounded(handle);
  const server = createServer(options, (request, response) => {
    silence.receiving(request);
    if (namesOneHost(request)) {
      closeWhenReceived(request, response);
      return bounded(request, response);
    }
    refuseConnection(request.socket, { status: "400 Bad Request", failure: TWO_HOSTS });
  });
  server.on("connection", (socket) => silence.watch(socket));
  server.maxConnections = HTTP_CONNECTIONS_MAX;
  return server;
}

/**
 * If the client wants the connection closed, it stays open until the whole body has arrived, even if the answer is
 * sent. If a socket is closed while bytes arrive, the connection is reset, and the client loses an early answer (RFC
 * 9112, 9.6).
 */
function closeWhenReceived(request: IncomingMessage, response: ServerResponse): void {
  const hasBody = request.headers["transfer-encoding"] !== undefined || Number(request.headers["content-length"]) > 0;
  if (response.shouldKeepAlive || !hasBody) return;
  response.shouldKeepAlive = true;
  response.once("close", () => {
    if (request.complete) request.socket.end();
    else request.once("end", () => request.socket.end()).resume();
  });
}

const TWO_HOSTS = new AppError("invalid", "The request has more than one Host header.");

/** A proxy may have checked one of two host names, while this server would use the other (RFC 9112, 3.2). */
export function namesOneHost({ rawHeaders }: IncomingMessage): boolean {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) if (rawHeaders[at]?.toLowerCase() === "host") count++;
  return count <= 1;
}

/** Answers bytes that are no HTTP. */
export function refuseGarbage(error: Error & { readonly code?: string }, socket: Duplex): void {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  refuseConnection(socket, garbage(error.code));
}

interface Refusal {
  readonly status: string;
  readonly failure: AppError;
}

function refuseConnection(socket: Duplex, { status, failure }: Refusal): void {
  const body = JSON.stringify(failureEnvelope(failure, ""));
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${String(Buffer.byteLength(body))}\r\nConnection: close\r\n${BROWSER_LINES}\r\n${body}`,
  );
}

function garbage(code: string | undefined): Refusal {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return {
        status: "431 Request Header Fields Too Large",
        failure: new AppError("too_large", "The head of the request is too large."),
      };
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return {
        status: "408 Request Timeout",
        failure: new AppError("deadline", "The request did not arrive in time."),
      };
    default:
      return { status: "400 Bad Request", failure: new AppError("invalid", "This is not a valid HTTP request.") };
  }
}
