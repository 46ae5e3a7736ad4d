import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import type { HostInput, HostList, HostView, TokenInput } from "../../../common/api/hosts.ts";
import type { EnrolAnswer, EnrolRequest } from "../../../common/agent/enrolment.ts";
import { AGENT_CERTIFICATE_LIFETIME_MS } from "../../../common/limits.ts";
import type { Hello } from "../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../runtime.ts";
import type { SecretBox } from "../../secrets/index.ts";
import type { BlobStore } from "../../store/blobs.ts";
import type { Stores } from "../../store/engine.ts";
import type { KvStore } from "../../store/kv.ts";
import type { Objects } from "../objects/index.ts";
import { requireOneOf, requirePermission, type Principal } from "../permissions/index.ts";
import type { Query } from "../query/index.ts";
import { Authority, CONTROLLER_NAME } from "./authority/authority.ts";
import { pem } from "./authority/certificates.ts";
import { generationOf } from "./authority/identity.ts";
import { AgentCommands, type CommandEntries } from "./commands/commands.ts";
import { Enrolment } from "./enrolment.ts";
import { HostRecords } from "./records.ts";
import { AgentSessions } from "./session/agent-sessions.ts";
import type { LiveSession } from "./session/live-session.ts";
import { Presence, type PresenceEvent } from "./session/presence.ts";
import { SshAccess, hasSshCredentials } from "./ssh/access.ts";
import { SshJournal } from "./ssh/journal.ts";
import { SshTransport } from "./ssh/transport.ts";
import { HostStatus } from "./status.ts";
import type { HostRecord } from "./store.ts";
import type {
  AgentChannel,
  AgentIdentity,
  AgentSession,
  CommandOutcome,
  CommandListener,
  DesiredStateSource,
  DispatchOptions,
  EntrySink,
  HostCommand,
  Hosts,
  PeerCall,
  Peers,
  PeerWatch,
  Target,
} from "./types.ts";

export interface HostServiceDependencies {
  readonly stores: Stores;
  readonly objects: Objects;
  readonly query: Query;
  readonly secrets: SecretBox;
  readonly runtime: Runtime;
  /** The id of this controller, new with every start. */
  readonly controllerId: string;
  /** The controller acting for a tenant by itself. */
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
  readonly desired: DesiredStateSource;
  /** Everything agents send, `commands` among it: see `HostService.commands`. */
  readonly sink: EntrySink;
  /** Names and addresses under which agents reach this controller. */
  readonly publicNames: readonly string[];
  readonly agentPort: () => number;
  /** The other controllers; absent: there are none. */
  readonly peers?: Peers;
  /** Agent ports of the other controllers, as `host:port`, each the list of one of them. */
  readonly otherAddresses?: () => readonly (readonly string[])[];
  /** Whether the issuing area has the command on record for the host; absent: every command counts as given. */
  readonly given?: (tenant: string, host: string, commandId: string) => Promise<boolean>;
  /** The host's record is gone; absent: nothing else depends on it. */
  readonly onRemoved?: (tenant: string, host: string) => Promise<void>;
  readonly sshTrustFirstKey?: boolean;
  readonly agentCertificateLifetimeMs?: number;
}

/** Hosts: their records, their agents, and the one way to have something done on them. */
export class HostService implements Hosts {
  readonly #with: HostServiceDependencies;
  readonly #authority: Authority;
  readonly #records: HostRecords;
  readonly #enrolment: Enrolment;
  readonly #presence: Presence;
  readonly #sessions: AgentSessions;
  readonly #commands: AgentCommands;
  readonly #journal: SshJournal;
  readonly #ssh: SshTransport;
  readonly #status: HostStatus;

