export { transferArea } from "./area.ts";
export { ExportService } from "./export.ts";
export { ImportService } from "./import.ts";
export { transferRoutes } from "./routes.ts";
export { TRANSFER_CLASS } from "./records.ts";
