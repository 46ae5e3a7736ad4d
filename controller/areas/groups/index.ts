export { ApiPermissions } from "./api-permissions.ts";
export { groupsArea } from "./area.ts";
export { isAdministrators } from "./builtin.ts";
export type { Member } from "./definitions.ts";
export { ExplainService } from "./explain.ts";
export { groupRoutes } from "./routes.ts";
export { GroupService } from "./service.ts";
export type { GroupContent } from "./types.ts";
