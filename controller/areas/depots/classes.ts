import { AppError } from "../../../common/errors.ts";
import { DAY_SECONDS, DEPLOYMENT_TTL_DAYS } from "../../../common/limits.ts";
import type { Row, Value } from "../../../common/value.ts";
import { columns, textColumns, type Edit, type SystemClass } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { DepotDescription, DepotSummary } from "./types.ts";

/** Path of the class of depots, relative to the tenant's ospace. */
export const DEPOT_PATH = "/system/depot";
export const DEPLOYMENT_PATH = "/system/deployment";

/** Methods of the depot service that the class of depots uses. */
interface DepotOwner {
  all(principal: Principal): Promise<readonly DepotSummary[]>;
  edit(principal: Principal, name: string, change: (now: DepotSummary) => Partial<DepotDescription>): Promise<boolean>;
  remove(principal: Principal, name: string): Promise<number>;
}

export function depotClasses(depots: DepotOwner): readonly SystemClass[] {
  return [depotClass(depots), DEPLOYMENT_CLASS];
}

/** Reads depots from KvStore, so that there is a single source of truth for versions. */
function depotClass(depots: DepotOwner): SystemClass {
  return {
    path: DEPOT_PATH,
    columns: [
      ...columns("varchar", { name: "Name of the depot", version: "Newest version: three numbers, such as 1.0.0" }),
      ...textColumns("list", { versions: "All versions, the newest last" }),
      ...columns("text", { remark: "Remark of the author of the newest version" }),
      ...textColumns("set", { tags: "Tags of the newest version" }),
      ...columns("text", { command: "Command line that runs in the depot's folder once it is in place" }),
      ...columns("varchar", { status: "Always ok" }),
      ...columns("int", { filecount: "Number of files of the newest version" }),
      ...columns("bigint", { size: "Bytes of all files of the newest version" }),
      ...columns("timestamp", { created: "Time at which the files of the newest version were stored" }),
      ...columns("varchar", { creator: "User who stored the files of the newest version" }),
    ],
    keys: ["name"],
    guard: {
      reading: { permission: "depots:read" },
      permission: "depots:write",
      update: (principal, id, edits) => depots.edit(principal, nameOf(id), (now) => edited(now, edits)),
      async remove(principal, ids) {
        for (const id of ids) await depots.remove(principal, nameOf(id));
        return ids.length;
      },
    },
    async *provide(principal) {
      yield (await depots.all(principal)).map(({ revision: _revision, ...depot }): Row => depot);
    },
  };
}

const DEPLOYMENT_CLASS: SystemClass = {
  path: DEPLOYMENT_PATH,
  kind: "record",
  columns: [
    ...columns("varchar", {
      action: "deploy or undeploy; start, stop or restart of the host's external agent",
      host: "Host that the depot was brought to or taken from, or whose external agent was started or stopped",
      depot: "Name of the depot; empty if the action is not about one",
      version: "Version of the depot; empty if the action is not about one",
      state: "ok, failed, timeout, unreachable, cancelled or expired",
    }),
    ...columns("int", { code: "Exit code; empty if no process exited by itself" }),
    ...columns("text", { message: "Reason of a failure, or a warning; empty: neither" }),
    ...columns("timestamp", {
      started: "Time at which the deployment to this host began",
      ended: "Time at which the deployment to this host ended",
    }),
    ...columns("varchar", { username: "User who asked for the deployment" }),
  ],
  indexes: ["host", "depot", "state"],
  options: { ttlSeconds: DEPLOYMENT_TTL_DAYS * DAY_SECONDS },
  guard: { reading: { permission: "depots:read", isOpenToGroups: true } },
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
