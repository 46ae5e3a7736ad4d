import type { Area } from "../../area.ts";
import { RULE_LOG_CLASS } from "./classes.ts";
import type { IngestService } from "./service.ts";

/** Entries come over the agent port: it has no endpoints. */
export function ingestArea(ingest: Pick<IngestService, "maintain">): Area {
  return { name: "ingest", classes: [RULE_LOG_CLASS], maintain: (tenant) => ingest.maintain(tenant) };
}
