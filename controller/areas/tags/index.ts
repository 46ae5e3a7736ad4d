export { tagsArea } from "./area.ts";
export { TagService } from "./service.ts";
