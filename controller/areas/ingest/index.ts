export { RecordWriter } from "./records.ts";
export { IngestService } from "./service.ts";
