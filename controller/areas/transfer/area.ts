import type { Area } from "../../area.ts";
import type { ExportService } from "./export.ts";
import type { ImportService } from "./import.ts";
import { TRANSFER_CLASS } from "./records.ts";
import { transferRoutes } from "./routes.ts";

export interface TransferParts {
  readonly exports: ExportService;
  readonly imports: ImportService;
}

export function transferArea(parts: TransferParts): Area {
  const { imports } = parts;
  return {
    name: "transfer",
    endpoints: transferRoutes(parts),
    classes: [TRANSFER_CLASS],
    maintain: (tenant) => imports.maintain(tenant),
    close: () => imports.close(),
  };
}
