import type { Area } from "../../area.ts";
import { userClass } from "./classes.ts";
import { usersHostObject } from "./host-objects.ts";
import { userRoutes, type UserRouteServices } from "./routes.ts";

export function usersArea(parts: UserRouteServices): Area {
  const { users } = parts;
  return {
    name: "users",
    endpoints: userRoutes(parts),
    classes: [userClass(users.directory)],
    hostObjects: [usersHostObject(users.directory)],
    start: () => users.start(),
    repair: (tenant) => users.directory.repair(tenant),
    maintain: (tenant) => users.directory.repair(tenant),
    stop: () => users.stop(),
  };
}
