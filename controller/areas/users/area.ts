import type { Area } from "../../area.ts";
import { userRoutes, type UserRouteServices } from "./routes.ts";
import type { UserService } from "./service.ts";

export interface UserParts extends UserRouteServices {
  readonly users: UserService;
}

export function usersArea(parts: UserParts): Area {
  const { users } = parts;
  return { name: "users", endpoints: userRoutes(parts), start: () => users.start(), stop: () => users.stop() };
}
