import type { Static } from "typebox";
import {
  AheadInput,
  AheadOutput,
  ClusterInfoInput,
  ClusterInfoOutput,
  ClusterSettingsInput,
  ClusterSettingsOutput,
  RepairsInput,
  RepairsOutput,
  type RowCheck,
  type RowCheckReport as RowCheckReportOutput,
  ScrubBegin,
  ScrubReport,
  ScrubStatus,
  ScrubStatusInput,
} from "../../../common/api/cluster.ts";
import { AHEAD_PAGE_OBJECTS, HTTP_SMALL_BODY_MAX_BYTES } from "../../../common/limits.ts";
import { endpoint, type Endpoint } from "../../http/interface/endpoint.ts";
import type { ObjectService } from "../objects/index.ts";
import type { RepairService } from "./repairs.ts";
import type { RowCheckService } from "./row-checks.ts";
import type { ScrubReport as Report, ScrubService } from "./scrub.ts";
import type { ClusterService } from "./service.ts";
import type { RowCheckReport, RowCheckStatus } from "./types.ts";

export function scrubRoutes(scrubs: ScrubService, rowChecks: RowCheckService): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/cluster/scrub",
      bodyMaxBytes: HTTP_SMALL_BODY_MAX_BYTES,
      permission: "cluster:write",
      summary: "Begin to compare indexes, edges and contents of the tenant with what they follow from, and mend them",
      input: ScrubBegin,
      output: ScrubReport,
      handler: async ({ principal, input }) => ({ message: plain(await scrubs.begin(principal, input)) }),
    }),
    endpoint({
      method: "GET",
      path: "/cluster/scrub",
      permission: "cluster:read",
      summary:
        "How far the scrub of the tenant is, what the last one found, and whether one is due; and what the row check found",
      input: ScrubStatusInput,
      output: ScrubStatus,
      handler: async ({ principal }) => {
        const { running, last, due } = await scrubs.status(principal);
        const rows = await rowChecks.status(principal);
        const scrub = { ...(running && { running: plain(running) }), ...(last && { last: plain(last) }), due };
        return { message: { ...scrub, rows: plainRows(rows) } };
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/cluster/scrub",
      permission: "cluster:write",
      summary: "Stop the scrub of the tenant that is under way",
      input: ScrubStatusInput,
      output: ScrubReport,
      handler: async ({ principal }) => ({ message: plain(await scrubs.stop(principal)) }),
    }),
  ];
}

function plain(report: Report): Static<typeof ScrubReport> {
  return { ...report, examples: [...report.examples] };
}

function plainRows({ running, last, isLate }: RowCheckStatus): Static<typeof RowCheck> {
  const report = (of: RowCheckReport): Static<typeof RowCheckReportOutput> => ({ ...of, examples: [...of.examples] });
  return { ...(running && { running: report(running) }), ...(last && { last: report(last) }), late: isLate };
}

export function clusterRoutes(cluster: ClusterService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/cluster/info",
      permission: "cluster:read",
      summary: "The nodes that hold the data",
      input: ClusterInfoInput,
      output: ClusterInfoOutput,
      handler: async ({ principal }) => {
        const lost = await cluster.lost(principal);
        return { message: { datastore: [...(await cluster.nodes(principal))], ...(lost && { lost: [...lost] }) } };
      },
    }),
    endpoint({
      method: "GET",
      path: "/cluster/settings",
      permission: "cluster:read",
      summary: "The settings of the controller that answers, without secrets; for the first tenant only",
      input: ClusterSettingsInput,
      output: ClusterSettingsOutput,
      handler: async ({ principal }) => ({ message: [...(await cluster.settings(principal))] }),
    }),
  ];
}

export function aheadRoutes(objects: Pick<ObjectService, "ahead">): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/cluster/ahead",
      permission: "cluster:write",
      summary: "Objects whose last write is ahead of the controller's clock by more than AT may be",
      input: AheadInput,
      output: AheadOutput,
      handler: async ({ principal, input: { cursor: after } }) => {
        const page = { limit: AHEAD_PAGE_OBJECTS, ...(after === undefined ? {} : { cursor: after }) };
        const { items, cursor } = await objects.ahead(principal, page);
        return { message: { objects: [...items], ...(cursor === undefined ? {} : { cursor }) } };
      },
    }),
  ];
}

export function repairRoutes(repairs: RepairService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/cluster/repairs",
      permission: "cluster:read",
      summary: "When the copies of each table of the tenant were last made alike by a repair, and which table is due",
      input: RepairsInput,
      output: RepairsOutput,
      handler: async ({ principal }) => {
        const tables = (await repairs.status(principal)).map(({ table, repairedMs, everyMs, due }) => ({
          table,
          ...(repairedMs === undefined ? {} : { repairedMs }),
          everyMs,
          due,
        }));
        return { message: { tables, due: tables.some((one) => one.due) } };
      },
    }),
  ];
}
