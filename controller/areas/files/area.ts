import type { Area } from "../../area.ts";
import { fileClass } from "./classes.ts";
import { fileRoutes } from "./routes.ts";
import type { FileService } from "./service.ts";

export function filesArea(files: FileService): Area {
  return { name: "files", endpoints: fileRoutes({ files }), classes: [fileClass(files)] };
}
