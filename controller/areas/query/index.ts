export { queryRoutes } from "./routes.ts";
export { isPseudo, PSEUDO_FIELDS, pseudoType } from "./scope.ts";
export { QueryService } from "./service.ts";
export type * from "./types.ts";
