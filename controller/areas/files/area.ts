import type { Area } from "../../area.ts";
import { fileClass } from "./classes.ts";
import { filesHostObject } from "./host-objects.ts";
import { fileRoutes } from "./routes.ts";
import type { FileService } from "./service.ts";

export function filesArea(files: FileService): Area {
  return {
    name: "files",
    endpoints: fileRoutes(files),
    classes: [fileClass(files)],
    maintain: (tenant) => files.maintain(tenant),
    close: () => files.close(),
    hostObjects: [filesHostObject(files)],
  };
}
