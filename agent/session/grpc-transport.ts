import {
  credentials,
  makeGenericClientConstructor,
  status,
  type ClientDuplexStream,
  type ClientOptions,
} from "@grpc/grpc-js";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import {
  AgentFrame,
  AgentLinkClient,
  AgentLinkService,
  Batch,
  type ControllerFrame,
  type FetchChunk,
} from "../../proto/gen/agent/v1/agent.ts";
import { AppError, errorText } from "../../common/errors.ts";
import { SESSION_KEEPALIVE_MS, SESSION_MESSAGE_MAX_BYTES } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import { pem, type Identity } from "../identity/identity.ts";
import { encodeEntry } from "../outbox/entries.ts";
import { serverIdentity } from "./server-identity.ts";
import type { FetchOptions, Transport, TunnelCall, Wire } from "./transport.ts";

const CHANNEL: Partial<ClientOptions> = {
  "grpc.keepalive_time_ms": SESSION_KEEPALIVE_MS,
  "grpc.keepalive_timeout_ms": SESSION_KEEPALIVE_MS / 2,
  "grpc.max_receive_message_length": SESSION_MESSAGE_MAX_BYTES,
  "grpc.enable_retries": 0,
  "grpc.service_config_disable_resolution": 1,
  // Without a pool of its own, a session with a new certificate could share the connection of the old one.
  "grpc.use_local_subchannel_pool": 1,
};

/** The generated client, but it sends stored entries as they are on disk. */
const Client = makeGenericClientConstructor(
  {
    ...AgentLinkService,
    session: { ...AgentLinkService.session, requestSerialize: encodeFrame },
  },
  AgentLinkClient.serviceName,
) as unknown as typeof AgentLinkClient;

/** Tag of `AgentFrame.batch`. */
const BATCH = 18;

export function encodeFrame(message: AgentFrame): Buffer {
  if (message.frame?.$case !== "batch") return Buffer.from(AgentFrame.encode(message).finish());
  const rest = Batch.encode({ ...message.frame.value, entries: [] }).finish();
  const entries = message.frame.value.entries.map(encodeEntry);
  const length = entries.reduce((sum, { length: bytes }) => sum + bytes, rest.length);
  return Buffer.concat([new BinaryWriter().uint32(BATCH).uint32(length).finish(), rest, ...entries]);
}

/** gRPC over mutual TLS. Each wire has a connection of its own; its session, fetches and tunnels share it. */
export function grpcTransport(clock: Clock): Transport {
  return { open: (address, identity) => new GrpcWire({ address, identity, clock }) };
}

class GrpcWire implements Wire {
  readonly over: Promise<AppError>;
  readonly #address: string;
  readonly #clock: Clock;
  readonly #client: AgentLinkClient;
  readonly #call: ClientDuplexStream<AgentFrame, ControllerFrame>;

  constructor({
    address,
    identity,
    clock,
  }: { readonly address: string; readonly identity: Identity; readonly clock: Clock }) {
    this.#address = address;
    this.#clock = clock;
    const authorities = Buffer.from(identity.authorities.map(pem).join(""));
    const certificate = Buffer.from(pem(identity.certificate));
    const { verify, channel } = serverIdentity(address);
    const secure = credentials.createSsl(authorities, Buffer.from(identity.keyPem), certificate, verify);
    this.#client = new Client(address, secure, { ...CHANNEL, ...channel });
    this.#call = this.#client.session();
    this.over = new Promise((resolve) => {
      this.#call.on("error", (error) => resolve(asAppError(error, address)));
      this.#call.on("end", () => resolve(new AppError("unavailable", `${address} ended the session.`)));
    });
  }

  get frames(): AsyncIterable<ControllerFrame> {
    return this.#read();
  }

  send(frame: AgentFrame): boolean {
    return this.#call.write(frame);
  }

  drained(): Promise<void> {
    return new Promise((resolve) => this.#call.once("drain", () => resolve()));
  }

  end(): void {
    this.#call.end();
  }

  cancel(): void {
    this.#call.cancel();
    this.#client.close();
  }

  tunnel(): TunnelCall {
    return this.#client.tunnel();
  }

  async *fetch(
    request: { readonly digest: string; readonly offset: number },
    { timeoutMs, signal }: FetchOptions,
  ): AsyncGenerator<Uint8Array> {
    const call = this.#client.fetch({ ...request }, { deadline: new Date(this.#clock.nowMs() + timeoutMs) });
    const cancel = () => call.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      for await (const chunk of call as AsyncIterable<FetchChunk>) yield chunk.data;
    } finally {
      signal.removeEventListener("abort", cancel);
      call.cancel();
    }
  }

  async *#read(): AsyncGenerator<ControllerFrame> {
    try {
      yield* this.#call as AsyncIterable<ControllerFrame>;
    } catch (error) {
      throw asAppError(error, this.#address);
    }
  }
}

function asAppError(error: unknown, address: string): AppError {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const denied = code === status.UNAUTHENTICATED || code === status.PERMISSION_DENIED;
  return new AppError(denied ? "denied" : "unavailable", `${address}: ${errorText(error)}`, { cause: error });
}
