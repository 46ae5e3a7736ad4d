export { hostsArea } from "./area.ts";
export type * from "./types.ts";
export { COMMAND_CLASSES, hostClasses } from "./classes.ts";
export { controllerOf, identityOf } from "./authority/identity.ts";
export { entranceOf } from "./entrance.ts";
export { ownAddresses, type HostServiceDependencies } from "./components.ts";
export { HostService } from "./service.ts";
export { StoredCommands } from "./commands/stored.ts";
export { COMMAND_CLASS, OUTPUT_CLASS } from "./store.ts";
