import { Value as Check } from "typebox/value";
import { HostInput } from "../../../common/api/hosts.ts";
import { AppError } from "../../../common/errors.ts";
import type { Row, Value } from "../../../common/value.ts";
import { TAGS_COLUMN, type ClassGuard, type Edit } from "../objects/index.ts";
import { FIELDS_OF_ALL, type Principal } from "../permissions/index.ts";
import type { HostRecord } from "./store.ts";

/** Functions that MQL calls instead of writing host records itself. */
export interface HostWrites {
  save(principal: Principal, input: HostInput): Promise<{ readonly id: string }>;
  /** Makes a change of the record as it is at the time of the write. Returns false if there is no such host. */
  edit(principal: Principal, host: string, change: (record: HostRecord) => HostInput): Promise<boolean>;
  remove(principal: Principal, host: string): Promise<void>;
  /** Adds and removes tags; safe with concurrent edits. Returns false if the host no longer exists. */
  retag(principal: Principal, host: string, edits: readonly Edit[]): Promise<boolean>;
}

const SETTABLE = new Set(Object.keys(HostInput.properties));

export function hostGuard(writes: HostWrites): ClassGuard {
  return {
    reading: { permission: "hosts:read", isOpenToGroups: true },
    permission: "hosts:write",
    insert: async (principal, rows) => {
      const inputs = rows.map(inputOf);
      const ids: string[] = [];
      for (const input of inputs) ids.push((await writes.save(principal, input)).id);
      return ids;
    },
    update: (principal, id, edits) =>
      edits.every(({ column, operation }) => column === TAGS_COLUMN && operation !== "set")
        ? writes.retag(principal, hostOf(id), edits)
        : writes.edit(principal, hostOf(id), (record) => inputOf({ host: record.host, ...changed(record, edits) })),
    remove: async (principal, ids) => {
      for (const id of ids) await writes.remove(principal, hostOf(id));
      return ids.length;
    },
  };
}

function hostOf(id: string): string {
  return id.slice(id.indexOf(":") + 1);
}

function inputOf(row: Row): HostInput {
  const members = Object.entries(row).filter(([name, value]) => !FIELDS_OF_ALL.has(name) && value !== null);
  const foreign = members.find(([name]) => !SETTABLE.has(name));
  if (foreign) throw new AppError("invalid", `${foreign[0]} of a host is kept by the platform and cannot be set.`);
  const input: unknown = Object.fromEntries(members);
  if (Check.Check(HostInput, input)) return input;
  const [first] = Check.Errors(HostInput, input);
  throw new AppError(
    "invalid",
    `A host does not have this form: ${first?.instancePath ?? ""} ${first?.message ?? ""}`.trim(),
  );
}

function changed(record: HostRecord, edits: readonly Edit[]): Row {
  const row: Row = {};
  for (const edit of edits)
    row[edit.column] = edit.column === "config" ? configAfter(record, edit) : after(record, row, edit);
  return row;
}

function after(record: HostRecord, row: Row, edit: Edit): Value {
  const before = row[edit.column] ?? memberOf(record, edit.column);
  if (edit.operation === "set" || !Array.isArray(before)) return edit.value ?? emptyLike(before);
  const named = Array.isArray(edit.value) ? edit.value : [edit.value ?? ""];
  return edit.operation === "take"
    ? before.filter((item: Value) => !named.includes(item))
    : [...new Set([...before, ...named])];
}

function memberOf(record: HostRecord, column: string): Value | undefined {
  return Object.entries(record).find(([name]) => name === column)?.[1];
}

function emptyLike(before: Value | undefined): Value {
  if (Array.isArray(before)) return [];
  return typeof before === "number" ? 0 : "";
}

/** The config in the form that `save` takes: named members are set, `null` removes a member. */
function configAfter(record: HostRecord, edit: Edit): Value {
  const value = edit.value ?? null;
  if (edit.operation === "take") return Object.fromEntries(keysOf(value).map((name) => [name, null]));
  if (value === null || typeof value !== "object" || Array.isArray(value))
    throw new AppError("invalid", "config is a map.");
  if (edit.operation === "add") return value;
  const gone = Object.keys({ ...record.config, ...record.credentials }).map((name) => [name, null]);
  return { ...Object.fromEntries(gone), ...value };
}

function keysOf(value: Value): string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return value.filter((item): item is string => typeof item === "string");
  return value !== null && typeof value === "object" ? Object.keys(value) : [];
}
