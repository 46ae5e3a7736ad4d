import { rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { join } from "node:path";
import cookie from "@fastify/cookie";
import multipart from "@fastify/multipart";
import fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { AppError } from "../common/errors.ts";
import {
  HTTP_HEAD_DEADLINE_MS,
  HTTP_KEEP_ALIVE_MS,
  HTTP_PATH_PARAMETER_MAX_CHARACTERS,
  HTTP_RECEIVE_DEADLINE_MS,
  HTTP_UPLOAD_MAX_BYTES,
  TENANT_CALLS_IN_FLIGHT_MAX,
  TENANT_CALLS_WAITING_MAX,
} from "../common/limits.ts";
import type { Audit } from "./areas/audit/index.ts";
import { Admission } from "./http/admission.ts";
import { checkInterface } from "./http/check.ts";
import type { Endpoint } from "./http/endpoint.ts";
import type {} from "./http/exchange.ts";
import { asAppError, failureEnvelope, logFault, sendFailure } from "./http/failure.ts";
import { parseUrlEncoded } from "./http/fields.ts";
import { HttpMetrics, type Level } from "./http/metrics.ts";
import { openApiDocument } from "./http/openapi.ts";
import { pathOf, serve } from "./http/serve.ts";
import type { SignIn } from "./http/signin.ts";
import type { SocketEndpoint } from "./http/socket.ts";
import { traceparentOf } from "./http/trace.ts";
import { Upgrades } from "./http/upgrade.ts";
import type { Runtime } from "./runtime.ts";

export interface HttpServices {
  readonly signIn: SignIn;
  readonly audit: Audit;
  /** Throws `AppError("unavailable")` that names what is away; for `/readyz`. */
  readonly ready: () => Promise<void>;
}

export interface HttpSettings {
  /** Uploads lie in `uploads` below it; what an earlier run left there is removed. */
  readonly dataDir: string;
  readonly version: string;
  /** Addresses of proxies whose `X-Forwarded-*` are believed; none when absent. */
  readonly trustProxy?: readonly string[];
  /** Host names this installation is known under, for the origin check of WebSockets. */
  readonly publicNames?: readonly string[];
  readonly callsInFlightMax?: number;
  readonly callsWaitingMax?: number;
}

export interface HttpParts {
  readonly runtime: Runtime;
  readonly endpoints: readonly Endpoint[];
  readonly sockets: readonly SocketEndpoint[];
  readonly services: HttpServices;
  readonly settings: HttpSettings;
  /** For `/metrics`. */
  readonly levels?: readonly Level[];
}

/** The whole HTTP interface, built but not listening. Refuses an interface with gaps or clashes. */
export async function buildHttp(parts: HttpParts): Promise<FastifyInstance> {
  const { runtime, endpoints, sockets, services, settings } = parts;
  checkInterface(endpoints, sockets);
  const uploads = join(settings.dataDir, "uploads");
  await rm(uploads, { recursive: true, force: true });
  const admission = new Admission({
    inFlightMax: settings.callsInFlightMax ?? TENANT_CALLS_IN_FLIGHT_MAX,
    waitingMax: settings.callsWaitingMax ?? TENANT_CALLS_WAITING_MAX,
  });
  const metrics = new HttpMetrics(admission, parts.levels ?? []);
  const app = createServer(settings, runtime);
  await acceptAnyBody(app);
  // Only to set them: who is signed in by one is read by the gate.
  await app.register(cookie, { hook: false });
  observe(app, runtime, metrics);
  answerFailures(app, runtime);
  addProbes(app, services, metrics);
  const document = openApiDocument(endpoints, { version: settings.version });
  app.get("/openapi.json", (_request, reply) => reply.send(document));
  for (const endpoint of endpoints) {
    const { method, path: url } = endpoint;
    app.route({
      method,
      url,
      handler: serve({ runtime, signIn: services.signIn, audit: services.audit, admission, uploads }, endpoint),
    });
  }
  answerOptions(app, endpoints);
  const upgrades = new Upgrades(
    { runtime, signIn: services.signIn, audit: services.audit, publicNames: settings.publicNames ?? [] },
    sockets,
  );
  upgrades.attach(app.server);
  app.addHook("preClose", async () => upgrades.close());
  await app.ready();
  return app;
}

function createServer(settings: HttpSettings, runtime: Runtime): FastifyInstance {
  return fastify({
    logger: false,
    trustProxy: settings.trustProxy === undefined ? false : [...settings.trustProxy],
    bodyLimit: HTTP_UPLOAD_MAX_BYTES,
    requestTimeout: HTTP_RECEIVE_DEADLINE_MS,
    keepAliveTimeout: HTTP_KEEP_ALIVE_MS,
    http: { headersTimeout: HTTP_HEAD_DEADLINE_MS },
    forceCloseConnections: "idle",
    return503OnClosing: false,
    routerOptions: {
      ignoreTrailingSlash: true,
      maxParamLength: HTTP_PATH_PARAMETER_MAX_CHARACTERS,
      querystringParser: parseUrlEncoded as unknown as (text: string) => Record<string, unknown>,
    },
    clientErrorHandler: refuseGarbage,
    frameworkErrors: (error, request, reply) => {
      begin(request, runtime);
      sendFailure(request, reply, asAppError(error));
    },
  });
}

/** Bodies are read by `http/body.ts`, whatever their type says; the true type would only make fastify refuse some. */
async function acceptAnyBody(app: FastifyInstance): Promise<void> {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
  await app.register(multipart);
}

function observe(app: FastifyInstance, runtime: Runtime, metrics: HttpMetrics): void {
  app.addHook("onRequest", (request, reply, done) => {
    begin(request, runtime);
    void reply.headers({
      traceparent: request.exchange.traceparent,
      "x-content-type-options": "nosniff",
      "x-frame-options": "SAMEORIGIN",
      "referrer-policy": "same-origin",
    });
    done();
  });
  app.addHook("onResponse", (request, reply, done) => {
    const { exchange, method } = request;
    const elapsedMs = runtime.clock.monotonicMs() - exchange.startedMs;
    const route = request.routeOptions.url ?? "unknown";
    metrics.observe({ method, route, code: exchange.code, seconds: elapsedMs / 1_000 });
    const { tenant, user, code, traceparent } = exchange;
    runtime.log.info(
      {
        method,
        path: pathOf(request.url),
        route,
        status: reply.statusCode,
        code,
        elapsedMs,
        tenant,
        user,
        remote: request.ip,
        traceparent,
      },
      "request",
    );
    done();
  });
}

function begin(request: FastifyRequest, runtime: Runtime): void {
  const { headers } = request.raw;
  const contentType = headers["content-type"] ?? "";
  request.exchange = {
    traceparent: traceparentOf(headers.traceparent, runtime.random),
    startedMs: runtime.clock.monotonicMs(),
    contentType,
    tenant: "",
    user: "",
    code: "ok",
  };
  if (contentType !== "" && !/^multipart\/form-data/i.test(contentType))
    headers["content-type"] = "application/octet-stream";
}

function answerFailures(app: FastifyInstance, runtime: Runtime): void {
  app.setErrorHandler((error, request, reply) => {
    const failure = asAppError(error);
    logFault(runtime.log, failure, request.exchange.traceparent);
    return sendFailure(request, reply, failure);
  });
  app.setNotFoundHandler((request, reply) =>
    sendFailure(request, reply, new AppError("not_found", `There is no ${request.method} ${pathOf(request.url)}.`)),
  );
}

/** What is not even HTTP. */
function refuseGarbage(error: Error & { readonly code?: string }, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const { status, failure } = garbage(error.code);
  const body = JSON.stringify(failureEnvelope(failure, ""));
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${String(Buffer.byteLength(body))}\r\nConnection: close\r\n\r\n${body}`,
  );
}

function garbage(code: string | undefined): { readonly status: string; readonly failure: AppError } {
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

function addProbes(app: FastifyInstance, services: HttpServices, metrics: HttpMetrics): void {
  app.get("/healthz", (_request, reply) => reply.send({ status: "ok" }));
  app.get("/readyz", async (request, reply) => {
    try {
      await services.ready();
      return await reply.send({ status: "ok" });
    } catch (error) {
      const failure = asAppError(error);
      request.exchange.code = failure.code;
      return reply.code(503).send(failureEnvelope(failure, request.exchange.traceparent));
    }
  });
  app.get("/metrics", async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()));
}

function answerOptions(app: FastifyInstance, endpoints: readonly Endpoint[]): void {
  const methods = new Map<string, Set<string>>();
  for (const { method, path } of endpoints) {
    const key = path.replace(/:\w+/g, ":parameter");
    const known = methods.get(key) ?? new Set(["OPTIONS"]);
    methods.set(key, known.add(method));
    if (method === "GET") known.add("HEAD");
  }
  for (const [url, known] of methods) {
    app.options(url, (_request, reply) =>
      reply
        .header("allow", [...known].sort().join(", "))
        .code(204)
        .send(),
    );
  }
}
