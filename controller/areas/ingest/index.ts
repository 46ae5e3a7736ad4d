export { ingestArea } from "./area.ts";
export { RULE_LOG_CLASS } from "./classes.ts";
export { RecordWriter } from "./records.ts";
export { SentPolicies } from "./sent-policies.ts";
export { IngestService } from "./service.ts";
