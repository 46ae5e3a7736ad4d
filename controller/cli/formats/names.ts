export const FORMATS = ["table", "wide", "json", "yaml", "csv", "name"] as const;
/** Format of an answer. */
export type Format = (typeof FORMATS)[number];
