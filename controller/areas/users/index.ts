export { userRoutes } from "./routes.ts";
export { UserService, type Administrator, type UserDependencies } from "./service.ts";
export type * from "./types.ts";
