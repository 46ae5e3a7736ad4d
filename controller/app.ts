import { rm } from "node:fs/promises";
import { join } from "node:path";
import multipart from "@fastify/multipart";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { shared } from "../common/shared.ts";
import { AppError } from "../common/errors.ts";
import {
  HTTP_PATH_PARAMETER_MAX_CHARACTERS,
  HTTP_UPLOAD_MAX_BYTES,
  READY_KEPT_MS,
  STRANGER_CALLS_IN_FLIGHT_MAX,
  STRANGER_CALLS_WAITING_MAX,
  TENANT_CALLS_IN_FLIGHT_MAX,
  TENANT_CALLS_WAITING_MAX,
} from "../common/limits.ts";
import type { Clock } from "../common/time.ts";
import { Networks } from "./settings/network.ts";
import type { Audit } from "./areas/audit/index.ts";
import type { DamagedStore } from "./areas/cluster/index.ts";
import { Admission } from "./http/calls/admission.ts";
import { BodyMemory } from "./http/body/memory.ts";
import { checkInterface } from "./http/interface/check.ts";
import { browserHeaders, type HstsReach } from "./http/connections/browsers.ts";
import type { Endpoint } from "./http/interface/endpoint.ts";
import { documentSender } from "./http/answer/compress.ts";
import { EventStreams } from "./http/sockets/events.ts";
import type {} from "./http/calls/exchange.ts";
import { asAppError, failureEnvelope, logFault, sendFailure } from "./http/answer/failure.ts";
import type { CallFigures } from "./http/interface/call-figures.ts";
import { HttpMetrics, type Level } from "./http/interface/metrics.ts";
import type { CallLog } from "./log/calls.ts";
import { type AllowedMethods, allowedMethods } from "./http/interface/methods.ts";
import { openApiDocument } from "./http/interface/openapi.ts";
import type { Manual } from "./http/manual/files.ts";
import { addManual, MANUAL_PATHS } from "./http/manual/routes.ts";
import { namesOwnHost } from "./http/connections/origin.ts";
import { Peers } from "./http/connections/peer.ts";
import { OpenCalls } from "./http/calls/open-calls.ts";
import { Pipelines } from "./http/connections/pipeline.ts";
import { pathOf } from "./http/calls/addressed.ts";
import { serve } from "./http/calls/serve.ts";
import { boundedServer, refuseGarbage, type ServerBounds, type ServerDeadlines } from "./http/connections/server.ts";
import type { SignIn } from "./http/calls/signin.ts";
import { SilenceWatch } from "./http/connections/silence.ts";
import type { SocketEndpoint } from "./http/sockets/socket.ts";
import { Standing } from "./http/calls/standing.ts";
import { traceparentOf } from "./http/calls/trace.ts";
import { Upgrades } from "./http/sockets/upgrade.ts";
import { counted } from "../common/text/counted.ts";
import type { Runtime } from "./runtime.ts";
import type { Readiness } from "./store/engine.ts";

export interface HttpServices {
  readonly signIn: SignIn;
  readonly audit: Audit;
  /** For `/readyz`. Throws `AppError("unavailable")` that names the unavailable stores. */
  readonly ready: () => Promise<Readiness>;
  /** Stores with damaged rows, listed by `/readyz`; none if absent. */
  readonly damaged?: () => readonly DamagedStore[];
  /** Number of changes of targets that wait for a confirmation, for `/readyz`; 0 when absent. */
  readonly heldTargets?: () => number;
  /** See `Engine.isRemote`; false when absent. */
  readonly storesAreRemote?: boolean;
  /** Maximum concurrent calls of a tenant on this controller, at least 1. Absent: the limit for all tenants. */
  readonly callQuotaOf?: (tenant: string) => number;
  /** Calls the listener for each deleted tenant, whose sockets and event streams then end. */
  readonly onTenantLeft?: (listener: (tenant: string) => void) => void;
}

