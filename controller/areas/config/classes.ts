import { AppError } from "../../../common/errors.ts";
import type { Row } from "../../../common/value.ts";
import { columns, type Edit, type SystemClass } from "../objects/index.ts";
import { FIELDS_OF_ALL, type Principal } from "../permissions/index.ts";
import { CONFIG_PATH } from "./rights.ts";

/** Methods of the configuration service that the class of entries uses. */
interface EntryOwner {
  all(principal: Principal): AsyncIterable<readonly Row[]>;
  set(
    principal: Principal,
    entry: { readonly key: string; readonly value: string; readonly mustExist?: boolean },
  ): Promise<{ readonly key: string; readonly isThere: boolean }>;
  removeEntries(principal: Principal, keys: readonly string[]): Promise<number>;
}

/** The class of entries. Its rows are read from the KvStore, which is the only place where configuration is stored. */
export function configClass(config: EntryOwner): SystemClass {
  return {
    path: CONFIG_PATH,
    columns: [
      ...columns("varchar", {
        key: "Key: a path that begins with the name space",
        name: "Last part of the key",
        parent: "Key without its last part: the folder of the entry",
      }),
      ...columns("text", { value: "Text of the entry; ******** instead of a secret" }),
      ...columns("boolean", { secret: "True if the value is sealed and never shown" }),
      ...columns("bigint", { version: "Number of the latest change of the key, from 1; 0 if older than versions" }),
      ...columns("varchar", { author: "User who made the latest change; empty if older than versions" }),
      ...columns("timestamp", {
        changed: "Time of the latest change; 1970 if older than versions",
        expires: "Time at which the entry expires; empty: never",
      }),
    ],
    keys: ["key"],
    guard: {
      reading: { permission: "config:read" },
      permission: "config:write",
      async insert(principal, rows) {
        const ids: string[] = [];
        for (const entry of rows.map(entryOf)) ids.push(`config:${(await config.set(principal, entry)).key}`);
        return ids;
      },
      async update(principal, id, edits) {
        const set = await config.set(principal, { key: keyOf(id), value: valueAfter(edits), mustExist: true });
        return set.isThere;
      },
      remove: (principal, ids) => config.removeEntries(principal, ids.map(keyOf)),
    },
    provide: (principal) => config.all(principal),
  };
}

function keyOf(id: string): string {
  return id.slice(id.indexOf(":") + 1);
}

function entryOf(row: Row): { readonly key: string; readonly value: string } {
  const { key, value } = row;
  const other = Object.keys(row).find((name) => name !== "key" && name !== "value" && !FIELDS_OF_ALL.has(name));
  if (other !== undefined) throw unwritable(other);
  if (typeof key !== "string" || typeof value !== "string")
    throw new AppError("invalid", "An entry of configuration is inserted with key and value, both texts.");
  return { key, value };
}

function valueAfter(edits: readonly Edit[]): string {
  const [edit, second] = edits;
  const other = edits.find(({ column, operation }) => column !== "value" || operation !== "set");
  if (other) throw unwritable(other.column);
  if (edit === undefined || second !== undefined || typeof edit.value !== "string")
    throw new AppError("invalid", "The value of an entry of configuration is set to one text.");
  return edit.value;
}

function unwritable(column: string): AppError {
  return new AppError("unsupported", `The column ${column} of configuration is kept by the platform, not by MQL.`);
}
