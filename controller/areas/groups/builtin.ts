import type { Permission } from "../permissions/index.ts";
import type { GroupRecord, PathRecord } from "./types.ts";

/** Ids of the two built-in groups with automatic members. */

export const EVERYONE_ID = "1";
export const ADMINISTRATORS_ID = "2";

const NOTHING = { parent: "", member: [], readonly: [], writable: [], readexps: [], fields: {}, tags: [] } as const;

/** The groups of a tenant whose definitions were never changed. The first change stores them. */
export const BUILT_IN_GROUPS: readonly GroupRecord[] = [
  { ...NOTHING, id: EVERYONE_ID, name: "everyone" },
  { ...NOTHING, id: ADMINISTRATORS_ID, name: "administrators" },
  { ...NOTHING, id: "3", name: "operators", writable: ["/"] },
  { ...NOTHING, id: "4", name: "authors", writable: ["/"] },
  { ...NOTHING, id: "5", name: "viewers", readonly: ["/"] },
];

/** Groups with automatic members: all users, and all administrators. */
export const FILLED_BY_THEMSELVES: ReadonlySet<string> = new Set([EVERYONE_ID, ADMINISTRATORS_ID]);

/** True for the id and the full name of the group of administrators. */
export function isAdministrators(name: string): boolean {
  return name === ADMINISTRATORS_ID || name === "/administrators";
}

/**
 * Grants for endpoints. Groups that tenants create are not in this list: their grants follow from the classes they
 * open.
 */
export const GRANTS_BY_GROUP: ReadonlyMap<string, readonly (Permission | "*:read" | "*:run")[]> = new Map([
  [
    "3",
    ["*:read", "*:run", "hosts:write", "jobs:write", "objects:write", "tags:write", "appcontext:write", "tables:write"],
  ],
  [
    "4",
    [
      "*:read",
      "appcontext:write",
      "config:write",
      "depots:write",
      "files:write",
      "jobs:write",
      "objects:write",
      "policies:write",
      "rules:write",
      "schema:write",
      "tables:write",
      "tags:write",
      "triggers:write",
    ],
  ],
  ["5", ["*:read"]],
]);

const START_UP_SCRIPTS = [
  "/matrix/user/signedUser.js",
  "/matrix/utils/global.js",
  "/matrix/lang/getLangList.js",
  "/matrix/system/getAppNameByUrl.js",
] as const;

export const PUBLIC_PERMISSION: PathRecord = {
  name: "public",
  paths: ["/app", "/web", "/assets", "/extend", ...START_UP_SCRIPTS],
  groups: [EVERYONE_ID],
};
