export { usersArea } from "./area.ts";
export { userRoutes } from "./routes.ts";
export { passwordFault } from "./policy.ts";
export { UserDirectory } from "./directory.ts";
export { UserService, type Administrator } from "./service.ts";
export type * from "./types.ts";
