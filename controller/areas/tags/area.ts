import type { Area } from "../../area.ts";
import { tagRoutes } from "./routes.ts";
import type { TagService } from "./service.ts";

export function tagsArea(tags: TagService): Area {
  return { name: "tags", endpoints: tagRoutes(tags) };
}
