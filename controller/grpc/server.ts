import { once } from "node:events";
import type { Duplex } from "node:stream";
import { experimental, Server, status, type ServerWritableStream, type StatusObject } from "@grpc/grpc-js";
import { AppError, errorText, isAppError, type ErrorCode } from "../../common/errors.ts";
import {
  AGENT_HELLOS_IN_FLIGHT_MAX,
  AGENT_SESSIONS_MAX,
  AGENT_STREAMS_PER_CONNECTION_MAX,
  SESSION_KEEPALIVE_MS,
  SESSION_MESSAGE_MAX_BYTES,
  SHUTDOWN_STREAMS_MS,
} from "../../common/limits.ts";
import type { FetchChunk, FetchRequest, Hello, TunnelOpened } from "../../proto/gen/agent/v1/agent.ts";
import {
  controllerOf,
  identityOf,
  type AgentChannel,
  type AgentIdentity,
  type AgentSession,
} from "../areas/hosts/index.ts";
import type { Runtime } from "../runtime.ts";
import type { BlobStore } from "../store/blobs.ts";
import { PeerLinkService } from "../../proto/gen/peer/v1/peer.ts";
import { PeerStream, type PeerServerCall, type PeerServices } from "./peer-stream.ts";
import { BOUNDED_AGENT_LINK } from "./agent-frame.ts";
import { serveAgentTunnel, servePeerTunnel, type AgentTunnelCall, type PeerTunnelCall } from "./served-tunnel.ts";
import { ServerCertificate, type IssuedServerCertificate } from "./server-certificate.ts";
import { SessionStream, type SessionCall } from "./session-stream.ts";

const FETCH_PIECE_BYTES = 256 * 1024;

export interface AgentServerDependencies {
  readonly runtime: Runtime;
  /** Answers a hello. Throws an `AppError` to refuse it. */
  readonly open: (identity: AgentIdentity, hello: Hello, channel: AgentChannel) => Promise<AgentSession>;
  /** Store of a content that the host may have; `undefined` if nothing of this host refers to it. */
  readonly content: (identity: AgentIdentity, digest: string) => Promise<BlobStore | undefined>;
  /** Accepts a tunnel that the agent was asked for. Throws an `AppError` to refuse it. */
  readonly tunnel: (identity: AgentIdentity, opened: TunnelOpened, stream: Duplex) => void;
  readonly certificate: () => Promise<IssuedServerCertificate>;
  /** CA certificates of agents, PEM. */
  readonly authorities: string;
  /** Services for other controllers. Absent: their calls are refused. */
  readonly peers?: PeerServices;
  readonly sessionsMax?: number;
}

/** The agent port: gRPC over TLS with client certificates of our authority. The certificate identifies the caller. */
export class AgentServer {
  readonly #with: AgentServerDependencies;
  readonly #server: Server;
  readonly #sessionsMax: number;
  #certificate: ServerCertificate | undefined;
  readonly #streams = new Set<SessionStream>();
  readonly #peers = new Set<PeerStream>();
  #greeting = 0;

