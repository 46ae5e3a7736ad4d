import type { Static } from "typebox";
import type { RepairsOutput } from "../../common/api/cluster.ts";
import type { OdpClient } from "../../common/client/index.ts";
import { counted } from "../../common/text/counted.ts";
import { column, type Row, type View } from "./formats/columns.ts";

export const REPAIRS_VIEW: View = {
  name: "table",
  columns: [column("table", { isWhole: true }), column("repaired", { isTime: true }), column("every"), column("due")],
};

export type Repairs = Static<typeof RepairsOutput>;

const DAY_MS = 24 * 3_600_000;

export async function repairsOf(client: Pick<OdpClient, "call">): Promise<Repairs> {
  return client.call("getClusterRepairs");
}

/** Those that are due first. */
export function repairRows({ tables }: Repairs): readonly Row[] | string {
  if (tables.length === 0) return "Everything lies on one node: there is nothing to repair.";
  const sorted = [...tables].sort((a, b) => Number(b.due) - Number(a.due) || a.table.localeCompare(b.table));
  return sorted.map(({ table, repairedMs, everyMs, due }) => ({
    table,
    repaired: repairedMs ?? "not within 30 days",
    every: counted(Math.round(everyMs / DAY_MS), "day"),
    due: due ? "due" : "",
  }));
}
