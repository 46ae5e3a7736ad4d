export { filesArea } from "./area.ts";
export type { RunNames } from "./hiding.ts";
export type { FileName } from "./names.ts";
export { requireSpace } from "./spaces.ts";
/**
 * For areas that read files: `read(principal, path, space)` returns `{ text, digest }`, `list(principal, name)` yields
 * pages of entries; `write`, `copy` and `move` change files. Paths begin at the root of their space, with or without a
 * slash.
 */
export { FileService } from "./service.ts";
export { FileSearchService } from "./search/service.ts";
export { FileHistory } from "./history/service.ts";
export type { HistoryBounds } from "./history/store.ts";
export { FileVersions } from "./versions/service.ts";
export { LocalFiles } from "./local/local-files.ts";
