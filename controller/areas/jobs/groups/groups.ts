import type { GroupInput, GroupView } from "../../../../common/api/job-groups.ts";
import { AppError } from "../../../../common/errors.ts";
import { JOB_GROUP_CHANGE_ATTEMPTS_MAX, JOB_GROUPS_MAX } from "../../../../common/limits.ts";
import { newStamp, requireExpected, revisionOf, type Expected } from "../../../../common/revisions.ts";
import type { Runtime } from "../../../runtime.ts";
import { isMask, MASK, type SecretBox } from "../../../secrets/index.ts";
import type { Stores } from "../../../store/engine.ts";
import type { Objects, VisibleRecords } from "../../objects/index.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import { groupRow, JOB_GROUP_PATH } from "../classes.ts";
import { checkGroup, checkSize } from "./checks.ts";
import { placeText, sealPassword, type Place } from "./secrets.ts";
import { GroupStore, type GroupName, type StoredGroup, type StoredGroupHost } from "./store.ts";

type HostInput = GroupInput["hosts"][number];

interface Put {
  /** True: there must be a group that the principal sees. */
  readonly ifThere: boolean;
  readonly expected: Expected | undefined;
}

export interface SavedGroup {
  readonly group: GroupView;
  /** Passwords that were removed by the change, and parts of the group that have no effect. */
  readonly warnings: readonly string[];
}

/**
 * Groups of hosts that jobs name. A group of type `proxy` says how to reach hosts behind another host; a group of type
 * `group` is a list of names. Passwords are sealed together with the server to which they are sent, and are never
 * answered.
 */
export class JobGroups {
  readonly #stores: Stores;
  readonly #secrets: SecretBox;
  readonly #runtime: Runtime;
  readonly #objects: Pick<Objects, "visible">;

  constructor({
    stores,
    objects,
    secrets,
    runtime,
  }: {
    readonly stores: Stores;
    readonly objects: Pick<Objects, "visible">;
    readonly secrets: SecretBox;
    readonly runtime: Runtime;
  }) {
    this.#stores = stores;
    this.#objects = objects;
    this.#secrets = secrets;
    this.#runtime = runtime;
  }

  /** The groups that the principal may see, without hidden members, sorted by type and name. */
  async list(principal: Principal): Promise<readonly GroupView[]> {
    requirePermission(principal, "jobs:read");
    const filter = await this.#filter(principal);
    return (await this.all(principal)).flatMap((group) => shownOf(principal, group, filter) ?? []);
  }

