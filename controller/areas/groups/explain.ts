import { AppError } from "../../../common/errors.ts";
import { EXPLAINED_USERS_MAX } from "../../../common/limits.ts";
import { absolutePath } from "../../../common/paths.ts";
import type { ClassGuard } from "../objects/index.ts";
import {
  allows,
  closingOf,
  decidingRules,
  pathAllowed,
  requirePermission,
  ROLES,
  type DataRule,
  type Permission,
  type Principal,
  type RoleName,
} from "../permissions/index.ts";
import { ADMINISTRATORS_ID } from "./builtin.ts";
import type { Definitions, Member, MemberSight, Rights } from "./definitions.ts";
import type { GroupService } from "./service.ts";

export interface Question {
  /** Name of the user asked about; the caller if absent. */
  readonly user?: string;
  /** Class path. Exactly one of `class`, `path` and `endpoint` is given. */
  readonly class?: string;
  readonly path?: string;
  /** Method and path, such as `GET /hosts`. */
  readonly endpoint?: string;
  /** For a class: asks about writing its objects, not about reading them. */
  readonly write?: boolean;
}

export interface Explanation {
  readonly user: string;
  /** Full names of the groups the user is in. */
  readonly groups: readonly string[];
  readonly allowed: boolean;
  /** The rights that allow it, or the missing rights; one sentence each. */
  readonly why: readonly string[];
  /**
   * Groups that give the right: their names, how they give it, and some of their users (only users whom the caller may
   * see).
   */
  readonly who: readonly { readonly group: string; readonly how: string; readonly member: readonly string[] }[];
}

interface ExplainedUser {
  readonly username: string;
  readonly groups: readonly string[];
  readonly rights: { readonly role: RoleName } | Pick<Principal, "grants" | "data">;
}

interface ExplainedEndpoint {
  readonly method: string;
  readonly path: string;
  readonly permission: Permission | "public";
}

export interface ExplainDependencies {
  readonly groups: Pick<GroupService, "definitions" | "seenMembers">;
  readonly users: { find(principal: Principal, username: string): Promise<ExplainedUser | undefined> };
  readonly endpoints: () => readonly ExplainedEndpoint[];
  /** Answers the guard of a class of the platform; `undefined` for any other class. */
  readonly guardOf: (principal: Principal, path: string) => Promise<ClassGuard | undefined>;
}

const TOGETHER = "by rights of his own and of groups together";

/**
 * The subject of a question. `how` answers a text that says how some rights allow it, or undefined if they do not allow
 * it.
 */
interface Matter {
  readonly what: string;
  readonly missing: string;
  readonly how: (rights: Rights) => string | undefined;
  /** Text for a user who is allowed, although neither the user's own rights nor any group is enough alone. */
  readonly otherwise: (rights: Rights) => string;
}

/** Explains why a user may or may not do something, and which groups give that right. */
export class ExplainService {
  readonly #with: ExplainDependencies;

  constructor(dependencies: ExplainDependencies) {
    this.#with = dependencies;
  }

  /**
   * Answers a question. `AppError("not_found")` for an endpoint or user that does not exist or that the caller may not
   * see.
   */
  async explain(principal: Principal, question: Question): Promise<Explanation> {
    requirePermission(principal, "perms:read");
    const definitions = await this.#with.groups.definitions(principal);
    const matter = await this.#matterOf(principal, question);
    const member = await this.#member(principal, question.user ?? principal.user);
    const sees = await this.#with.groups.seenMembers(principal);
    const rights = definitions.rightsOf(member);
    const ids = definitions.groupsOf(member);
    const own = { groups: [], paths: [], ...(member.own ?? { grants: [], data: [] }) };
    const ownHow = member.isAdministrator ? undefined : matter.how(own);
    const who = definitions.stored.groups.flatMap((group) => giverOf(definitions, group.id, { matter, sees }));
    const giving = who.filter(({ id }) => ids.has(id));
    const allowed = matter.how(rights) !== undefined;
    const reasons = [
      ...(ownHow === undefined ? [] : [`${member.username} has ${matter.what} by rights of his own: ${ownHow}.`]),
      ...giving.map(({ group, how }) => `${group} gives ${matter.what}: ${how}.`),
    ];
    const given =
      reasons.length === 0 ? [`${member.username} has ${matter.what} ${matter.otherwise(rights)}.`] : reasons;
    return {
      user: member.username,
      groups: rights.groups,
      allowed,
      why: allowed ? given : [`${member.username} lacks ${matter.missing}.`],
      who: who.map(({ group, how, member: users }) => ({ group, how, member: users })),
    };
  }

