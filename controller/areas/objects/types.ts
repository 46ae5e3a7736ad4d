export type * from "./types/definitions.ts";
export type * from "./types/reading.ts";
export type * from "./types/writing.ts";
export type * from "./types/history.ts";
export type * from "./types/changes.ts";
