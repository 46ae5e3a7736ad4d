export { ThreadScripts } from "./engine.ts";
export { LUA_LIBRARY_OBJECTS } from "./lua/declared.ts";
export {
  type FunctionDescription,
  type HostContext,
  type HostFunction,
  hostFunction,
  type HostObject,
  HostObjects,
  type HostRun,
  membersOf,
  refusedFunction,
  type ScriptKind,
} from "./objects.ts";
export type * from "./types.ts";