  async #member(principal: Principal, username: string): Promise<Member> {
    const user = await this.#with.users.find(principal, username);
    if (user === undefined) throw new AppError("not_found", `There is no user ${username}.`);
    const { rights, groups } = user;
    const own = "role" in rights ? ROLES[rights.role] : rights;
    return { username: user.username, groups, isAdministrator: own === ROLES.administrator, own };
  }

  async #matterOf(principal: Principal, question: Question): Promise<Matter> {
    const { class: path, path: file, endpoint, write = false } = question;
    const given = [path, file, endpoint].filter((one) => one !== undefined);
    if (given.length !== 1) throw new AppError("invalid", "Ask about one thing: class, path or endpoint.");
    if (path !== undefined) {
      const normal = path.replace(/(?<=.)\/+$/, "");
      return classMatter(normal, write, await this.#with.guardOf(principal, normal));
    }
    if (file !== undefined) return pathMatter(absolutePath(file));
    return this.#endpointMatter(endpoint ?? "");
  }

  #endpointMatter(text: string): Matter {
    const [method = "", path = ""] = text.trim().split(/\s+/);
    const found = this.#with.endpoints().find((one) => one.method === method.toUpperCase() && fits(one.path, path));
    if (found === undefined) throw new AppError("not_found", `There is no endpoint ${text}.`);
    const { permission } = found;
    return {
      what: `${found.method} ${found.path}`,
      missing: `the permission ${permission} for ${found.method} ${found.path}`,
      how: ({ grants }) =>
        permission === "public" || allows({ grants }, permission) ? `the permission ${permission}` : undefined,
      otherwise: () => TOGETHER,
    };
  }
}

interface Asked {
  readonly matter: Matter;
  readonly sees: MemberSight;
}

function giverOf(definitions: Definitions, id: string, { matter, sees }: Asked) {
  const how = matter.how(definitions.rightsOfGroup(id));
  if (how === undefined) return [];
  const users = id === ADMINISTRATORS_ID ? [] : definitions.usersIn(id, EXPLAINED_USERS_MAX, sees);
  return [{ id, group: definitions.fullname(id), how, member: users }];
}

function classMatter(path: string, write: boolean, guard: ClassGuard | undefined): Matter {
  const what = `${write ? "writing" : "reading"} objects of ${path}`;
  const permission = write ? guard?.permission : guard?.reading.permission;
  const how = (rights: Rights): string | undefined => {
    if (guard !== undefined && closingOf(rights, { guard }) !== undefined) return undefined;
    if (guard !== undefined && write && (permission === undefined || !allows(rights, permission))) return undefined;
    const isPermitted = permission === undefined || allows(rights, permission);
    const opening = decidingRules(rights, path)
      .filter(({ access }) => access === "write" || (!write && access === "read"))
      .filter(({ group }) => isPermitted || group !== undefined);
    if (opening.length === 0) return undefined;
    const rules = opening.map(ruleText).join("; ");
    return permission !== undefined && isPermitted ? `the permission ${permission}, and ${rules}` : rules;
  };
  const closed =
    write && guard !== undefined && permission === undefined ? ": nothing writes them but their owner" : "";
  const takes = permission === undefined ? "" : `; it takes the permission ${permission}`;
  return {
    what,
    missing: `${what}${closed || `: no group of the user, and no right of his own, opens the class${takes}`}`,
    how,
    otherwise: (rights) => `${TOGETHER}: ${how(rights) ?? ""}`,
  };
}

function ruleText({ access, class: path, where, anywhere = [], hidden = [], shown }: DataRule): string {
  const conditions = [...(where === undefined ? [] : [where]), ...anywhere.map((one) => one.where)];
  return [
    `${access} ${path}`,
    ...(conditions.length === 0 ? [] : [`rows where ${conditions.join(" or ")}`]),
    ...(shown === undefined ? [] : [`columns ${shown.join(", ")}`]),
    ...(hidden.length === 0 ? [] : [`without ${hidden.join(", ")}`]),
  ].join(", ");
}

function pathMatter(path: string): Matter {
  return {
    what: `the path ${path}`,
    missing: `the path ${path}: no API permission of a group of the user covers it`,
    otherwise: () => "as his own",
    how: (rights) => {
      if (!pathAllowed(rights, path)) return undefined;
      return rights.paths === undefined
        ? "every path"
        : rights.paths.filter((one) => pathAllowed({ paths: [one] }, path)).join(", ");
    },
  };
}

/**
 * True if the path matches a pattern. A part `:name` matches any text except an empty one; a last `*` matches one or
 * more parts.
 */
function fits(pattern: string, path: string): boolean {
  const [wanted, given] = [pattern.split("/"), (path.split("?")[0] ?? "").split("/")];
  const isOpen = wanted.at(-1) === "*";
  const fixed = isOpen ? wanted.slice(0, -1) : wanted;
  if (isOpen ? given.length < wanted.length : given.length !== wanted.length) return false;
  return fixed.every((part, at) => part === given[at] || (part.startsWith(":") && given[at] !== ""));
}
