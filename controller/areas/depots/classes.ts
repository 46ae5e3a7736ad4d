import { AppError } from "../../../common/errors.ts";
import { DEPLOYMENT_TTL_DAYS } from "../../../common/limits.ts";
import type { Row, Value } from "../../../common/value.ts";
import type { Edit, Objects, SystemClass } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { DepotDescription, DepotSummary } from "./types.ts";

/** Relative to the tenant's ospace. */
export const DEPOT_PATH = "/system/depot";
export const DEPLOYMENT_PATH = "/system/deployment";

const DAY_SECONDS = 86_400;

/** What the class of depots needs of their service. */
interface DepotOwner {
  list(principal: Principal): Promise<readonly DepotSummary[]>;
  edit(principal: Principal, name: string, change: (now: DepotSummary) => Partial<DepotDescription>): Promise<boolean>;
  remove(principal: Principal, name: string): Promise<number>;
}

/** To be called before any tenant is opened. */
export function registerDepotClasses(objects: Pick<Objects, "registerSystemClass">, depots: DepotOwner): void {
  objects.registerSystemClass(depotClass(depots));
  objects.registerSystemClass(DEPLOYMENT_CLASS);
}

/** Provided from KvStore, so that there is one truth about which versions exist. */
function depotClass(depots: DepotOwner): SystemClass {
  return {
    path: DEPOT_PATH,
    columns: [
      { name: "name", type: "varchar" },
      { name: "version", type: "varchar" },
      { name: "versions", type: "list", elements: ["varchar"] },
      { name: "remark", type: "text" },
      { name: "tags", type: "set", elements: ["varchar"] },
      { name: "command", type: "text" },
      { name: "status", type: "varchar" },
      { name: "filecount", type: "int" },
      { name: "size", type: "bigint" },
      { name: "created", type: "timestamp" },
      { name: "creator", type: "varchar" },
    ],
    keys: ["name"],
    guard: {
      update: (principal, id, edits) => depots.edit(principal, nameOf(id), (now) => edited(now, edits)),
      async remove(principal, ids) {
        for (const id of ids) await depots.remove(principal, nameOf(id));
        return ids.length;
      },
    },
    async *provide(principal) {
      yield (await depots.list(principal)).map((depot): Row => ({ ...depot }));
    },
  };
}

const DEPLOYMENT_CLASS: SystemClass = {
  path: DEPLOYMENT_PATH,
  kind: "record",
  columns: [
    { name: "action", type: "varchar" },
    { name: "host", type: "varchar" },
    { name: "depot", type: "varchar" },
    { name: "version", type: "varchar" },
    { name: "state", type: "varchar" },
    { name: "code", type: "int" },
    { name: "message", type: "text" },
    { name: "started", type: "timestamp" },
    { name: "ended", type: "timestamp" },
    { name: "username", type: "varchar" },
  ],
  indexes: ["host", "depot", "state"],
  options: { ttlSeconds: DEPLOYMENT_TTL_DAYS * DAY_SECONDS },
  guard: {},
};

function nameOf(id: string): string {
  return id.slice(id.indexOf(":") + 1);
}

function edited(now: DepotSummary, edits: readonly Edit[]): Partial<DepotDescription> {
  let change: Partial<DepotDescription> = {};
  for (const edit of edits) change = { ...change, ...oneEdit(change.tags ?? now.tags, edit) };
  return change;
}

function oneEdit(tags: readonly string[], { column, operation, value }: Edit): Partial<DepotDescription> {
  if (column === "tags") return { tags: editedTags(tags, operation, value) };
  if ((column === "remark" || column === "command") && operation === "set") return { [column]: text(value) };
  throw new AppError("unsupported", `The column ${column} of a depot is changed by the depot interface, not by MQL.`);
}

function editedTags(
  tags: readonly string[],
  operation: Edit["operation"],
  value: Value | undefined,
): readonly string[] {
  const given = (Array.isArray(value) ? value : [value]).filter((tag) => tag !== undefined && tag !== null).map(String);
  if (operation === "set") return given;
  return operation === "add" ? [...new Set([...tags, ...given])] : tags.filter((tag) => !given.includes(tag));
}

function text(value: Value | undefined): string {
  return value === undefined || value === null ? "" : String(value);
}