export interface HttpSettings {
  /** Contains the folder `uploads`. Files that an earlier run left there are removed. */
  readonly dataDir: string;
  readonly version: string;
  /** Addresses and networks of proxies whose `X-Forwarded-For`, `-Host` and `-Proto` are trusted; none if absent. */
  readonly trustedProxies?: readonly string[];
  /** Scope of the HSTS header in answers over HTTPS; `subdomains` if absent. */
  readonly hsts?: HstsReach;
  /** Addresses and networks that may read `/metrics`; this machine only if absent. */
  readonly metricsReaders?: readonly string[];
  /** Host names of this installation: pages of these hosts count as our own. */
  readonly publicNames?: readonly string[];
  readonly deadlines?: ServerDeadlines;
  readonly callsInFlightMax?: number;
  readonly callsWaitingMax?: number;
  /** MiB of memory for the bodies of all calls; `HTTP_BODY_MEMORY_DEFAULT_MIB` if absent. */
  readonly bodyMemoryMib?: number;
}

export interface HttpParts {
  readonly runtime: Runtime;
  readonly endpoints: readonly Endpoint[];
  readonly sockets: readonly SocketEndpoint[];
  readonly services: HttpServices;
  readonly settings: HttpSettings;
  /** Figures for `/metrics`. */
  readonly levels?: readonly Level[];
  /** Served at `/docs`. Absent: there is nothing at that path. */
  readonly manual?: Manual;
  /** Gets every answered call. Absent: they are lines of `runtime.log`. */
  readonly callLog?: CallLog;
}

/** Builds the whole HTTP interface; it does not listen yet. Throws if endpoints are missing or conflict. */
export async function buildHttp(parts: HttpParts): Promise<FastifyInstance> {
  const { runtime, endpoints, sockets, services, settings } = parts;
  checkInterface(endpoints, sockets);
  const { signIn, audit, storesAreRemote = false } = services;
  const { publicNames = [] } = settings;
  const uploads = join(settings.dataDir, "uploads");
  await rm(uploads, { recursive: true, force: true });
  const admission = new Admission({
    inFlightMax: settings.callsInFlightMax ?? TENANT_CALLS_IN_FLIGHT_MAX,
    waitingMax: settings.callsWaitingMax ?? TENANT_CALLS_WAITING_MAX,
    ...(services.callQuotaOf && { quotaOf: services.callQuotaOf }),
  });
  const strangers = new Admission({
    inFlightMax: STRANGER_CALLS_IN_FLIGHT_MAX,
    waitingMax: STRANGER_CALLS_WAITING_MAX,
  });
  const bodyMemory = new BodyMemory(settings.bodyMemoryMib);
  const metrics = new HttpMetrics(admission, [...(parts.levels ?? []), bodyLevel(bodyMemory)]);
  const pipelines = new Pipelines();
  const peers = new Peers(settings.trustedProxies ?? []);
  const bounds = { pipelines, silence: new SilenceWatch(runtime), deadlines: settings.deadlines };
  const beginning = { runtime, peers, hsts: settings.hsts ?? "subdomains" };
  const app = createServer(bounds, beginning);
  await acceptAnyBody(app);
  observe(app, beginning, {
    calls: metrics.calls,
    log: parts.callLog ?? ((call) => runtime.log.info(call, "request")),
  });
  const paths = [...endpoints, ...readable(parts.manual ? [...OWN_PATHS, ...MANUAL_PATHS] : OWN_PATHS)];
  answerFailures(app, runtime, allowedMethods(paths));
  addProbes(app, services, runtime.clock);
  addMetrics(app, metrics, { readers: new Networks(settings.metricsReaders ?? LOOPBACK), publicNames });
  // Built once and sent to every caller, because it is large. It needs no sign-in.
  const document = Buffer.from(JSON.stringify(openApiDocument(endpoints, { version: settings.version, sockets })));
  app.get("/openapi.json", documentSender(document, { type: "application/json; charset=utf-8" }));
  if (parts.manual) addManual(app, parts.manual);
  const eventStreams = new EventStreams();
  const standing = new Standing();
  signIn.onChange((change) => standing.changed(change));
  const openCalls = new OpenCalls(runtime.clock);
  const { silence } = bounds;
  const admitting = { admission, strangers, bodyMemory, eventStreams, openCalls, standing, silence };
  const serving = { runtime, signIn, audit, ...admitting, storesAreRemote, uploads, publicNames };
  for (const endpoint of endpoints) {
    const { method, path: url } = endpoint;
    app.route({ method, url, handler: serve(serving, endpoint) });
  }
  answerOptions(app, paths);
  const upgrades = new Upgrades(
    { runtime, signIn, audit, bodyMemory, pipelines, peers, publicNames, standing },
    sockets,
  );
  upgrades.attach(app.server);
  services.onTenantLeft?.((tenant) => {
    upgrades.leave(tenant);
    eventStreams.leave(tenant);
  });
  app.addHook("preClose", async () => {
    upgrades.close();
    eventStreams.close();
    pipelines.close();
    openCalls.close(() => app.server.closeAllConnections());
  });
  app.addHook("onClose", async () => openCalls.closed());
  await app.ready();
  return app;
}

