import type { HostInput, HostList, HostView } from "../../../common/api/hosts.ts";
import { TIME_ZONE } from "../../../common/api/policies.ts";
import { errorText, isAppError } from "../../../common/errors.ts";
import type { Expected } from "../../../common/revisions.ts";
import { findTimeZone } from "../../../common/times/index.ts";
import type { Edit } from "../objects/index.ts";
import { requireOneOf, requirePermission, type Principal } from "../permissions/index.ts";
import { HostAgents } from "./agents.ts";
import { HostComponents, type HostServiceDependencies } from "./components.ts";
import { HostPeers } from "./peers.ts";
import { policyReports } from "./policy-reports.ts";
import type { SaveOptions } from "./records.ts";
import type { PresenceEvent } from "./session/presence.ts";
import { hasSshCredentials, wayOf } from "./ssh/access.ts";
import type { HostRecord } from "./store.ts";
import type { HostTokens } from "./tokens/tokens.ts";
import type {
  AgentState,
  CommandOutcome,
  DispatchOptions,
  ProxiedHost,
  HostCommand,
  Hosts,
  HostSettings,
  HostsOverSsh,
  PolicyReport,
  Target,
  WayTo,
} from "./types.ts";

/** Hosts for other areas: their records, and the only way to run commands on them. */
export class HostService implements Hosts {
  /** Operations for the agent port. */
  readonly agents: HostAgents;
  /** Operations for the connections between controllers. */
  readonly peers: HostPeers;
  /** Operations of the controller itself on hosts without an agent. */
  readonly overSsh: HostsOverSsh;
  /** Join tokens of tenants. */
  readonly tokens: HostTokens;
  readonly #with: HostServiceDependencies;
  readonly #components: HostComponents;

  private constructor(dependencies: HostServiceDependencies, components: HostComponents) {
    this.#with = dependencies;
    this.#components = components;
    this.agents = new HostAgents(dependencies, components);
    this.peers = new HostPeers(dependencies, components);
    this.overSsh = components.overSsh;
    this.tokens = components.tokens;
  }

  /** Opens the service; creates the authority if there is none. */
  static async open(dependencies: HostServiceDependencies): Promise<HostService> {
    return new HostService(dependencies, await HostComponents.open(dependencies));
  }

  /** Starts to look for hosts whose controller is gone. */
  start(): void {
    this.#components.departed.start();
  }

  async close(): Promise<void> {
    await this.#components.departed.close();
    await this.#components.sessions.close();
    await this.#components.presence.close();
    await this.#components.status.close();
  }

  /** Finishes changes of hosts whose controllers are gone. Throws if one of them cannot be made now. */
  maintain(tenant: string): Promise<void> {
    return this.#components.records.finish(tenant);
  }

  list(principal: Principal, filter: HostList): AsyncIterable<readonly HostView[]> {
    requirePermission(principal, "hosts:read");
    return this.#components.records.list(principal, filter);
  }

