import type { Area } from "../../area.ts";
import { RULE_LOG_CLASS } from "./classes.ts";

/** Entries come over the agent port: it has no endpoints. */
export function ingestArea(): Area {
  return { name: "ingest", classes: [RULE_LOG_CLASS] };
}