function bodyLevel(bodyMemory: BodyMemory): Level {
  return {
    name: "odp_http_body_bytes",
    help: "Memory that the bodies of calls hold, of which body_memory_mib is the bound.",
    value: () => bodyMemory.bytes,
  };
}

interface Beginning {
  readonly runtime: Runtime;
  readonly peers: Peers;
  readonly hsts: HstsReach;
}

function createServer(bounds: ServerBounds, beginning: Beginning): FastifyInstance {
  return fastify({
    logger: false,
    bodyLimit: HTTP_UPLOAD_MAX_BYTES,
    serverFactory: (handle) => boundedServer(handle, bounds),
    forceCloseConnections: "idle",
    return503OnClosing: false,
    routerOptions: {
      ignoreTrailingSlash: true,
      maxParamLength: HTTP_PATH_PARAMETER_MAX_CHARACTERS,
      // The router calls this where no error is caught. Each call parses its own query.
      querystringParser: () => ({}),
    },
    clientErrorHandler: refuseGarbage,
    frameworkErrors: (error, request, reply) => {
      begin(request, reply, beginning);
      sendFailure(request, reply, asAppError(error));
    },
  });
}

/** `http/body/body.ts` reads bodies of every type. Fastify would refuse some by their true type. */
async function acceptAnyBody(app: FastifyInstance): Promise<void> {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
  // The plugin's hooks remove files that it stored itself. It stores none here, and its hooks would cost every call.
  const hookless = Object.create(app, { addHook: { value: () => hookless } }) as FastifyInstance;
  await new Promise<void>((resolve, reject) => {
    void multipart(hookless, {}, (error) => (error === undefined ? resolve() : reject(error)));
  });
}

interface Observers {
  readonly calls: CallFigures;
  readonly log: CallLog;
}

function observe(app: FastifyInstance, beginning: Beginning, { calls, log }: Observers): void {
  const { runtime } = beginning;
  app.addHook("onRequest", (request, reply, done) => {
    begin(request, reply, beginning);
    done();
  });
  app.addHook("onResponse", (request, reply, done) => {
    const { exchange, method } = request;
    const elapsedMs = runtime.clock.monotonicMs() - exchange.startedMs;
    const { tenant, user, code, traceparent, route = request.routeOptions.url ?? "unknown" } = exchange;
    calls.of(method, route).add(code, elapsedMs / 1_000);
    log({
      method,
      path: pathOf(request.url),
      route,
      status: reply.statusCode,
      code,
      elapsedMs,
      tenant,
      user,
      remote: exchange.peer.remote,
      traceparent,
    });
    done();
  });
}

