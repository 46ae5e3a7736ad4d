export type * from "./types.ts";
export { identityOf } from "./authority/identity.ts";
export { hostRoutes } from "./routes.ts";
export { HostService, type HostServiceDependencies } from "./service.ts";
