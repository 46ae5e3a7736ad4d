import type { Area } from "../../area.ts";
import { tableRoutes } from "./routes.ts";
import type { TableService } from "./service.ts";

export function tablesArea(tables: TableService): Area {
  return { name: "tables", endpoints: tableRoutes(tables) };
}
