import type { Area } from "../../area.ts";
import type { IngestService } from "./service.ts";

/** Entries come over the agent port: it has no endpoints. */
export function ingestArea(ingest: Pick<IngestService, "maintain">): Area {
  return { name: "ingest", maintain: (tenant) => ingest.maintain(tenant) };
}
