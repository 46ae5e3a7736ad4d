export type * from "./types.ts";
export { controllerOf, identityOf } from "./authority/identity.ts";
export { hostRoutes } from "./routes.ts";
export { HostService, ownAddresses, type HostServiceDependencies } from "./service.ts";
export { StoredCommands } from "./commands/stored.ts";
export { COMMAND_CLASS, OUTPUT_CLASS } from "./store.ts";
