import type { Area } from "../../area.ts";
import { licenceRoutes } from "./routes.ts";
import type { LicenceService } from "./service.ts";

export function licencesArea(licences: LicenceService): Area {
  return {
    name: "licences",
    endpoints: licenceRoutes(licences),
    maintain: (tenant) => licences.maintain(tenant),
    leave: (tenant) => licences.leave(tenant),
    keysOf: (tenant) => licences.keysOf(tenant),
  };
}
