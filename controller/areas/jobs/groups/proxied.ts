import { AppError } from "../../../../common/errors.ts";
import { JOB_GROUP_CHANGE_ATTEMPTS_MAX } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { SecretBox } from "../../../secrets/index.ts";
import type { Stores } from "../../../store/engine.ts";
import type {
  CommandOutcome,
  DispatchOptions,
  ProxiedHost,
  HostCommand,
  Hosts,
  TunnelPlace,
} from "../../hosts/index.ts";
import type { Objects } from "../../objects/index.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import { groupRow, JOB_GROUP_PATH } from "../classes.ts";
import { passwordContext, placeText } from "./secrets.ts";
import { GroupStore, type StoredGroup, type StoredGroupHost } from "./store.ts";

const SSH_PORT = 22;

export interface ProxiedDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly objects: Pick<Objects, "visible">;
  readonly secrets: Pick<SecretBox, "open">;
  readonly hosts: Pick<Hosts, "dispatchBehind">;
}

interface Member {
  /** Name of the group of type `proxy`. */
  readonly group: string;
  readonly host: string;
}

interface Found {
  readonly group: StoredGroup;
  readonly revision: number;
  readonly member: StoredGroupHost;
}

/**
 * Hosts of groups of type `proxy`. Each is reached through its jump host, with the data that the group has at that
 * moment.
 */
export class ProxiedHosts {
  readonly #with: ProxiedDependencies;

  constructor(dependencies: ProxiedDependencies) {
    this.#with = dependencies;
  }

  /**
   * Hosts of a group, for a principal who may use its credentials. `undefined` if the principal sees no group of that
   * name.
   */
  async members(principal: Principal, name: string): Promise<readonly StoredGroupHost[] | undefined> {
    requirePermission(principal, "jobs:run");
    const read = await (await this.#store(principal.tenant)).read({ gtype: "proxy", name });
    if (!read) return undefined;
    const filter = await this.#with.objects.visible.records(principal, principal.ospace + JOB_GROUP_PATH);
    return filter.sees(groupRow(principal, read.group)) ? read.group.hosts : undefined;
  }

  /**
   * Sends a command to a host of a group. Does not throw if the host fails. Answers `unreachable` if the group does not
   * say how to reach the host.
   */
  async dispatch(
    principal: Principal,
    of: Member,
    sent: { readonly command: HostCommand & { readonly kind: "exec" }; readonly options: DispatchOptions },
  ): Promise<CommandOutcome> {
    requirePermission(principal, "jobs:run");
    const way = await this.#way(principal.tenant, of);
    if (typeof way !== "string") return this.#with.hosts.dispatchBehind(principal, way, sent.command, sent.options);
    const atMs = this.#with.runtime.clock.nowMs();
    return { host: of.host, state: "unreachable", message: way, startedMs: atMs, endedMs: atMs };
  }

  /** True if the group still says that the address is behind the host. */
  async leads({ tenant, host, group, address, port }: TunnelPlace): Promise<boolean> {
    const found = await this.#find(tenant, { group, host: address });
    return found?.member.proxy === host && portOf(found.member.port) === port;
  }

  /** The data by which the host is reached, or a text that says what is missing. */
  async #way(tenant: string, of: Member): Promise<ProxiedHost | string> {
    const found = await this.#find(tenant, of);
    if (!found) return `The group ${of.group} of type proxy has no host ${of.host} any more.`;
    const { host, proxy, port, username, sealed, sshkey = "" } = found.member;
    if (username === "" || sealed === undefined)
      return `The group ${of.group} has no ${username === "" ? "username" : "password"} for ${host}.`;
    const owner = { tenant, group: { gtype: "proxy", name: of.group } } as const;
    const secret = this.#with.secrets.open(sealed, passwordContext(owner, found.member));
    const noteKey = (fingerprint: string): Promise<void> => this.#noteKey(tenant, of, { ...found, fingerprint });
    return { host, proxy, group: of.group, port: portOf(port), username, secret, sshkey, noteKey };
  }

  async #find(tenant: string, { group: name, host }: Member): Promise<Found | undefined> {
    const read = await (await this.#store(tenant)).read({ gtype: "proxy", name });
    const member = read?.group.hosts.find((one) => one.host === host && one.proxy !== "");
    return read && member && { ...read, member };
  }

  /**
   * Stores the SSH key that a host shows first, in its group. This is done before anything else is sent to the host.
   */
  async #noteKey(
    tenant: string,
    of: Member,
    { member: used, fingerprint }: Pick<Found, "member"> & { readonly fingerprint: string },
  ): Promise<void> {
    const store = await this.#store(tenant);
    for (let attempt = 0; attempt < JOB_GROUP_CHANGE_ATTEMPTS_MAX; attempt++) {
      const found = await this.#find(tenant, of);
      if (!found || placeText(found.member) !== placeText(used))
        throw new AppError("conflict", `The group ${of.group} was changed while ${of.host} was being reached.`);
      const { sshkey = "" } = found.member;
      if (sshkey === fingerprint) return;
      if (sshkey !== "")
        throw new AppError("denied", `The SSH key of ${of.host} is ${fingerprint}, its group says ${sshkey}.`);
      const hosts = found.group.hosts.map((one) => (one === found.member ? { ...one, sshkey: fingerprint } : one));
      // The stamp stays: no user changes the group.
      if (await store.put({ ...found.group, hosts }, found.revision)) return;
    }
    throw new AppError("conflict", `Others change the group ${of.group} all the time.`);
  }

  async #store(tenant: string): Promise<GroupStore> {
    return new GroupStore((await this.#with.stores.tenant(tenant)).kv, this.#with.runtime);
  }
}

function portOf(port: string): number {
  return Number(port || SSH_PORT);
}
