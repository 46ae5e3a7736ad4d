import { errorText } from "../../../../common/errors.ts";
import { listed } from "../../../../common/text/listed.ts";
import type { Audit } from "../../audit/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { UserRecord } from "../store.ts";
import type { BegunWork } from "../types.ts";

/** The users who lost rights by one change. */
export interface Narrowed {
  /** Name of the changed user, group or organisation. */
  readonly name: string;
  readonly what: "user" | "group" | "organisation";
  readonly includes: (username: string) => Promise<boolean>;
}

export interface LeftWorkDependencies {
  readonly begun: readonly BegunWork[];
  readonly audit: Pick<Audit, "record">;
}

/** Reports work that continues with rights its user no longer has. */
export class LeftWork {
  readonly #with: LeftWorkDependencies;

  constructor(dependencies: LeftWorkDependencies) {
    this.#with = dependencies;
  }

  /**
   * Finds work that continues although its users lost rights. Answers a sentence for each kind of work, and writes an
   * audit entry. Call it after the rights are lost: work that begins later has only the remaining rights. Never throws,
   * because the change is already made.
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

/** True if the user has fewer rights after the change. */
export function isNarrower(before: UserRecord, after: Pick<UserRecord, "active" | "rights" | "groups">): boolean {
  const isRoleLost = "role" in before.rights && !("role" in after.rights);
  const isGroupLost = before.groups.some((group) => !after.groups.includes(group));
  return (before.active && !after.active) || isRoleLost || isGroupLost;
}
