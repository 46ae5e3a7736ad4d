export { licencesArea } from "./area.ts";
export { LicenceService } from "./service.ts";
