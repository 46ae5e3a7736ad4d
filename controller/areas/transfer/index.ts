export { ExportService } from "./export.ts";
export { ImportService } from "./import.ts";
export { transferRoutes } from "./routes.ts";