  constructor(dependencies: AgentServerDependencies) {
    this.#with = dependencies;
    this.#sessionsMax = dependencies.sessionsMax ?? AGENT_SESSIONS_MAX;
    this.#server = new Server({
      "grpc.max_receive_message_length": SESSION_MESSAGE_MAX_BYTES,
      "grpc.max_send_message_length": SESSION_MESSAGE_MAX_BYTES,
      "grpc.max_concurrent_streams": AGENT_STREAMS_PER_CONNECTION_MAX,
      "grpc.keepalive_time_ms": SESSION_KEEPALIVE_MS,
      "grpc.keepalive_timeout_ms": SESSION_KEEPALIVE_MS,
    });
    this.#server.addService(BOUNDED_AGENT_LINK, {
      session: (call: SessionCall) => this.#session(call),
      fetch: (call: ServerWritableStream<FetchRequest, FetchChunk>) => void this.#fetch(call),
      tunnel: (call: AgentTunnelCall) => this.#tunnel(call),
    });
    this.#server.addService(PeerLinkService, {
      link: (call: PeerServerCall) => this.#peer(call),
      tunnel: (call: PeerTunnelCall) => this.#peerTunnel(call),
    });
  }

  /** Returns the port that was opened (`port` 0: any free port). */
  async listen(host: string, port: number): Promise<number> {
    const { certificate, authorities, runtime } = this.#with;
    this.#certificate = await ServerCertificate.open({ issue: certificate, authorities, runtime });
    const credentials = experimental.createCertificateProviderServerCredentials(
      this.#certificate,
      this.#certificate,
      true,
    );
    const address = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
    return new Promise((resolve, reject) => {
      this.#server.bindAsync(address, credentials, (error, opened) => {
        if (error)
          reject(
            new AppError("unavailable", `The agent port ${address} cannot be opened: ${error.message}`, {
              cause: error,
            }),
          );
        else resolve(opened);
      });
    });
  }

  /** Informs the agents, which have `SHUTDOWN_STREAMS_MS` to end their streams. */
  async close(): Promise<void> {
    this.#certificate?.close();
    for (const stream of this.#streams)
      stream.close({ code: "unavailable", message: "The controller is shutting down." });
    for (const peer of this.#peers) peer.close();
    const stop = this.#with.runtime.clock.after(SHUTDOWN_STREAMS_MS, () => this.#server.forceShutdown());
    await new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()));
    stop();
  }

  #session(call: SessionCall): void {
    const identity = this.#identify(call, refuse);
    if (!identity) return;
    if (this.#streams.size >= this.#sessionsMax)
      return refuse(call, "limited", "This controller has as many agents as it takes.");
    const stream: SessionStream = new SessionStream(
      {
        runtime: this.#with.runtime,
        open: (who, hello, channel) => this.#open(who, hello, channel),
        over: () => void this.#streams.delete(stream),
      },
      call,
      identity,
    );
    this.#streams.add(stream);
  }

  #tunnel(call: AgentTunnelCall): void {
    const identity = this.#identify(call);
    if (!identity) return;
    serveAgentTunnel(call, {
      clock: this.#with.runtime.clock,
      take: (opened, stream) => this.#with.tunnel(identity, opened, stream),
      refuse: (code, message) => fail(call, code, message),
    });
  }

  #peerTunnel(call: PeerTunnelCall): void {
    const peers = this.#peersFor(call);
    if (!peers) return;
    servePeerTunnel(call, {
      clock: this.#with.runtime.clock,
      open: (place, signal) => peers.tunnel(place, signal),
      refuse: (code, message) => fail(call, code, message),
    });
  }

  /** Services for the calling controller; `undefined` if the call was refused. */
  #peersFor(call: PeerServerCall | PeerTunnelCall): PeerServices | undefined {
    const { runtime, peers } = this.#with;
    try {
      controllerOf(call.getAuthContext().sslPeerCertificate, runtime.clock.nowMs());
      if (!peers) throw new AppError("unavailable", "This controller serves no others.");
      return peers;
    } catch (error) {
      fail(call, isAppError(error) ? error.code : "denied", errorText(error));
      return undefined;
    }
  }

  #peer(call: PeerServerCall): void {
    const peers = this.#peersFor(call);
    if (!peers) return;
    const { runtime } = this.#with;
    const stream: PeerStream = new PeerStream(call, {
      runtime,
      services: peers,
      over: () => void this.#peers.delete(stream),
    });
    this.#peers.add(stream);
  }

  /** A hello costs reads and writes of the store, so their concurrency is limited. */
  async #open(identity: AgentIdentity, hello: Hello, channel: AgentChannel): Promise<AgentSession> {
    if (this.#greeting >= AGENT_HELLOS_IN_FLIGHT_MAX)
      throw new AppError("limited", "Too many agents connect at once: come back later.");
    this.#greeting += 1;
    try {
      return await this.#with.open(identity, hello, channel);
    } finally {
      this.#greeting -= 1;
    }
  }

  async #fetch(call: ServerWritableStream<FetchRequest, FetchChunk>): Promise<void> {
    const identity = this.#identify(call);
    if (!identity) return;
    try {
      const { digest, offset } = call.request;
      const blobs = await this.#with.content(identity, digest);
      if (!blobs) throw new AppError("denied", `Nothing of ${identity.host} refers to this content.`);
      await send(call, blobs.read(digest, { start: offset }));
      call.end();
    } catch (error) {
      if (!isAppError(error))
        this.#with.runtime.log.error({ ...identity, reason: errorText(error) }, "content could not be sent");
      fail(
        call,
        isAppError(error) ? error.code : "internal",
        isAppError(error) ? error.message : "The content could not be read.",
      );
    }
  }

  #identify<C extends Call>(call: C, refuse: Refuse<C> = fail): AgentIdentity | undefined {
    try {
      return identityOf(call.getAuthContext().sslPeerCertificate, this.#with.runtime.clock.nowMs());
    } catch (error) {
      refuse(call, isAppError(error) ? error.code : "denied", errorText(error));
      return undefined;
    }
  }
}

type Refuse<C> = (call: C, code: ErrorCode, message: string) => void;
type Call = SessionCall | ServerWritableStream<FetchRequest, FetchChunk> | AgentTunnelCall;

async function send(
  call: ServerWritableStream<FetchRequest, FetchChunk>,
  content: AsyncIterable<Uint8Array>,
): Promise<void> {
  const gone = new AbortController();
  call.once("cancelled", () => gone.abort());
  for await (const bytes of content) {
    for (let at = 0; at < bytes.length; at += FETCH_PIECE_BYTES) {
      if (call.cancelled) throw new AppError("cancelled", "The agent went away.");
      const data = Buffer.from(bytes.subarray(at, at + FETCH_PIECE_BYTES));
      if (!call.write({ data })) await once(call, "drain", { signal: gone.signal }).catch(() => undefined);
    }
  }
}

/** A session gets the reason in a frame, so that the agent can show it. Other calls get the status only. */
function refuse(call: SessionCall, code: ErrorCode, message: string): void {
  call.on("error", () => undefined);
  call.write({ frame: { $case: "refused", value: { code, message, askAgain: false } } });
  call.end();
  call.resume();
}

function fail(call: Call | PeerServerCall | PeerTunnelCall, code: ErrorCode, message: string): void {
  if (call.cancelled) return;
  const reason: Partial<StatusObject> = { code: STATUS[code] ?? status.INTERNAL, details: message };
  call.emit("error", reason);
}

const STATUS: Partial<Record<ErrorCode, status>> = {
  denied: status.PERMISSION_DENIED,
  not_found: status.NOT_FOUND,
  invalid: status.INVALID_ARGUMENT,
  limited: status.RESOURCE_EXHAUSTED,
  unavailable: status.UNAVAILABLE,
  cancelled: status.CANCELLED,
};
