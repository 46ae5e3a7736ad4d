import type { Duplex } from "node:stream";
import { AppError, isAppError } from "../../../common/errors.ts";
import { AGENT_CERTIFICATE_LIFETIME_MS } from "../../../common/limits.ts";
import type { Hello } from "../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../runtime.ts";
import type { SecretBox } from "../../secrets/index.ts";
import type { Stores } from "../../store/engine.ts";
import type { KvStore } from "../../store/kv.ts";
import type { Audit } from "../audit/index.ts";
import type { Objects, Rehearsals } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { Query } from "../query/index.ts";
import { Authority } from "./authority/authority.ts";
import { AgentCommands } from "./commands/commands.ts";
import { Enrolment } from "./enrolment.ts";
import { HostRecords } from "./records.ts";
import { AgentSessions } from "./session/agent-sessions.ts";
import type { LiveSession } from "./session/live-session.ts";
import { DepartedSessions } from "./session/departed.ts";
import { Presence } from "./session/presence.ts";
import { SshAccess } from "./ssh/access.ts";
import { SshJournal } from "./ssh/journal.ts";
import { HostRoom, type HostLimits } from "./room.ts";
import { SshHosts } from "./ssh/ssh-hosts.ts";
import { SshTransport } from "./ssh/transport.ts";
import { HostStatus } from "./status.ts";
import { HostTokens } from "./tokens/tokens.ts";
import { AgentTunnels } from "./tunnels/agent-tunnels.ts";
import type { AgentIdentity, Controllers, DesiredStateSource, EntrySink, Peers, TunnelPlace } from "./types.ts";

export interface HostServiceDependencies {
  readonly stores: Stores;
  readonly objects: Objects & Rehearsals;
  readonly query: Query;
  readonly secrets: SecretBox;
  readonly runtime: Runtime;
  /** Id of this controller, new with every start. */
  readonly controllerId: string;
  readonly controllers: Controllers;
  readonly audit: Pick<Audit, "write">;
  /** Returns the principal by which the controller itself acts in a tenant. */
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
  readonly desired: DesiredStateSource;
  /** Receives everything that agents send; it passes command entries to `HostAgents.commands`. */
  readonly sink: EntrySink;
  /** Names and addresses under which agents reach this controller. */
  readonly publicNames: readonly string[];
  readonly agentPort: () => number;
  /** Connections to the other controllers. Absent: there are no others. */
  readonly peers?: Peers;
  /** Agent ports of the other controllers as `host:port`, one list for each controller. */
  readonly otherAddresses?: () => readonly (readonly string[])[];
  /** Returns true if some area has on record that the host was given the command. Absent: every command is accepted. */
  readonly given?: (tenant: string, host: string, commandId: string) => Promise<boolean>;
  /** Returns true if a group of type proxy declares the place as reachable through that host. Absent: always false. */
  readonly leads?: (place: TunnelPlace) => Promise<boolean>;
  /** Called after a host's record changed in more than its vitals. Absent: nothing else depends on it. */
  readonly onChanged?: (tenant: string, host: string) => void;
  /** Called after the host's record is removed. Absent: nothing else depends on it. */
  readonly onRemoved?: (tenant: string, host: string) => Promise<void>;
  /** Limits on the number of a tenant's hosts; throws if the tenant may have no more. Absent: no limits. */
  readonly limits?: (tenant: string) => Promise<HostLimits>;
  readonly sshTrustFirstKey?: boolean;
  readonly agentCertificateLifetimeMs?: number;
}

const UNLIMITED: HostLimits = { agents: Infinity, servers: Infinity };

interface Opened {
  readonly kv: KvStore;
  readonly authority: Authority;
  readonly presence: Presence;
  readonly records: HostRecords;
}

/** The components of this area, each connected to those it needs. */
export class HostComponents {
  readonly authority: Authority;
  readonly records: HostRecords;
  readonly enrolment: Enrolment;
  readonly tokens: HostTokens;
  readonly presence: Presence;
  readonly departed: DepartedSessions;
  readonly sessions: AgentSessions;
  readonly commands: AgentCommands;
  readonly tunnels: AgentTunnels;
  readonly journal: SshJournal;
  readonly ssh: SshTransport;
  readonly overSsh: SshHosts;
  readonly status: HostStatus;
  readonly room: HostRoom;
  readonly #with: HostServiceDependencies;

  private constructor(dependencies: HostServiceDependencies, opened: Opened) {
    this.#with = dependencies;
    this.authority = opened.authority;
    this.presence = opened.presence;
    this.records = opened.records;
    this.room = new HostRoom({
      limits: dependencies.limits ?? (() => Promise.resolve(UNLIMITED)),
      actAs: dependencies.actAs,
      records: opened.records,
    });
    this.enrolment = this.#makeEnrolment(opened);
    this.tokens = new HostTokens({
      ...dependencies,
      ...opened,
      isOnline: (tenant, host) => opened.presence.isOnline(tenant, host),
    });
    this.status = new HostStatus({ ...dependencies, ...opened });
    this.departed = new DepartedSessions({ ...dependencies, ...opened, status: this.status });
    this.commands = new AgentCommands({
      ...dependencies,
      presence: opened.presence,
      live: (tenant, host) => this.sessions.live(tenant, host),
    });
    this.tunnels = new AgentTunnels({
      runtime: dependencies.runtime,
      leads: dependencies.leads ?? (() => Promise.resolve(false)),
      live: (tenant, host) => this.sessions.live(tenant, host),
    });
    this.sessions = this.#makeSessions(opened);
    this.journal = new SshJournal({
      kv: async (tenant) => (await dependencies.stores.tenant(tenant)).kv,
      clock: dependencies.runtime.clock,
    });
    this.ssh = this.#makeSsh();
    this.overSsh = new SshHosts({
      ...{ records: opened.records, status: this.status, ssh: this.ssh, journal: this.journal },
      actAs: dependencies.actAs,
    });
    // The holder of a session records that the host came or went. If that controller is gone, `departed` does.
    opened.presence.onChange(({ tenant, host }) => void this.status.changed({ tenant, host }));
  }

