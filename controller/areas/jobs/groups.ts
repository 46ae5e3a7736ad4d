import type { GroupInput, GroupView } from "../../../common/api/jobs.ts";
import { AppError } from "../../../common/errors.ts";
import { JOB_GROUP_CHANGE_ATTEMPTS_MAX, JOB_GROUPS_MAX } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import { isMask, MASK, type SecretBox } from "../../secrets/index.ts";
import type { Stores } from "../../store/engine.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { checkGroup, checkSize } from "./group-checks.ts";
import { placeText, sealPassword, type Place } from "./group-secrets.ts";
import { GroupStore, type GroupName, type StoredGroup, type StoredGroupHost } from "./group-store.ts";

const WRITE_BYTES = 12;

type HostInput = GroupInput["hosts"][number];

export interface SavedGroup {
  readonly group: GroupView;
  /** What the change took away, and what has no effect yet. */
  readonly warnings: readonly string[];
}

/**
 * Groups of hosts that jobs name: of type `group`, or of type `proxy` for hosts behind another one. Passwords are sealed
 * together with where they are sent, and never answered.
 */
export class JobGroups {
  readonly #stores: Stores;
  readonly #secrets: SecretBox;
  readonly #runtime: Runtime;

  constructor({
    stores,
    secrets,
    runtime,
  }: {
    readonly stores: Stores;
    readonly secrets: SecretBox;
    readonly runtime: Runtime;
  }) {
    this.#stores = stores;
    this.#secrets = secrets;
    this.#runtime = runtime;
  }

  /** By type and name. */
  async list(principal: Principal): Promise<readonly GroupView[]> {
    requirePermission(principal, "jobs:read");
    return (await (await this.#store(principal)).all()).map(viewOf);
  }

  /** Makes the group, or replaces the one of that type and name. */
  save(principal: Principal, input: GroupInput): Promise<SavedGroup> {
    requirePermission(principal, "jobs:write");
    return this.#put(principal, input, false);
  }

  /** Replaces the group of that type and name; `AppError("not_found")` when there is none. */
  replace(principal: Principal, input: GroupInput): Promise<SavedGroup> {
    requirePermission(principal, "jobs:write");
    return this.#put(principal, input, true);
  }

  /** `AppError("not_found")` when there is none. */
  async remove(principal: Principal, name: GroupName): Promise<void> {
    requirePermission(principal, "jobs:write");
    if (!(await (await this.#store(principal)).remove(name))) throw groupNotFound(name);
  }

  async #put(principal: Principal, input: GroupInput, ifThere: boolean): Promise<SavedGroup> {
    checkGroup(input);
    const store = await this.#store(principal);
    for (let attempt = 0; attempt < JOB_GROUP_CHANGE_ATTEMPTS_MAX; attempt++) {
      const before = await store.read(input);
      if (ifThere && !before) throw groupNotFound(input);
      if (!before && (await store.count()) >= JOB_GROUPS_MAX) throw tooManyGroups();
      const warnings: string[] = [];
      const hosts = input.hosts.map((host) =>
        this.#hostOf(principal, input, host, {
          before: before?.group.hosts.find((one) => one.host === host.host),
          warn: (text) => warnings.push(text),
        }),
      );
      const write = Buffer.from(this.#runtime.random.bytes(WRITE_BYTES)).toString("base64url");
      const group: StoredGroup = { write, name: input.name, gtype: input.gtype, hosts };
      checkSize(group);
      if (await store.put(group, before?.revision ?? 0))
        return { group: viewOf(group), warnings: [...warnings, ...withoutEffect(group)] };
    }
    throw new AppError("conflict", `Others change the group ${input.name} all the time: nothing was changed.`);
  }

  /** A password that is missing or masked stays, unless the host is another one now; an empty one goes. */
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

  async #store({ tenant }: Principal): Promise<GroupStore> {
    return new GroupStore((await this.#stores.tenant(tenant)).kv, this.#runtime);
  }
}

function viewOf({ name, gtype, hosts }: StoredGroup): GroupView {
  return {
    name,
    gtype,
    hosts: hosts.map(({ sealed, sshkey = "", ...place }) => ({
      ...place,
      password: sealed === undefined ? "" : MASK,
      sshkey,
    })),
  };
}

/** That of the same server stays. */
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

function groupNotFound({ gtype, name }: GroupName): AppError {
  return new AppError("not_found", `There is no group ${name} of type ${gtype}.`);
}

function tooManyGroups(): AppError {
  return new AppError("too_large", `There are ${JOB_GROUPS_MAX} groups already.`, {
    details: { limit: "JOB_GROUPS_MAX" },
  });
}