function begin(request: FastifyRequest, reply: FastifyReply, { runtime, peers, hsts }: Beginning): void {
  const { headers } = request.raw;
  const contentType = headers["content-type"] ?? "";
  request.exchange = {
    peer: peers.of(request.raw),
    traceparent: traceparentOf(headers.traceparent, runtime.random),
    startedMs: runtime.clock.monotonicMs(),
    contentType,
    tenant: "",
    user: "",
    code: "ok",
    route: undefined,
  };
  if (contentType !== "" && !/^multipart\/form-data/i.test(contentType))
    headers["content-type"] = "application/octet-stream";
  void reply
    .header("traceparent", request.exchange.traceparent)
    .headers(browserHeaders(request.exchange.peer.protocol, hsts));
}

function answerFailures(app: FastifyInstance, runtime: Runtime, allowed: AllowedMethods): void {
  app.setErrorHandler((error, request, reply) => {
    const failure = asAppError(error);
    logFault(runtime.log, failure, request.exchange.traceparent);
    return sendFailure(request, reply, failure);
  });
  app.setNotFoundHandler((request, reply) => {
    const path = pathOf(request.url);
    const methods = allowed(path);
    const text = `There is no ${request.method} ${path}.`;
    if (methods.length === 0) return sendFailure(request, reply, new AppError("not_found", text));
    void reply.header("allow", methods.join(", "));
    const details = { allow: methods };
    return sendFailure(request, reply, new AppError("method_not_allowed", text, { details }));
  });
}

/** Paths beside the endpoints. */
const OWN_PATHS = ["/healthz", "/readyz", "/metrics", "/openapi.json"];

function readable(paths: readonly string[]): readonly Pick<Endpoint, "method" | "path">[] {
  return paths.map((path) => ({ method: "GET", path }));
}

function addProbes(app: FastifyInstance, services: HttpServices, clock: Clock): void {
  app.get("/healthz", (_request, reply) => reply.send({ status: "ok" }));
  const ready = shared(() => services.ready(), { clock, keptMs: READY_KEPT_MS });
  app.get("/readyz", async (request, reply) => {
    try {
      const { lost } = await ready();
      const damaged = services.damaged?.() ?? [];
      const held = services.heldTargets?.() ?? 0;
      return await reply.send({
        status: "ok",
        ...(lost.length > 0 && { lost }),
        ...(damaged.length > 0 && { damaged }),
        ...(held > 0 && { warnings: [`${counted(held, "change")} of targets held: see GET /monitoring/targets.`] }),
      });
    } catch (error) {
      const failure = asAppError(error);
      request.exchange.code = failure.code;
      return reply.code(503).send(failureEnvelope(failure, request.exchange.traceparent));
    }
  });
}

const LOOPBACK = ["127.0.0.0/8", "::1"];

interface MetricsAccess {
  readonly readers: Networks;
  readonly publicNames: readonly string[];
}

/** Scrapers have no password, and the figures name tenants and routes, so the address and the host name decide. */
function addMetrics(app: FastifyInstance, metrics: HttpMetrics, { readers, publicNames }: MetricsAccess): void {
  const text = shared(() => metrics.text());
  app.get("/metrics", async (request, reply) => {
    const { remote, host, isForwardedByOthers } = request.exchange.peer;
    // Through an untrusted proxy all requests come from the proxy's address.
    if (!readers.includes(remote) || isForwardedByOthers)
      throw new AppError("denied", `${remote} may not read metrics: the setting metrics_readers says who may.`);
    if (!namesOwnHost({ host, publicNames })) {
      const text = "Metrics are read by an address, localhost or one of public_names: the request names another host.";
      throw new AppError("denied", text);
    }
    return reply.type(metrics.contentType).send(await text());
  });
}

function answerOptions(app: FastifyInstance, endpoints: readonly Pick<Endpoint, "method" | "path">[]): void {
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
