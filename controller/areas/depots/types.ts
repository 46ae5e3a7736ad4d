import type { DepotToDeploy } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";

export interface Depots {
  /** What a deployment of that version consists of; the newest version when none is named. `AppError("not_found")` else. */
  toDeploy(principal: Principal, name: string, version?: string): Promise<DepotToDeploy>;
}