  private constructor(dependencies: HostServiceDependencies, parts: Parts) {
    this.#with = dependencies;
    this.#authority = parts.authority;
    this.#presence = parts.presence;
    this.#records = parts.records;
    this.#enrolment = this.#makeEnrolment(parts);
    this.#status = new HostStatus({ ...dependencies, ...parts });
    this.#commands = new AgentCommands({
      ...dependencies,
      presence: parts.presence,
      live: (tenant, host) => this.#sessions.live(tenant, host),
    });
    this.#sessions = this.#makeSessions(parts);
    this.#journal = new SshJournal({
      kv: async (tenant) => (await dependencies.stores.tenant(tenant)).kv,
      clock: dependencies.runtime.clock,
    });
    this.#ssh = this.#makeSsh();
    parts.presence.onChange((event) => this.#presenceChanged(event));
    parts.presence.onMove((tenant, host) => this.#commands.follow(tenant, host));
  }

  /** Makes the authority when there is none, and knows every agent that is connected anywhere when it resolves. */
  static async open(dependencies: HostServiceDependencies): Promise<HostService> {
    const { secrets, runtime } = dependencies;
    const { kv } = await dependencies.stores.system();
    const agentLifetimeMs = dependencies.agentCertificateLifetimeMs ?? AGENT_CERTIFICATE_LIFETIME_MS;
    const authority = await Authority.open({ kv, secrets, runtime, agentLifetimeMs });
    const presence = new Presence({ kv, runtime });
    await presence.start();
    const records = new HostRecords({ ...dependencies, isOnline: (tenant, host) => presence.isOnline(tenant, host) });
    return new HostService(dependencies, { kv, authority, presence, records });
  }

  /** Where the sink is to bring entries of the kinds `output` and `result`. */
  get commands(): CommandEntries {
    return this.#commands;
  }

  get sessionCount(): number {
    return this.#sessions.count;
  }

  /** Of entries that agents sent and that are not stored yet. */
  get waitingBytes(): number {
    return this.#sessions.waitingBytes;
  }

  async close(): Promise<void> {
    await this.#sessions.close();
    await this.#presence.close();
    await this.#status.close();
  }

  // Records.

  list(principal: Principal, filter: HostList): AsyncIterable<readonly HostView[]> {
    requirePermission(principal, "hosts:read");
    return this.#records.list(principal, filter);
  }

  async get(principal: Principal, host: string): Promise<HostView> {
    requirePermission(principal, "hosts:read");
    return this.#records.view(principal, await this.#records.need(principal, host));
  }

  async save(principal: Principal, input: HostInput, warn?: (text: string) => void): Promise<HostView> {
    requirePermission(principal, "hosts:write");
    return this.#records.save(principal, input, warn);
  }

  /** With what only the controller may know. */
  async find(principal: Principal, host: string): Promise<HostRecord | undefined> {
    requirePermission(principal, "hosts:write");
    return this.#records.find(principal, host);
  }

  /** The record, the host's certificates and its session. */
  async remove(principal: Principal, host: string): Promise<void> {
    requirePermission(principal, "hosts:write");
    await this.#records.remove(principal, host);
    await this.#enrolment.forget(principal.tenant, host);
    await this.#sessions.drop(principal.tenant, host, `The host ${host} was removed.`);
    await this.#journal.forget(principal.tenant, host);
    await this.#with.onRemoved?.(principal.tenant, host);
  }

  async exists(principal: Principal, host: string): Promise<boolean> {
    requireOneOf(principal, ["hosts:read", "policies:run", "policies:write"]);
    return (await this.#records.find(principal, host)) !== undefined;
  }

  async noteDepot(
    principal: Principal,
    host: string,
    depot: { readonly name: string; readonly version: string },
    present: boolean,
  ): Promise<void> {
    requirePermission(principal, "depots:run");
    const actor = await this.#with.actAs(principal.tenant, principal.traceparent);
    const value = JSON.stringify([{ version: depot.version }]);
    const edit = present
      ? ({ column: "depot", operation: "add", value: { [depot.name]: value } } as const)
      : ({ column: "depot", operation: "take", value: depot.name } as const);
    await this.#records.note(actor, host, [edit]);
  }

  // Agents.

  async createToken(principal: Principal, wish: TokenInput): Promise<{ token: string; expires: number }> {
    requirePermission(principal, "hosts:write");
    return this.#enrolment.createToken(principal, wish);
  }

  enrol(request: EnrolRequest): Promise<EnrolAnswer> {
    return this.#enrolment.enrol(request);
  }

  openSession(identity: AgentIdentity, hello: Hello, channel: AgentChannel): Promise<AgentSession> {
    return this.#sessions.open(identity, hello, channel);
  }

  /** Where the content lies, when a policy or a deployment of this host refers to it. */
  async content(identity: AgentIdentity, digest: string): Promise<BlobStore | undefined> {
    const { tenant, host } = identity;
    const session = this.#sessions.live(tenant, host);
    // A certificate renewed in flight belongs to the same enrolment as the session's.
    if (!session || generationOf(session.identity.serial) !== generationOf(identity.serial)) return undefined;
    if (!session.refersTo(digest) && !this.#commands.refersTo(tenant, host, digest)) return undefined;
    return (await this.#with.stores.tenant(tenant)).blobs;
  }

  /** PEM, for the agent port. */
  async serverCertificate(): Promise<{ certificate: string; key: string; untilMs: number }> {
    const { certificate, key, untilMs } = await this.#authority.issueServer(this.#with.publicNames);
    return { certificate: pem("CERTIFICATE", certificate), key: pem("PRIVATE KEY", key), untilMs };
  }

  /** PEM, for dialling other controllers under the name `as`; new with every call. */
  async peerCertificate(): Promise<{ certificate: string; key: string; as: string }> {
    const { certificate, key } = await this.#authority.issueController(this.#with.controllerId);
    return { certificate: pem("CERTIFICATE", certificate), key: pem("PRIVATE KEY", key), as: CONTROLLER_NAME };
  }

  get authorities(): string {
    return this.#authority.certificates.map((one) => pem("CERTIFICATE", one)).join("");
  }

  onPresence(listener: (event: PresenceEvent) => void): () => void {
    return this.#presence.onChange(listener);
  }

  isOnline(tenant: string, host: string): boolean {
    return this.#presence.isOnline(tenant, host);
  }

  /**
   * Sets right what a crash left in the records: hosts shown online that are not. Once for each tenant after the start.
   */
  reconcile(tenant: string): Promise<void> {
    return this.#status.reconcile(tenant);
  }

  refresh(tenant: string, hosts: readonly string[]): void {
    const elsewhere = new Map<string, string[]>();
    for (const host of hosts) {
      const holder = this.#sessions.live(tenant, host) ? undefined : this.#presence.holderOf(tenant, host)?.controller;
      if (holder === undefined || holder === this.#with.controllerId) continue;
      elsewhere.set(holder, [...(elsewhere.get(holder) ?? []), host]);
    }
    this.refreshHere(tenant, hosts);
    for (const [controller, names] of elsewhere) this.#with.peers?.refresh(controller, tenant, names);
  }

  /** As `refresh`, for the sessions of this controller alone. */
  refreshHere(tenant: string, hosts: readonly string[]): void {
    for (const host of hosts) {
      const session = this.#sessions.live(tenant, host);
      session?.refresh().catch((error: unknown) => {
        this.#with.runtime.log.warn(
          { tenant, host, reason: errorText(error) },
          "the desired state could not be sent; the agent has to come again",
        );
        session.close("unavailable", "The desired state could not be read.");
      });
    }
  }

  /** Does for another controller what only the holder of the session can; `undefined` when the session is not here. */
  serve(watch: PeerWatch, listener: CommandListener): (PeerCall & { readonly epoch: number }) | undefined {
    return this.#commands.serve(watch, listener);
  }

  /** The controllers that are there changed: agents are told. */
  controllersChanged(): void {
    this.#sessions.tell({ $case: "controllers", value: { addresses: [...this.#addresses()] } });
  }

  // Work.

  async dispatch(
    principal: Principal,
    host: string,
    command: HostCommand,
    asked: DispatchOptions,
  ): Promise<CommandOutcome> {
    requireOneOf(principal, ["jobs:run", "depots:run"]);
    // What is left of a caller's time is rarely whole, and the wire knows whole milliseconds only.
    const options = { ...asked, timeoutMs: Math.ceil(asked.timeoutMs) };
    const record = await this.#records.need(principal, host);
    const { tenant, traceparent } = principal;
    const target: Target = { tenant, host, traceparent };
    if (this.#sessions.live(tenant, host) || this.#presence.isOnline(tenant, host))
      return this.#commands.run(target, command, options);
    if (hasSshCredentials(record)) return this.#ssh.run(target, command, options);
    return this.#unreachable(host, `The agent of ${host} is not connected, and its record has no credentials for SSH.`);
  }

  #unreachable(host: string, message: string): CommandOutcome {
    const nowMs = this.#with.runtime.clock.nowMs();
    return { host, state: "unreachable", message, startedMs: nowMs, endedMs: nowMs };
  }

  #presenceChanged(event: PresenceEvent): void {
    // Whoever holds the session writes that the host came; that it went, everybody may: the holder may be what went.
    const mine = this.#presence.holderOf(event.tenant, event.host)?.controller === this.#with.controllerId;
    if (mine || !event.online) this.#status.changed(event.tenant, event.host);
  }

  async #admit(identity: AgentIdentity): Promise<void> {
    await this.#enrolment.admit(identity);
    const principal = await this.#with.actAs(identity.tenant, "");
    if (await this.exists(principal, identity.host)) return;
    throw new AppError("denied", `There is no host ${identity.host} any more.`);
  }

  #makeEnrolment({ kv, authority }: Parts): Enrolment {
    return new Enrolment({
      ...this.#with,
      kv,
      authority,
      controllers: () => this.#addresses(),
      onEnrolled: async (tenant, host) => {
        const principal = await this.#with.actAs(tenant, "");
        await this.#records.save(principal, { host, isagent: 1 });
        await this.#dropOutdated(tenant, host);
      },
    });
  }

  /** A session that began under an earlier enrolment of its host. */
  async #dropOutdated(tenant: string, host: string): Promise<void> {
    const session = this.#sessions.live(tenant, host);
    if (!session)
      return this.#presence.isOnline(tenant, host)
        ? this.#sessions.drop(tenant, host, "The host enrolled again.")
        : undefined;
    try {
      await this.#enrolment.admit(session.identity);
    } catch (error) {
      if (!isAppError(error, "denied")) throw error;
      session.close("denied", error.message);
    }
  }

  #makeSessions({ kv, presence }: Parts): AgentSessions {
    return new AgentSessions({
      ...this.#with,
      kv,
      presence,
      admit: (identity) => this.#admit(identity),
      controllers: () => this.#addresses(),
      renew: (identity, csr) => this.#enrolment.renew(identity, csr),
      facts: (session, values) => this.#status.noteFacts(session.identity, values),
      commandState: (session, state) => this.#commands.state(session, state),
      opened: (session, hello) => this.#opened(session, hello),
    });
  }

  async #opened(session: LiveSession, hello: Hello): Promise<void> {
    this.#commands.follow(session.identity.tenant, session.identity.host);
    await this.#status.connected(session.identity, hello);
    await session.noteFacts(hello.facts?.values ?? {});
  }

  #makeSsh(): SshTransport {
    const { runtime, stores, secrets, actAs } = this.#with;
    const access = new SshAccess({
      records: this.#records,
      secrets,
      actAs,
      trustFirstKey: this.#with.sshTrustFirstKey ?? true,
    });
    return new SshTransport({
      runtime,
      address: (target) => access.address(target),
      checkKey: (target, fingerprint) => access.checkKey(target, fingerprint),
      blobs: async (tenant) => (await stores.tenant(tenant)).blobs,
      journal: this.#journal,
    });
  }

  /** One of each controller before the second of any: an agent that lost one tries the others first. */
  #addresses(): readonly string[] {
    const all = [ownAddresses(this.#with), ...(this.#with.otherAddresses?.() ?? [])];
    const seconds = all.flatMap(([, ...more]) => more);
    return [...new Set([...all.flatMap(([first]) => first ?? []), ...seconds])];
  }
}

/** `host:port` of this controller's agent port. */
export function ownAddresses({
  publicNames,
  agentPort,
}: Pick<HostServiceDependencies, "publicNames" | "agentPort">): readonly string[] {
  return publicNames.map((name) => (name.includes(":") ? `[${name}]:${agentPort()}` : `${name}:${agentPort()}`));
}

interface Parts {
  readonly kv: KvStore;
  readonly authority: Authority;
  readonly presence: Presence;
  readonly records: HostRecords;
}
