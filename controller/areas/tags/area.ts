import type { Area } from "../../area.ts";
import { TAG_MOVE_CLASS } from "./classes.ts";
import { tagsHostObject } from "./host-objects.ts";
import { tagRoutes } from "./routes.ts";
import type { TagService } from "./service.ts";

export function tagsArea(tags: TagService): Area {
  return {
    name: "tags",
    endpoints: tagRoutes(tags),
    hostObjects: [tagsHostObject(tags)],
    classes: [TAG_MOVE_CLASS],
    maintain: (tenant) => tags.maintain(tenant),
    close: () => tags.close(),
  };
}
