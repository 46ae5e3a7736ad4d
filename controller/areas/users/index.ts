export { userRoutes } from "./routes.ts";
export { UserService } from "./service.ts";
export type * from "./types.ts";
