import { ADMINISTRATORS_ID, BUILT_IN_GROUPS, GRANTS_BY_GROUP } from "../../controller/areas/groups/builtin.ts";
import { rulesOf } from "../../controller/areas/groups/compile.ts";
import type { ClassView } from "../../controller/areas/objects/index.ts";
import { classAccess, type Principal, ROLES } from "../../controller/areas/permissions/index.ts";

type Rights = Pick<Principal, "grants" | "data" | "byToken">;

/** Columns of the page. Readers with the same rights share one. */
const READERS: readonly (readonly [title: string, rights: Rights])[] = [
  ...BUILT_IN_GROUPS.map((group) => [`\`${group.name}\``, rightsOf(group)] as const),
  [
    "a group of one's own that opens it",
    { grants: ["objects:read"], data: [{ class: "/", access: "read", group: "own" }] },
  ],
  [
    "a token with `objects:read` alone",
    { grants: ["objects:read"], byToken: "part", data: [{ class: "/", access: "read", group: "own" }] },
  ],
];

function rightsOf(group: (typeof BUILT_IN_GROUPS)[number]): Rights {
  if (group.id === ADMINISTRATORS_ID) return ROLES.administrator;
  return { grants: GRANTS_BY_GROUP.get(group.id) ?? [], data: rulesOf(group.id, group) };
}

/** `deploy/docs/platform-classes.md`: who reads the objects of which class of the platform. */
export function platformClasses(views: readonly ClassView[], ospace: string): string {
  const rows = views
    .filter(({ guard }) => guard !== undefined)
    .sort((a, b) => (a.path < b.path ? -1 : 1))
    .map((view) => {
      const path = view.path.slice(ospace.length);
      const reads = READERS.map(([, rights]) => readingText(rights, view));
      return `| \`${path}\` | \`${view.guard?.reading.permission ?? ""}\` | ${reads.join(" | ")} |`;
    });
  return [
    "# Who reads the platform's classes",
    "",
    "Hosts, runs, files, users and what else the platform keeps are objects of its own classes. Reading them takes the permission of the endpoint",
    "that answers the same, and a rule of a group that opens the class. It makes no difference how they are read: by MQL, search, `MATCH`, export,",
    "scripts or notifications. Without the permission a query is answered `denied`, with the permission's name; a query over several classes leaves the class out.",
    "",
    "- Some classes are also read without the permission, by members of a group of the tenant that opens the class (`readonly`, `writable`, `readexps`):",
    "  portals read them by MQL. Columns of command output stay closed to them.",
    "- Of `/ldap`, who lacks the permission reads his own user alone.",
    "- A token with a part of its user's rights takes the permission among its scopes, for every class.",
    "- Rows and columns that a group closes stay closed to who has the permission. See [rights](rights.md).",
    "",
    "Generated from the classes and the built-in groups by `npm run gen`. Paths are below the name space of the tenant.",
    "",
    `| Class | Permission | ${READERS.map(([title]) => title).join(" | ")} |`,
    `| --- | --- | ${READERS.map(() => "---").join(" | ")} |`,
    ...rows,
    "",
  ].join("\n");
}

function readingText(rights: Rights, view: ClassView): string {
  const { readable, hidden } = classAccess(rights, view);
  if (!readable) return "–";
  const without = view.columns.map(({ name }) => name).filter((name) => hidden.has(name));
  return without.length === 0 ? "yes" : `without ${without.map((name) => `\`${name}\``).join(", ")}`;
}
