export { tablesArea } from "./area.ts";
export { TableService } from "./service.ts";
