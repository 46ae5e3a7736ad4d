import { AUDIT_NAMES_MAX, AUDIT_OBJECT_MAX_CHARACTERS } from "../../../common/limits.ts";
import { beginningOf } from "../../../common/text/cut.ts";
import type { UploadedFile } from "../interface/endpoint.ts";

/**
 * Members of an input that name what a call changes, in the order of the audit entry. All endpoints use the same words;
 * `changed.test.ts` finds an endpoint that names its object by another word.
 */
const NAMING = [
  ...["class", "cid", "key", "gtype", "name", "dir", "group", "id", "username", "version"],
  ...["tag", "tagpath", "topath", "srcpath", "dstpath", "rule", "filename", "subject"],
] as const;
/** The same, for calls that have none of the above. In other calls these members say where, not what. */
const OTHERWISE = ["host", "hosts", "depots", "jobs", "home"] as const;

export interface Changing {
  /** Parameters of the path, as sent. */
  readonly path: Readonly<Record<string, string>>;
  /** The validated input. */
  readonly input?: unknown;
  readonly files?: readonly UploadedFile[];
  /** Members of the input that are never told. */
  readonly secrets?: readonly string[] | undefined;
}

/** Names of what a call changes, for the audit trail; never a value. Empty if the address says everything. */
export function changedBy({ path, input, files = [], secrets = [] }: Changing): string {
  const members = typeof input === "object" && input !== null ? (input as Readonly<Record<string, unknown>>) : {};
  const given = (names: readonly string[]): readonly string[] =>
    names
      .filter((name) => !Object.hasOwn(path, name) && !secrets.includes(name))
      .flatMap((name) => namesIn(members[name]));
  const own = [...Object.values(path), ...given(NAMING)];
  const uploaded = files.map(({ filename }) => filename);
  return told([...(own.length > 0 ? own : given(OTHERWISE)), ...uploaded].filter((name) => name !== ""));
}

function namesIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  if (typeof value === "number") return [String(value)];
  if (Array.isArray(value)) return value.flatMap(namesIn);
  return typeof value === "object" && value !== null && "name" in value ? namesIn(value.name) : [];
}

function told(names: readonly string[]): string {
  const more = names.length - AUDIT_NAMES_MAX;
  const all = [...names.slice(0, AUDIT_NAMES_MAX), ...(more > 0 ? [`and ${more} more`] : [])].join(", ");
  return beginningOf(all, AUDIT_OBJECT_MAX_CHARACTERS);
}
