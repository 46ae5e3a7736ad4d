import type { Area } from "../../area.ts";
import { archiveRoutes, type ArchiveParts } from "./archive/routes.ts";
import { fileClass } from "./classes.ts";
import { HISTORY_CLASS } from "./history/classes.ts";
import { filesHostObject } from "./host-objects.ts";
import { fileRoutes } from "./routes.ts";
import { CONTENT_CLASS, PASSAGE_CLASS } from "./search/classes.ts";
import type { FileSearchService } from "./search/service.ts";
import type { FileService } from "./service.ts";

export function filesArea(files: FileService, search: FileSearchService, audit: ArchiveParts["audit"]): Area {
  return {
    name: "files",
    endpoints: [...fileRoutes(files, search), ...archiveRoutes({ archives: files.archives, audit })],
    classes: [fileClass(files), CONTENT_CLASS, PASSAGE_CLASS, HISTORY_CLASS],
    maintain: async (tenant) => {
      await files.archives.maintain(tenant);
      await files.maintain(tenant);
      await search.maintain(tenant);
    },
    close: async () => {
      await Promise.all([files.archives.close(), files.close()]);
      await search.close();
    },
    hostObjects: [filesHostObject(files)],
  };
}
