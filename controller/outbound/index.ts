export { Outbound } from "./client.ts";
export type * from "./types.ts";
