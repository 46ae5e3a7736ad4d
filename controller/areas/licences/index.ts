export { licencesArea } from "./area.ts";
export { LicenceService, type HostCounts } from "./service.ts";