  /** Opens the components; creates the authority if there is none. */
  static async open(dependencies: HostServiceDependencies): Promise<HostComponents> {
    const { secrets, runtime } = dependencies;
    const { kv } = await dependencies.stores.system();
    const agentLifetimeMs = dependencies.agentCertificateLifetimeMs ?? AGENT_CERTIFICATE_LIFETIME_MS;
    const authority = await Authority.open({ kv, secrets, runtime, agentLifetimeMs });
    const presence = new Presence({ kv, runtime, controllerId: dependencies.controllerId });
    await presence.start();
    const records = new HostRecords({
      ...dependencies,
      isOnline: (tenant, host) => presence.isOnline(tenant, host),
      isHere: (tenant, host) => presence.isHere(tenant, host),
    });
    return new HostComponents(dependencies, { kv, authority, presence, records });
  }

  /**
   * Addresses of all controllers: first one address of each controller, then the other addresses. So an agent that lost
   * a controller tries the other controllers first.
   */
  addresses(): readonly string[] {
    const all = [ownAddresses(this.#with), ...(this.#with.otherAddresses?.() ?? [])];
    const seconds = all.flatMap(([, ...more]) => more);
    return [...new Set([...all.flatMap(([first]) => first ?? []), ...seconds])];
  }

  async #admit(identity: AgentIdentity): Promise<void> {
    await this.enrolment.admit(identity);
    const principal = await this.#with.actAs(identity.tenant, "");
    if ((await this.records.find(principal, identity.host)) !== undefined) return;
    throw new AppError("denied", `There is no host ${identity.host} any more.`);
  }

  #makeEnrolment({ kv, authority }: Opened): Enrolment {
    return new Enrolment({
      ...this.#with,
      kv,
      authority,
      room: this.room,
      controllers: () => this.addresses(),
      onEnrolled: async (tenant, host) => {
        const principal = await this.#with.actAs(tenant, "");
        await this.records.noteAgent(principal, host);
        await this.#dropOutdated(tenant, host);
      },
    });
  }

  /** Ends a session that began under an earlier enrolment of its host. */
  async #dropOutdated(tenant: string, host: string): Promise<void> {
    const session = this.sessions.live(tenant, host);
    if (!session) return this.sessions.drop(tenant, host, "The host enrolled again.");
    try {
      await this.enrolment.admit(session.identity);
    } catch (error) {
      if (!isAppError(error, "denied")) throw error;
      session.close("denied", error.message);
    }
  }

  #makeSessions({ kv, presence }: Opened): AgentSessions {
    return new AgentSessions({
      ...this.#with,
      kv,
      presence,
      admit: (identity) => this.#admit(identity),
      controllers: () => this.addresses(),
      renew: (identity, csr) => this.enrolment.renew(identity, csr),
      facts: (session, values) => this.status.noteFacts(session.identity, values),
      commandState: (session, state) => this.commands.state(session, state),
      opened: (session, hello) => this.#opened(session, hello),
      left: (session) => this.#left(session),
    });
  }

  #left({ identity, epoch }: LiveSession): void {
    const { tenant, host } = identity;
    this.commands.left(identity, epoch);
    // If a newer session replaced it here, the tunnels continue.
    if (!this.sessions.live(tenant, host)) this.tunnels.leave(tenant, host);
  }

  async #opened(session: LiveSession, hello: Hello): Promise<void> {
    this.commands.follow(session.identity.tenant, session.identity.host);
    await this.status.connected(session.identity, hello);
    await session.noteFacts(hello.facts?.values ?? {});
  }

  #makeSsh(): SshTransport {
    const { runtime, stores, secrets, actAs } = this.#with;
    const access = new SshAccess({
      records: this.records,
      secrets,
      actAs,
      trustFirstKey: this.#with.sshTrustFirstKey ?? true,
    });
    return new SshTransport({
      runtime,
      address: (target) => access.address(target),
      checkKey: (target, fingerprint) => access.checkKey(target, fingerprint),
      blobs: async (tenant) => (await stores.tenant(tenant)).blobs,
      journal: this.journal,
      openTunnel: (place, signal) => this.#openTunnel(place, signal),
    });
  }

  async #openTunnel(place: TunnelPlace, signal: AbortSignal): Promise<Duplex> {
    const { tenant, host } = place;
    const { controllerId, peers } = this.#with;
    const holder = (await this.presence.holderOf(tenant, host))?.controller;
    const isElsewhere = holder !== undefined && holder !== controllerId && !this.sessions.live(tenant, host);
    return isElsewhere && peers ? peers.tunnel(holder, place, signal) : this.tunnels.open(place, signal);
  }
}

/** `host:port` of this controller's agent port. */
export function ownAddresses({
  publicNames,
  agentPort,
}: Pick<HostServiceDependencies, "publicNames" | "agentPort">): readonly string[] {
  return publicNames.map((name) => (name.includes(":") ? `[${name}]:${agentPort()}` : `${name}:${agentPort()}`));
}