  async count(principal: Principal): Promise<number> {
    requirePermission(principal, "hosts:read");
    let count = 0;
    for await (const page of this.#components.records.list(principal, {})) count += page.length;
    return count;
  }

  async get(principal: Principal, host: string): Promise<HostView> {
    requirePermission(principal, "hosts:read");
    return this.#components.records.view(principal, await this.#components.records.need(principal, host));
  }

  async save(principal: Principal, input: HostInput, options?: SaveOptions): Promise<HostView> {
    requirePermission(principal, "hosts:write");
    await this.#components.room.requireServer(principal.tenant, input.host);
    return this.#components.records.save(principal, input, options);
  }

  /** Changes a host by what `change` makes of its record at the time of the write. Returns false if there is none. */
  edit(principal: Principal, host: string, change: (record: HostRecord) => HostInput): Promise<boolean> {
    requirePermission(principal, "hosts:write");
    return this.#components.records.edit(principal, host, change);
  }

  /** Returns the record including data that only the controller may read. */
  async find(principal: Principal, host: string): Promise<HostRecord | undefined> {
    requirePermission(principal, "hosts:write");
    return this.#components.records.find(principal, host);
  }

  /** Zone for times without a zone in the host's records; `undefined` if the record names none. */
  async zone(principal: Principal, host: string): Promise<string | undefined> {
    requirePermission(principal, "hosts:read");
    const zone = (await this.#components.records.find(principal, host))?.config[TIME_ZONE];
    return zone === undefined || findTimeZone(zone) === undefined ? undefined : zone;
  }

  /** Removes the record, the host's certificates and its session. */
  async remove(principal: Principal, host: string, expected?: Expected): Promise<void> {
    requirePermission(principal, "hosts:write");
    try {
      await this.#components.records.remove(principal, host, expected);
    } catch (error) {
      // It is decided and will be made, so the host's certificates end now.
      if (isAppError(error, "unknown_outcome")) await this.#forget(principal, host);
      throw error;
    }
    await this.#forget(principal, host);
  }

  async #forget(principal: Principal, host: string): Promise<void> {
    await this.#components.enrolment.forget(principal.tenant, host);
    await this.#components.sessions.drop(principal.tenant, host, `The host ${host} was removed.`);
    await this.#components.journal.forget(principal.tenant, host);
    await this.#with.onRemoved?.(principal.tenant, host);
  }

  async retag(principal: Principal, host: string, edits: readonly Edit[]): Promise<boolean> {
    requirePermission(principal, "hosts:write");
    return this.#components.records.retag(principal, host, edits);
  }

  async exists(principal: Principal, host: string): Promise<boolean> {
    requirePermission(principal, "hosts:read");
    return (await this.#components.records.find(principal, host)) !== undefined;
  }

  async wayTo(principal: Principal, host: string): Promise<WayTo | undefined> {
    requireOneOf(principal, ["hosts:read", "policies:run", "policies:write"]);
    const record = await this.#components.records.find(principal, host);
    return record && wayOf(record);
  }

  /** Undefined if there is no such host, or if the principal may not see it. */
  async agentState(principal: Principal, host: string): Promise<AgentState | undefined> {
    requireOneOf(principal, ["hosts:read", "policies:read", "policies:run"]);
    const record = await this.#components.records.find(principal, host);
    if (!record) return undefined;
    const isOnline = await this.isOnline(principal.tenant, host);
    return { hasAgent: record.isagent === 1, isOnline, policies: record.policies, confs: record.confs };
  }

  policyReports(principal: Principal): AsyncIterable<readonly PolicyReport[]> {
    requireOneOf(principal, ["hosts:read", "policies:read"]);
    return policyReports(principal, { records: this.#components.records, objects: this.#with.objects });
  }

  async depotsOn(principal: Principal, host: string): Promise<readonly string[]> {
    requirePermission(principal, "depots:run");
    return Object.keys((await this.#components.records.find(principal, host))?.depot ?? {});
  }

  async settings(principal: Principal, host: string): Promise<HostSettings> {
    requirePermission(principal, "depots:run");
    const { isextagent, iszabbix, config } = await this.#components.records.need(principal, host);
    return { isextagent, iszabbix, config };
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
    const isSame = (await this.#components.records.find(actor, host))?.depot[depot.name] === value;
    // Another version may be on the host: the removal of this one changed nothing then.
    if (!present && !isSame) return;
    const now = { depot: value, ...(!isSame && { depottimes: String(this.#with.runtime.clock.nowMs()) }) };
    const edits = present
      ? Object.entries(now).map(([column, text]): Edit => ({ column, operation: "add", value: { [depot.name]: text } }))
      : ["depot", "depottimes"].map((column): Edit => ({ column, operation: "take", value: depot.name }));
    await this.#components.records.note(actor, host, edits);
  }

  async dispatch(
    principal: Principal,
    host: string,
    command: HostCommand,
    asked: DispatchOptions,
  ): Promise<CommandOutcome> {
    requireOneOf(principal, ["jobs:run", "depots:run"]);
    // The caller's remaining time is rarely a whole number; the protocol carries whole milliseconds only.
    const options = { ...asked, timeoutMs: Math.ceil(asked.timeoutMs) };
    const record = await this.#components.records.need(principal, host);
    const { tenant, traceparent } = principal;
    const target: Target = { tenant, host, traceparent };
    if (this.#components.sessions.live(tenant, host) || (await this.#components.presence.isOnline(tenant, host)))
      return this.#components.commands.run(target, command, options);
    if (hasSshCredentials(record)) return this.#components.ssh.run(target, command, options);
    return this.#unreachable(host, `The agent of ${host} is not connected, and its record has no credentials for SSH.`);
  }

  async dispatchBehind(
    principal: Principal,
    behind: ProxiedHost,
    command: HostCommand & { readonly kind: "exec" },
    asked: DispatchOptions,
  ): Promise<CommandOutcome> {
    requirePermission(principal, "jobs:run");
    const options = { ...asked, timeoutMs: Math.ceil(asked.timeoutMs) };
    const { host, proxy } = behind;
    const record = await this.#components.records.find(principal, proxy);
    if (!record) return this.#unreachable(host, `There is no host ${proxy}, the jump host of ${host}.`);
    const { tenant, traceparent } = principal;
    const byAgent = !hasSshCredentials(record);
    if (byAgent && !(await this.#components.presence.isOnline(tenant, proxy)))
      return this.#unreachable(
        host,
        `The agent of ${proxy}, the jump host of ${host}, is not connected, and its record has no credentials for SSH.`,
      );
    if (byAgent) await this.#noteConnection(principal, behind);
    return this.#components.ssh.run({ tenant, host, traceparent, behind, byAgent }, command, options);
  }

  /** Calls `listener` for the sessions of this controller. */
  onPresence(listener: (event: PresenceEvent) => void): () => void {
    return this.#components.presence.onChange(listener);
  }

  /** Returns true if any controller has a session of the host. */
  isOnline(tenant: string, host: string): Promise<boolean> {
    return this.#components.presence.isOnline(tenant, host);
  }

  refresh(tenant: string, hosts: readonly string[]): void {
    this.peers.refreshHere(tenant, hosts);
    const elsewhere = hosts.filter((host) => !this.#components.sessions.live(tenant, host));
    this.#refreshElsewhere(tenant, elsewhere).catch((error: unknown) => {
      this.#with.runtime.log.debug(
        { tenant, reason: errorText(error) },
        "other controllers were not told of desired state; they look again by themselves",
      );
    });
  }

  async #refreshElsewhere(tenant: string, hosts: readonly string[]): Promise<void> {
    const { controllerId, peers } = this.#with;
    if (!peers || hosts.length === 0) return;
    for (const [controller, names] of await this.#components.presence.holdersOf(tenant, hosts))
      if (controller !== controllerId) peers.refresh(controller, tenant, names);
  }

  /** Writes the audit entry before the connection is made, so that the user is on record for every outcome. */
  async #noteConnection({ tenant, user, traceparent }: Principal, { host, port, proxy }: ProxiedHost): Promise<void> {
    await this.#with.audit.write({
      ...{ tenant, user, traceparent, permission: "jobs:run", remote: "" },
      action: "connection by an agent",
      object: `${proxy},${host}:${port}`,
      outcome: "ok",
      code: "",
    });
  }

  #unreachable(host: string, message: string): CommandOutcome {
    const nowMs = this.#with.runtime.clock.nowMs();
    return { host, state: "unreachable", message, startedMs: nowMs, endedMs: nowMs };
  }
}
