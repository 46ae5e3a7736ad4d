export { filesArea } from "./area.ts";
export { FileService } from "./service.ts";
