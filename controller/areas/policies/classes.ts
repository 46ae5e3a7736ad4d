import { DAY_SECONDS, POLICY_RUN_TTL_DAYS } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import { columns, textColumns, type SystemClass } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { PolicyRecord } from "./types.ts";

/** Relative to the tenant's ospace. */
export const POLICY_PATH = "/system/policy";
/** One record for each run of a command policy that was due. */
export const POLICY_RUN_PATH = "/system/policyrun";
/** Something that should be there and is not, with its count. */
export const POLICY_GAP_PATH = "/system/policygap";

/** The part of the policy service that the class of policies needs. */
interface PolicyOwner {
  all(principal: Principal): Promise<readonly PolicyRecord[]>;
  remove(principal: Principal, name: string): Promise<void>;
}

export function policyClasses(policies: PolicyOwner): readonly SystemClass[] {
  return [policyClass(policies), RUN_CLASS, GAP_CLASS];
}

/** Provided from KvStore, so that agents and MQL get the same. */
function policyClass(policies: PolicyOwner): SystemClass {
  return {
    path: POLICY_PATH,
    columns: [
      ...columns(
        "varchar",
        "name",
        "kind",
        "rule",
        "status",
        "depotname",
        "depotversion",
        "unit",
        "differentiator",
        "creator",
      ),
      ...columns("text", "command", "depotcommand", "delimiter", "dir", "match", "matchregexp"),
      ...columns("int", "ctype", "interval"),
      ...columns("boolean", "split", "delimitereol", "isdaemon"),
      ...textColumns("list", "priority"),
      { name: "translation", type: "map", elements: ["varchar", "text"] },
      { name: "attrs", type: "map", elements: ["varchar", "varchar"] },
      ...textColumns("list", "hosts"),
      ...textColumns("set", "tags"),
      ...columns("timestamp", "created", "changed"),
    ],
    keys: ["name"],
    guard: {
      reading: { permission: "policies:read" },
      permission: "policies:write",
      async remove(principal, ids) {
        for (const id of ids) await policies.remove(principal, id.slice(id.indexOf(":") + 1));
        return ids.length;
      },
    },
    async *provide(principal) {
      yield (await policies.all(principal)).map(rowOf);
    },
  };
}

const RUN_CLASS: SystemClass = {
  path: POLICY_RUN_PATH,
  kind: "record",
  columns: [
    ...columns("varchar", "policy", "host", "state"),
    ...columns("timestamp", "scheduled", "started", "ended"),
    { name: "code", type: "int" },
    { name: "message", type: "text" },
    { name: "records", type: "bigint" },
  ],
  indexes: ["policy", "host", "state"],
  options: { ttlSeconds: POLICY_RUN_TTL_DAYS * DAY_SECONDS },
  guard: { reading: { permission: "policies:read", isOpenToGroups: true } },
};

const GAP_CLASS: SystemClass = {
  path: POLICY_GAP_PATH,
  kind: "record",
  columns: [
    ...columns("varchar", "policy", "host", "source", "reason", "unit"),
    { name: "count", type: "bigint" },
    ...columns("timestamp", "stime", "etime"),
  ],
  indexes: ["policy", "host", "reason"],
  options: { ttlSeconds: POLICY_RUN_TTL_DAYS * DAY_SECONDS },
  guard: { reading: { permission: "policies:read", isOpenToGroups: true } },
};

/** A map column holds texts; absent members are left out. */
export function rowOf({ translation, ...record }: PolicyRecord): Row {
  const row: Record<string, Row[string] | undefined> = { ...record };
  if (translation) {
    row["translation"] = Object.fromEntries(
      Object.entries(translation).map(([group, order]) => [group, JSON.stringify(order)]),
    );
  }
  return Object.fromEntries(
    Object.entries(row).filter((member): member is [string, Row[string]] => member[1] !== undefined),
  );
}
