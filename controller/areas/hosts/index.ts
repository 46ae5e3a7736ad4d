export type * from "./types.ts";
export { identityOf } from "./authority/identity.ts";
export { type CommandEntries } from "./commands.ts";
export { hostRoutes } from "./routes.ts";
export { HostService, type HostServiceDependencies } from "./service.ts";
