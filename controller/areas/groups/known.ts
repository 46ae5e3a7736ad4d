import { AppError } from "../../../common/errors.ts";
import { USERNAME_MAX_CHARACTERS } from "../../../common/limits.ts";
import { listed } from "../../../common/text/listed.ts";
import { suggestion } from "../../../common/text/nearest.ts";
import { type ClassCatalog, type ClassView, readablePaths } from "../objects/index.ts";
import { classAccess, FIELDS_OF_ALL, hasRawBytes, type Principal, RAW_BYTES_FIELD } from "../permissions/index.ts";
import { namedColumns } from "./compile.ts";
import type { GroupEdit } from "./types.ts";

/** Sources of existing names. */
export interface KnownSources {
  /** Current classes; absent: classes and columns in rules are not checked. */
  readonly catalogOf?: (principal: Principal) => Promise<ClassCatalog>;
  /** Answers the subset of `names` that are user names; absent: every name counts as one. */
  readonly knownNames?: (principal: Principal, names: ReadonlySet<string>) => Promise<ReadonlySet<string>>;
  /** Answers the most similar name of a user whom the principal may see; undefined if none is similar. */
  readonly likeName?: (principal: Principal, name: string) => Promise<string | undefined>;
}

/**
 * Checks the users, classes and columns that an edit names. Answers a warning for each class or column that may be
 * created later. `AppError("invalid")` for an unknown user, or for an unknown column of a known class. `members` are
 * the current members whom the caller sees: they may stay, even if their users no longer exist.
 */
export async function warningsOf(
  principal: Principal,
  edit: GroupEdit,
  { members, catalogOf, knownNames, likeName }: KnownSources & { readonly members: readonly string[] },
): Promise<readonly string[]> {
  const added = new Set(edit.member?.map((one) => one.trim()).filter((one) => one.startsWith("U/")));
  for (const member of members) added.delete(member);
  const names = new Set([...added].map(usernameOf));
  const known = (await knownNames?.(principal, names)) ?? names;
  const missing = [...added].filter((member) => !known.has(usernameOf(member)));
  await requireUsers(missing, async (name) => likeName?.(principal, name));
  return catalogOf === undefined ? [] : checkClasses(edit, { principal, catalog: await catalogOf(principal) });
}

interface Known {
  readonly principal: Principal;
  readonly catalog: Pick<ClassCatalog, "get" | "tree" | "edgeTypes">;
}

/**
 * Checks the classes and columns that an edit names. Answers a warning for each missing class, because it may be
 * created later. `AppError("invalid")` for a column that neither the class nor a class below it has. Otherwise a rule
 * with a misspelt column would not close what it should close.
 */
function checkClasses(edit: GroupEdit, known: Known): readonly string[] {
  const named = namedColumns(edit);
  const paths = [...(edit.readonly ?? []), ...(edit.writable ?? []), ...named.flatMap(({ path }) => path ?? [])];
  const missing = new Set(paths.map(normal).filter((path) => path !== "/" && known.catalog.get(path) === undefined));
  for (const { path, columns, where } of named) {
    const views = path === undefined ? [] : known.catalog.tree(normal(path));
    if (views.length > 0) for (const column of columns) checkColumn(column, views, { ...known, where });
  }
  const classes = [...missing].map(
    (path) => `There is no class ${path} now${suggestion(path, readablePaths(known.principal, known.catalog))}`,
  );
  const anywhere = new Set(named.flatMap(({ path, columns }) => (path === undefined ? columns : [])));
  return [...classes, ...[...anywhere].flatMap((column) => unknownAnywhere(column, known))];
}

/**
 * A warning if no class has this column of a condition without a path. Such a condition applies to all classes that
 * have its fields, now or later, so the column may be created later.
 */
function unknownAnywhere(column: string, known: Known): readonly string[] {
  const views = known.catalog.tree("/");
  const ownColumns = views.map(({ columns }) => ({ columns }));
  if (isColumn(column, ownColumns, known)) return [];
  return [`readexps: no class has a column ${column} now${suggestion(column, seenColumns(views, known))}`];
}

const NO_RAW_BYTES = `readexps: a row condition does not ask for ${RAW_BYTES_FIELD}, which notifications do not hold; ask for marks.`;

function checkColumn(
  column: string,
  views: readonly ClassView[],
  { where, principal, catalog }: Known & { readonly where: string },
): void {
  if (where === "readexps" && column.toLowerCase() === RAW_BYTES_FIELD && hasRawBytes(views, catalog.edgeTypes()))
    throw new AppError("invalid", NO_RAW_BYTES);
  if (isColumn(column, views, { catalog })) return;
  const seen = seenColumns(views, { principal });
  throw new AppError("invalid", `${where}: there is no column ${column}${suggestion(column, seen)}`);
}

type Columns = Pick<ClassView, "columns" | "recordColumns">;

function isColumn(column: string, views: readonly Columns[], { catalog }: Pick<Known, "catalog">): boolean {
  const name = column.toLowerCase();
  const has = (one: string): boolean => one.toLowerCase() === name;
  if (FIELDS_OF_ALL.has(name) || catalog.edgeTypes().some((type) => has(type.name))) return true;
  return views.some(({ columns, recordColumns = [] }) => [...columns, ...recordColumns].some((one) => has(one.name)));
}

/** Names of the columns that the principal may read. */
function seenColumns(views: readonly ClassView[], { principal }: Pick<Known, "principal">): ReadonlySet<string> {
  const seen = views.flatMap((view) => {
    const { readable, hidden } = classAccess(principal, view);
    const columns = readable ? view.columns.filter(({ name, sealed }) => !sealed && !hidden.has(name)) : [];
    return columns.map(({ name }) => name);
  });
  return new Set(seen);
}

/**
 * Throws `AppError("invalid")` if `missing` is not empty: members such as `U/plant/ann` whose users do not exist.
 * `likeName` answers a similar user name for the error text.
 */
async function requireUsers(
  missing: readonly string[],
  likeName: (username: string) => Promise<string | undefined>,
): Promise<void> {
  const [first, ...others] = missing.map((member) => member.slice(1));
  if (first === undefined) return;
  const username = usernameOf(first);
  const like = username.length > USERNAME_MAX_CHARACTERS ? undefined : await likeName(username);
  const end = like === undefined ? "." : `; did you mean ${first.slice(0, -username.length)}${like}?`;
  const more = others.length === 0 ? "" : ` Nor is there ${listed(others)}.`;
  throw new AppError("invalid", `member: there is no user ${first}${end}${more}`);
}

/** The user name in a member: the last part of the full name. */
export function usernameOf(member: string): string {
  return member.slice(member.lastIndexOf("/") + 1);
}

function normal(path: string): string {
  return path.trim().replace(/(?<=.)\/+$/, "");
}
