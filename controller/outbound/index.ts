export { Outbound } from "./client.ts";
export { serviceFetch, type ServiceFetch } from "./service.ts";
export type * from "./types.ts";
