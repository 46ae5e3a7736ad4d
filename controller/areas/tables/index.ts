export { tablesArea } from "./area.ts";
export { keyOf, type TableRow } from "./rows.ts";
export { TableService } from "./service.ts";
