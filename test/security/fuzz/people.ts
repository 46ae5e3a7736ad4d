import type { DataRule, Principal } from "../../../controller/areas/permissions/index.ts";
import type { GroupContent } from "../../../controller/areas/groups/index.ts";
import { PASSWORD } from "../../helpers/http/http-app.ts";
import { testPrincipal } from "../../helpers/time/runtime.ts";
import { neighbourOf } from "../people.ts";
import type { World } from "../world.ts";
import { MARK, type Marked, NEIGHBOUR_MARK, type Twin, TWINS } from "./names.ts";

/** Users with every kind of rule, and the administrator of another tenant. */

const VAULT = "/matrix/vault";
const LINES = "/matrix/lines";
const OURS = "owner = 'ours'";
const SHOWN = ["code", "note", "owner", "size", "leads"];

interface User {
  readonly grants?: readonly string[];
  readonly data?: readonly DataRule[];
  /** Groups of which only this user is a member, by name. */
  readonly groups?: Readonly<Record<string, GroupContent>>;
  /** Paths of files that an API permission opens to its groups. */
  readonly paths?: readonly string[];
  /** Marks that the user may see. */
  readonly sees?: readonly Marked[];
  readonly twins: readonly (keyof typeof TWINS)[];
}

const closed = (...paths: readonly string[]): readonly DataRule[] =>
  paths.map((path) => ({ class: `/matrix/${path}`, access: "none" }));
const ROWS = {
  readexps: [VAULT, LINES].map((path) => `${path}: ${OURS}`),
  fields: { [VAULT]: "-hushed", [LINES]: "-hushed" },
};

const USERS = {
  few: {
    groups: { few: { readonly: [VAULT, LINES], ...ROWS } },
    twins: ["row", "column", "shut", "ruled", "file", "second"],
  },
  some: {
    groups: { some: { writable: [VAULT, LINES], ...ROWS } },
    twins: ["row", "column", "shut", "ruled", "file", "second"],
  },
  // One group opens the rows without the column, another one the column of rows that do not exist.
  parted: {
    groups: {
      rows: {
        readonly: [VAULT, LINES],
        readexps: [OURS],
        fields: { [VAULT]: SHOWN.join(), [LINES]: SHOWN.slice(0, -1).join() },
      },
      column: { readexps: [VAULT, LINES].map((path) => `${path}: ${OURS} and note = 'none'`) },
    },
    twins: ["row", "shut", "ruled", "file", "second"],
  },
  reader: {
    grants: ["*:read", "objects:write"],
    data: [{ class: "/matrix/system", access: "read" }],
    groups: { reader: { writable: [VAULT, LINES], ...ROWS } },
    sees: ["user", "host", "job", "policy", "rule", "config", "context", "table", "log"],
    twins: ["row", "column", "shut", "file", "second"],
  },
  listed: {
    grants: ["*:read"],
    data: [
      { class: "/", access: "read" },
      { class: VAULT, access: "read", where: OURS, shown: SHOWN },
      { class: LINES, access: "read", where: OURS, shown: SHOWN },
      ...closed("shut", "ldap", "jobs", "system/hostinfo", "system/policy"),
      { class: "/matrix/system/config", access: "read", where: "key <> '/matrix/covert/key'" },
    ],
    sees: ["rule", "context", "table", "log"],
    twins: ["row", "column", "shut", "file", "second"],
  },
  pathed: {
    grants: ["objects:read", "files:write"],
    data: [{ class: "/matrix/filesystem", access: "read" }],
    groups: { pathed: {} },
    paths: ["/open"],
    twins: ["row", "column", "shut", "ruled", "file", "second"],
  },
} as const satisfies Readonly<Record<string, User>>;

export interface Person {
  readonly login: string;
  readonly principal: Principal;
  /** Matches the marks that the person may not see. Case does not matter, because text functions can change it. */
  readonly mark: RegExp;
  readonly twins: readonly Twin[];
}

export type PersonName = keyof typeof USERS | "neighbour";
export type People = Readonly<Record<PersonName, Person>>;

const admin = testPrincipal();

/** Makes all users. Scripts are open to them, because their rights apply inside scripts as well. */
export async function comeIn(world: World): Promise<People> {
  const { groups } = world.assembly;
  await groups.api.create(admin, "scripts", ["/script"]);
  await groups.api.addGroups(admin, "scripts", ["/everyone"]);
  for (const [name, user] of Object.entries<User>(USERS)) await join(world, name, user);
  await neighbourOf(world);
  const people = await Promise.all(
    Object.entries<User>(USERS).map(async ([name, user]) => [name, await person(world, name, user)] as const),
  );
  const neighbour = await principalOf(world, "second", "admin");
  return {
    ...(Object.fromEntries(people) as Record<keyof typeof USERS, Person>),
    neighbour: {
      login: "second.admin",
      principal: neighbour,
      mark: new RegExp(MARK, "i"),
      // It can give any other name to objects of its own tenant.
      twins: TWINS.matrix,
    },
  };
}

async function join({ assembly: { users, groups } }: World, username: string, user: User): Promise<void> {
  const { grants = [], data = [], paths } = user;
  const names = Object.keys(user.groups ?? {});
  for (const name of names) await groups.create(admin, { ...user.groups?.[name], name });
  const member = names.map((name) => `/${name}`);
  await users.create(admin, { username, password: PASSWORD, rights: { grants, data }, groups: member });
  if (paths === undefined) return;
  await groups.api.create(admin, username, paths);
  await groups.api.addGroups(admin, username, member);
}

async function principalOf({ assembly }: World, tenant: string, user: string): Promise<Principal> {
  const principal = await assembly.users.present(tenant, user);
  if (principal === undefined) throw new Error(`There is no ${user} of ${tenant}.`);
  return principal;
}

async function person(world: World, name: string, { sees = [], twins }: User): Promise<Person> {
  const but = sees.length === 0 ? "" : `(?!${sees.join("|")})`;
  return {
    login: `matrix.${name}`,
    principal: await principalOf(world, "matrix", name),
    mark: new RegExp(`${MARK}${but}|${NEIGHBOUR_MARK}`, "i"),
    twins: twins.flatMap((kind): readonly Twin[] => TWINS[kind]),
  };
}
