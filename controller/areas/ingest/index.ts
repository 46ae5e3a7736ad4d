export { ingestArea } from "./area.ts";
export { RecordWriter } from "./records.ts";
export { RuleRetries } from "./retries.ts";
export { SentPolicies } from "./sent-policies.ts";
export { IngestService } from "./service.ts";
