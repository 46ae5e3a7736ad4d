export { RecordWriter, type PolicyClasses } from "./records.ts";
export { IngestService } from "./service.ts";
export type { CommandEntrySink } from "./types.ts";
