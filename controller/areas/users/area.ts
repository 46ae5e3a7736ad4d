import type { Area } from "../../area.ts";
import type { SealedKind } from "../../secrets/index.ts";
import { userClass } from "./classes.ts";
import { usersHostObject } from "./host-objects.ts";
import { userRoutes, type UserRouteServices } from "./routes.ts";

export function usersArea(parts: UserRouteServices & { readonly sealed: readonly SealedKind[] }): Area {
  const { users, sealed } = parts;
  return {
    name: "users",
    endpoints: userRoutes(parts),
    classes: [userClass(users.directory.reader)],
    hostObjects: [usersHostObject(users.directory)],
    sealed,
    start: () => users.start(),
    repair: (tenant) => users.directory.repair(tenant),
    maintain: (tenant) => users.directory.repair(tenant),
    stop: () => users.stop(),
  };
}
