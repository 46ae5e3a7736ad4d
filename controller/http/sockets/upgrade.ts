import { STATUS_CODES, type IncomingMessage, type Server } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { AppError } from "../../../common/errors.ts";
import {
  WEBSOCKET_RECEIVED_MAX_BYTES,
  WEBSOCKET_REFUSED_GRACE_MS,
  WEBSOCKETS_PER_TENANT_MAX,
} from "../../../common/limits.ts";
import type { Audit } from "../../areas/audit/index.ts";
import { allows, requireMayChange, requirePermission, type Principal } from "../../areas/permissions/index.ts";
import type { Runtime } from "../../runtime.ts";
import { THREAD_TURNS } from "../../turns/turns.ts";
import { BROWSER_LINES } from "../connections/browsers.ts";
import { asAppError, failureEnvelope, logFault, SIGN_IN_PATH } from "../answer/failure.ts";
import type { BodyMemory } from "../body/memory.ts";
import type { Fields } from "../body/fields.ts";
import { takeInTurns } from "../connections/incoming.ts";
import { readInput } from "../input/input.ts";
import { Line } from "./line.ts";
import type { Peers } from "../connections/peer.ts";
import type { Pipelines } from "../connections/pipeline.ts";
import { pathOf, queryOf } from "../calls/addressed.ts";
import { namesOneHost } from "../connections/server.ts";
import { identify, notSignedIn, type Identity, type SignIn } from "../calls/signin.ts";
import type { SocketEndpoint } from "./socket.ts";
import type { Standing } from "../calls/standing.ts";
import { traceparentOf } from "../calls/trace.ts";
import { boundedWarnings, ignoredNames, WARNINGS_HEADER, warningsHeader } from "../input/warnings.ts";

export interface UpgradeDependencies {
  readonly runtime: Runtime;
  readonly signIn: SignIn;
  readonly audit: Audit;
  readonly bodyMemory: BodyMemory;
  readonly pipelines: Pipelines;
  readonly peers: Peers;
  /** Host names of this installation, in addition to the one in the request. */
  readonly publicNames: readonly string[];
  readonly standing: Standing;
}

interface Found {
  readonly endpoint: SocketEndpoint;
  readonly path: Fields;
}

