import { errorText } from "../../../common/errors.ts";
import { listed } from "../../../common/text/listed.ts";
import type { Audit } from "../audit/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { UserRecord } from "./store.ts";
import type { BegunWork } from "./types.ts";

/** Who lost rights, of whose work is told. */
export interface Narrowed {
  /** The user, the group or the organisation that was changed. */
  readonly name: string;
  readonly what: "user" | "group" | "organisation";
  readonly includes: (username: string) => Promise<boolean>;
}

export interface LeftWorkDependencies {
  readonly begun: readonly BegunWork[];
  readonly audit: Pick<Audit, "record">;
}

/** What goes on with rights that its user has no more. */
export class LeftWork {
  readonly #with: LeftWorkDependencies;

  constructor(dependencies: LeftWorkDependencies) {
    this.#with = dependencies;
  }

  /**
   * A sentence for each kind of work that goes on, which is put on record, too. To be called when the rights are lost:
   * what is not told began with those that are left. Never throws, for the rights are lost by then.
   */
  async told(principal: Principal, whose: Narrowed): Promise<readonly string[]> {
    const found = await Promise.all(this.#with.begun.map((work) => goingOn(work, principal, whose)));
    const names = found.flatMap((one) => one.names);
    if (names.length > 0) await this.#record(principal, whose, names);
    return found.flatMap(({ sentence }) => sentence ?? []);
  }

  #record(principal: Principal, { what, name }: Narrowed, named: readonly string[]): Promise<void> {
    const { tenant, user, remote = "", traceparent } = principal;
    return this.#with.audit.record({
      ...{ tenant, user, remote, traceparent },
      permission: what === "group" ? "perms:write" : "users:write",
      action: `leave going on what ${BEGINNERS[what]} began`,
      object: listed([name, ...named]),
      outcome: "ok",
      code: "ok",
    });
  }
}

const BEGINNERS: Readonly<Record<Narrowed["what"], string>> = {
  user: "a user",
  group: "members of a group",
  organisation: "users of an organisation",
};

export function ofUser(name: string): Narrowed {
  return { name, what: "user", includes: (username) => Promise.resolve(username === name) };
}

interface GoingOn {
  readonly names: readonly string[];
  readonly sentence?: string;
}

async function goingOn({ kind, goesOn }: BegunWork, principal: Principal, whose: Narrowed): Promise<GoingOn> {
  try {
    const names = await goesOn(principal, whose.includes);
    if (names.length === 0) return { names };
    return { names, sentence: `These ${kind} go on with the rights of their start: ${listed(names)}.` };
  } catch (error) {
    const sentence = `Whether ${kind} of ${whose.name} go on could not be read: ${errorText(error)}`;
    return { names: [], sentence };
  }
}

/** Whether the user may do less after the change. */
export function isNarrower(before: UserRecord, after: Pick<UserRecord, "active" | "rights" | "groups">): boolean {
  const isRoleLost = "role" in before.rights && !("role" in after.rights);
  const isGroupLost = before.groups.some((group) => !after.groups.includes(group));
  return (before.active && !after.active) || isRoleLost || isGroupLost;
}