  /** All groups, for the class of groups. Queries apply the rules for rows and columns to them. */
  async all(principal: Principal): Promise<readonly GroupView[]> {
    requirePermission(principal, "jobs:read");
    return (await (await this.#store(principal)).all()).map(viewOf);
  }

  /** Creates the group, or replaces the one of that type and name. */
  save(principal: Principal, input: GroupInput, expected?: Expected): Promise<SavedGroup> {
    requirePermission(principal, "jobs:write");
    return this.#put(principal, input, { ifThere: false, expected });
  }

  /** Replaces the group of that type and name. `AppError("not_found")` if there is none that the principal sees. */
  replace(principal: Principal, input: GroupInput, expected?: Expected): Promise<SavedGroup> {
    requirePermission(principal, "jobs:write");
    return this.#put(principal, input, { ifThere: true, expected });
  }

  /** Removes a group. `AppError("not_found")` if there is none that the principal sees. */
  async remove(principal: Principal, name: GroupName, expected?: Expected): Promise<void> {
    requirePermission(principal, "jobs:write");
    const store = await this.#store(principal);
    const { sees } = await this.#filter(principal);
    for (let attempt = 0; attempt < JOB_GROUP_CHANGE_ATTEMPTS_MAX; attempt++) {
      const found = await store.read(name);
      if (!found || !sees(groupRow(principal, viewOf(found.group)))) throw groupNotFound(name);
      requireExpected(expected, `The group ${name.name}`, found.group);
      if (await store.remove(name, found.revision)) return;
    }
    throw changedAllTheTime(name);
  }

  async #put(principal: Principal, input: GroupInput, { ifThere, expected }: Put): Promise<SavedGroup> {
    checkGroup(input);
    const store = await this.#store(principal);
    const filter = await this.#filter(principal);
    for (let attempt = 0; attempt < JOB_GROUP_CHANGE_ATTEMPTS_MAX; attempt++) {
      const before = await store.read(input);
      if (ifThere && !(before && filter.sees(groupRow(principal, before.group)))) throw groupNotFound(input);
      if (before) requireWhole(principal, before.group, filter);
      requireExpected(expected, `The group ${input.name}`, before?.group);
      requireWhole(principal, input, filter);
      if (!before && (await store.count()) >= JOB_GROUPS_MAX) throw tooManyGroups();
      const warnings: string[] = [];
      const hosts = input.hosts.map((host) =>
        this.#hostOf(principal, input, host, {
          before: before?.group.hosts.find((one) => one.host === host.host),
          warn: (text) => warnings.push(text),
        }),
      );
      const { name, gtype } = input;
      const group: StoredGroup = { name, gtype, hosts, stamp: newStamp(principal.user, this.#runtime) };
      checkSize(group);
      if (await store.put(group, before?.revision ?? 0))
        return { group: viewOf(group), warnings: [...warnings, ...withoutEffect(group)] };
    }
    throw changedAllTheTime(input);
  }

  /**
   * The stored form of a host. If the password is missing or masked, the stored one stays, unless the server has
   * changed. An empty password removes the stored one.
   */
  #hostOf(
    principal: Principal,
    group: GroupName,
    input: HostInput,
    { before, warn }: { readonly before: StoredGroupHost | undefined; readonly warn: (text: string) => void },
  ): StoredGroupHost {
    const { host, proxy = "", port = "", username = "", password } = input;
    const place = { host, proxy, port: String(port), username };
    const sshkey = input.sshkey ?? keptKey(place, before);
    const stored = { ...place, ...(sshkey !== "" && { sshkey }) };
    if (password !== undefined && password !== "" && !isMask(password)) {
      const owner = { tenant: principal.tenant, group };
      return { ...stored, sealed: sealPassword(this.#secrets, owner, { place, password }) };
    }
    if (password === "" || before?.sealed === undefined) return stored;
    const known = before.sshkey ?? sshkey;
    if (placeText(place) === placeText(before) && known === sshkey) return { ...stored, sealed: before.sealed };
    warn(`The password of ${host} was removed, because proxy, port, username or sshkey is another one now.`);
    return stored;
  }

  #filter(principal: Principal): Promise<VisibleRecords> {
    return this.#objects.visible.records(principal, principal.ospace + JOB_GROUP_PATH);
  }

  async #store({ tenant }: Principal): Promise<GroupStore> {
    return new GroupStore((await this.#stores.tenant(tenant)).kv, this.#runtime);
  }
}

function viewOf({ name, gtype, hosts, stamp }: StoredGroup): GroupView {
  return {
    name,
    gtype,
    revision: revisionOf({ stamp }),
    hosts: hosts.map(({ sealed, sshkey = "", ...place }) => ({
      ...place,
      password: sealed === undefined ? "" : MASK,
      sshkey,
    })),
  };
}

type NamedHosts = GroupName & { readonly hosts: readonly { readonly host: string }[] };

/** The group without hidden members. Undefined if the principal may not see the group. */
function shownOf(principal: Principal, group: GroupView, { sees, shown }: VisibleRecords): GroupView | undefined {
  const row = groupRow(principal, group);
  if (!sees(row)) return undefined;
  const seen = shown(row);
  return "hosts" in seen ? group : ({ name: group.name, gtype: group.gtype, revision: group.revision } as GroupView);
}

/**
 * `AppError("denied")` unless the principal sees the whole group. A write replaces all of it, so this is required of
 * the group before and after the write.
 */
function requireWhole(principal: Principal, group: NamedHosts, { sees, shown }: VisibleRecords): void {
  const row = groupRow(principal, group);
  if (sees(row) && "hosts" in shown(row)) return;
  throw new AppError("denied", `The group ${group.name} is not among the groups that this user may change.`);
}

/** The stored SSH key if the server is still the same, otherwise empty. */
function keptKey({ proxy, port }: Place, before: StoredGroupHost | undefined): string {
  return before?.proxy === proxy && before.port === port ? (before.sshkey ?? "") : "";
}

function withoutEffect({ gtype, hosts }: StoredGroup): readonly string[] {
  if (gtype === "proxy") return hosts.flatMap(unreached);
  const isPlain = hosts.every(({ proxy, port, username, sealed }) => !(proxy || port || username || sealed));
  return isPlain
    ? []
    : ["In a group of type group only the names of hosts count; each host's own record says how it is reached."];
}

function unreached({ host, proxy, username, sealed }: StoredGroupHost): readonly string[] {
  if (proxy === "") return [`No host leads to ${host}: its own record says how it is reached.`];
  if (username === "" || sealed === undefined)
    return [`Jobs do not reach ${host}: it has no ${username === "" ? "username" : "password"}.`];
  return [];
}

function changedAllTheTime({ name }: GroupName): AppError {
  return new AppError("conflict", `Others change the group ${name} all the time: nothing was changed.`);
}

function groupNotFound({ gtype, name }: GroupName): AppError {
  return new AppError("not_found", `There is no group ${name} of type ${gtype}.`);
}

function tooManyGroups(): AppError {
  return new AppError("too_large", `There are ${JOB_GROUPS_MAX} groups already.`, {
    details: { limit: "JOB_GROUPS_MAX" },
  });
}
