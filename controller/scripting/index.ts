export { ThreadScripts } from "./engine.ts";
export { LUA_LIBRARY_OBJECTS } from "./lua/declared.ts";
export {
  type BoundHost,
  type FunctionDescription,
  type HostContext,
  type HostFunction,
  hostFunction,
  type HostObject,
  HostObjects,
  type HostRun,
  membersOf,
  refusedFunction,
} from "./objects.ts";
export type * from "./types.ts";
