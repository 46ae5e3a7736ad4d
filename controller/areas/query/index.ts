export { queryRoutes } from "./routes.ts";
export { QueryService, type QueryDependencies } from "./service.ts";
export type * from "./types.ts";