/** Answers upgrade requests of a server with the sockets of the interface. */
export class Upgrades {
  readonly #dependencies: UpgradeDependencies;
  readonly #endpoints: readonly SocketEndpoint[];
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: WEBSOCKET_RECEIVED_MAX_BYTES,
    perMessageDeflate: false,
  });
  readonly #lines = new Map<string, Set<Line>>();
  /** Warnings about requests that are being upgraded. */
  readonly #warnings = new WeakMap<IncomingMessage, readonly string[]>();
  #isClosing = false;

  constructor(dependencies: UpgradeDependencies, endpoints: readonly SocketEndpoint[]) {
    this.#dependencies = dependencies;
    this.#endpoints = endpoints;
    this.#server.on("headers", (headers, request) => {
      const warnings = this.#warnings.get(request) ?? [];
      if (warnings.length > 0) headers.push(`${WARNINGS_HEADER}: ${warningsHeader(warnings)}`);
    });
  }

  attach(server: Server): void {
    server.on("upgrade", (request, socket, head) => {
      const ignore = (): void => {};
      socket.on("error", ignore);
      // The earlier calls on this connection must be answered first.
      this.#dependencies.pipelines.whenAnswered(socket, () => {
        if (request.headers.upgrade?.toLowerCase() === "websocket") return this.#answer(request, { socket, head });
        socket.off("error", ignore);
        replay(server, request, { socket, head });
      });
    });
  }

  #answer(request: IncomingMessage, { socket, head }: { readonly socket: Duplex; readonly head: Buffer }): void {
    const traceparent = traceparentOf(request.headers.traceparent, this.#dependencies.runtime.random);
    this.#upgrade(request, { socket, head, traceparent }).catch((error: unknown) => {
      const failure = asAppError(error);
      const { log, clock } = this.#dependencies.runtime;
      logFault(log, failure, traceparent);
      refuse(socket, failure, traceparent);
      // Nothing else reads or closes the connection: it is neither an HTTP connection nor a WebSocket.
      socket.resume();
      socket.once(
        "close",
        clock.after(WEBSOCKET_REFUSED_GRACE_MS, () => socket.destroy()),
      );
    });
  }

  /** Tells every client that this controller stops, and opens no socket from now on. */
  close(): void {
    this.#isClosing = true;
    for (const lines of this.#lines.values()) for (const line of lines) line.leave();
  }

  /** Ends the sockets of a tenant that was deleted. */
  leave(tenant: string): void {
    for (const line of this.#lines.get(tenant) ?? []) line.end("signed out");
  }

  count(tenant: string): number {
    return this.#lines.get(tenant)?.size ?? 0;
  }

  async #upgrade(
    request: IncomingMessage,
    wire: { readonly socket: Duplex; readonly head: Buffer; readonly traceparent: string },
  ): Promise<void> {
    const target = request.url ?? "/";
    if (!namesOneHost(request)) throw new AppError("invalid", "The request has more than one Host header.");
    const found = this.#find(pathOf(target));
    if (found === undefined) throw new AppError("not_found", `There is no WebSocket at ${pathOf(target)}.`);
    const { headers } = request;
    const { remote, host, protocol } = this.#dependencies.peers.of(request);
    const own = { host, protocol, publicNames: this.#dependencies.publicNames };
    const caller = { headers, query: queryOf(target), own, remote, traceparent: wire.traceparent };
    const identity = await identify(this.#dependencies.signIn, caller);
    if (identity === undefined) throw notSignedIn(headers);
    await this.#permit(request, found.endpoint, identity);
    const input = readInput(found.endpoint, {
      path: found.path,
      query: caller.query,
      body: new Map(),
      bodyIsJson: false,
    });
    const { tenant } = identity.principal;
    if (this.count(tenant) >= WEBSOCKETS_PER_TENANT_MAX)
      throw new AppError("limited", "The tenant has too many open WebSockets.");
    const present = async (): Promise<Principal | undefined> => {
      const now = await identify(this.#dependencies.signIn, caller);
      return now !== undefined && allows(now.principal, found.endpoint.permission) ? now.principal : undefined;
    };
    const stillAllowed = async (): Promise<boolean> => (await present()) !== undefined;
    if (this.#isClosing) throw new AppError("unavailable", "The controller stops.");
    this.#warnings.set(
      request,
      boundedWarnings(ignoredNames(found.endpoint, { query: caller.query, body: new Map() })),
    );
    this.#server.handleUpgrade(request, wire.socket, wire.head, (socket) => {
      // A queue separate from that of the tenant's calls, so that calls do not wait for messages on sockets.
      const turn = () => THREAD_TURNS.next(`${tenant} sockets`);
      const line = new Line(socket, { clock: this.#dependencies.runtime.clock, stillAllowed });
      const memory = this.#dependencies.bodyMemory.open(remote);
      memory.ownedBy(identity.principal);
      const ended = takeInTurns(wire.socket, { turn, memory, onRefused: () => line.end("no room") });
      socket.on("message", ended);
      this.#keep(identity.principal, line);
      found.endpoint.open({ principal: identity.principal, input: input as never, line, present });
    });
  }

  async #permit(request: IncomingMessage, endpoint: SocketEndpoint, identity: Identity): Promise<void> {
    const { principal } = identity;
    try {
      requirePermission(principal, endpoint.permission);
      // A browser opens sockets for any page and lets the page read them. So listening requires the same proof of
      // origin as a change.
      requireMayChange(principal);
    } catch (error) {
      const { tenant, user, traceparent } = principal;
      const action = `WEBSOCKET ${pathOf(request.url ?? "/")}`;
      const { remote } = this.#dependencies.peers.of(request);
      await this.#dependencies.audit.record({
        tenant,
        user,
        permission: endpoint.permission,
        action,
        outcome: "denied",
        code: "denied",
        remote,
        traceparent,
      });
      throw error;
    }
  }

  #find(path: string): Found | undefined {
    for (const endpoint of this.#endpoints) {
      const parameters = match(endpoint.path, path);
      if (parameters !== undefined) return { endpoint, path: parameters };
    }
    return undefined;
  }

  #keep({ tenant, user }: Principal, line: Line): void {
    const leave = this.#dependencies.standing.enter({ tenant, user }, () => void line.ask());
    const lines = this.#lines.get(tenant) ?? new Set();
    this.#lines.set(tenant, lines.add(line));
    line.closed.addEventListener("abort", () => {
      leave();
      lines.delete(line);
      if (lines.size === 0 && this.#lines.get(tenant) === lines) this.#lines.delete(tenant);
    });
  }
}

/**
 * Some clients offer HTTP/2 with every request (`Upgrade: h2c`). A server may ignore that, but Node cannot once it has
 * a listener for upgrades. So the request is put back without the offer, and read again.
 */
function replay(
  server: Server,
  request: IncomingMessage,
  wire: { readonly socket: Duplex; readonly head: Buffer },
): void {
  const lines = [`${request.method ?? "GET"} ${request.url ?? "/"} HTTP/${request.httpVersion}`];
  for (let at = 0; at + 1 < request.rawHeaders.length; at += 2) {
    const [name = "", value = ""] = request.rawHeaders.slice(at, at + 2);
    if (!/^(upgrade|connection|http2-settings)$/i.test(name)) lines.push(`${name}: ${value}`);
  }
  wire.socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), wire.head]));
  server.emit("connection", wire.socket);
}

function match(pattern: string, path: string): Fields | undefined {
  const wanted = pattern.split("/");
  const given = path.replace(/\/$/, "").split("/");
  if (wanted.length !== given.length) return undefined;
  const parameters = new Map<string, unknown[]>();
  for (const [at, step] of wanted.entries()) {
    const segment = given[at] ?? "";
    if (step.startsWith(":")) parameters.set(step.slice(1), [decoded(segment)]);
    else if (step !== segment) return undefined;
  }
  return parameters;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch (error) {
    throw new AppError("invalid", "The path is not encoded rightly.", { cause: error });
  }
}

function refuse(socket: Duplex, failure: AppError, traceparent: string): void {
  const signIn = failure.code === "signin";
  const body = JSON.stringify(
    signIn ? { status: "signin", message: SIGN_IN_PATH } : failureEnvelope(failure, traceparent),
  );
  const status = signIn ? 200 : 500;
  socket.end(
    `HTTP/1.1 ${String(status)} ${STATUS_CODES[status] ?? ""}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${String(Buffer.byteLength(body))}\r\nConnection: close\r\nTraceparent: ${traceparent}\r\n${BROWSER_LINES}\r\n${body}`,
  );
}
