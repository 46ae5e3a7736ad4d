import type { Duplex } from "node:stream";
import type { EnrolAnswer, EnrolRequest } from "../../../common/agent/enrolment.ts";
import type { Hello, TunnelOpened } from "../../../proto/gen/agent/v1/agent.ts";
import type { BlobStore } from "../../store/blobs.ts";
import { pem } from "./authority/certificates.ts";
import { generationOf } from "./authority/identity.ts";
import type { CommandEntries } from "./commands/commands.ts";
import type { HostComponents, HostServiceDependencies } from "./components.ts";
import type { AgentChannel, AgentIdentity, AgentSession } from "./types.ts";

/** Operations for agents that present a join token or a certificate: enrolment, session, contents. */
export class HostAgents {
  readonly #with: Pick<HostServiceDependencies, "stores" | "publicNames">;
  readonly #components: HostComponents;

  constructor(dependencies: Pick<HostServiceDependencies, "stores" | "publicNames">, components: HostComponents) {
    this.#with = dependencies;
    this.#components = components;
  }

  /** Receives the entries of the kinds `output` and `result` from the sink. */
  get commands(): CommandEntries {
    return this.#components.commands;
  }

  get sessionCount(): number {
    return this.#components.sessions.count;
  }

  /** Bytes of entries received from agents and not yet stored. */
  get waitingBytes(): number {
    return this.#components.sessions.waitingBytes;
  }

  enrol(request: EnrolRequest): Promise<EnrolAnswer> {
    return this.#components.enrolment.enrol(request);
  }

  /** Number of hosts of the tenant that have an agent. */
  async enrolledCount(tenant: string): Promise<number> {
    return (await this.#components.enrolment.enrolledHosts(tenant)).length;
  }

  openSession(identity: AgentIdentity, hello: Hello, channel: AgentChannel): Promise<AgentSession> {
    return this.#components.sessions.open(identity, hello, channel);
  }

  /** Ends the sessions that this controller holds for a deleted tenant. */
  leave(tenant: string): Promise<void> {
    return this.#components.sessions.leave(tenant);
  }

  /** Keys in the system's KvStore that belong to the tenant: enrolments, join tokens and sessions. */
  async *keysOf(tenant: string): AsyncGenerator<string> {
    yield* this.#components.enrolment.keysOf(tenant);
    yield* this.#components.presence.keysOf(tenant);
  }

  /**
   * Handles an agent's answer to a request for a tunnel. Throws `AppError("denied")` if no caller waits for the tunnel.
   */
  takeTunnel(identity: AgentIdentity, opened: TunnelOpened, stream: Duplex): void {
    this.#components.tunnels.take(identity, opened, stream);
  }

  /** Returns the store that holds the content, if a policy or a deployment of this host refers to the content. */
  async content(identity: AgentIdentity, digest: string): Promise<BlobStore | undefined> {
    const { tenant, host } = identity;
    const session = this.#components.sessions.live(tenant, host);
    // A certificate that was renewed during the session has another serial number, but the same enrolment.
    if (!session || generationOf(session.identity.serial) !== generationOf(identity.serial)) return undefined;
    if (!session.refersTo(digest) && !this.#components.commands.refersTo(tenant, host, digest)) return undefined;
    return (await this.#with.stores.tenant(tenant)).blobs;
  }

  /** The certificate of the agent port, PEM. */
  async serverCertificate(): Promise<{ certificate: string; key: string; untilMs: number }> {
    const { certificate, key, untilMs } = await this.#components.authority.issueServer(this.#with.publicNames);
    return { certificate: pem("CERTIFICATE", certificate), key: pem("PRIVATE KEY", key), untilMs };
  }

  get authorities(): string {
    return this.#components.authority.certificates.map((one) => pem("CERTIFICATE", one)).join("");
  }
}
