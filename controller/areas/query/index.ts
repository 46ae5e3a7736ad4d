export { queryRoutes } from "./routes.ts";
export { QueryService } from "./service.ts";
export type * from "./types.ts";
