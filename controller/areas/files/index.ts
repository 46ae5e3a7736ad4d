export { filesArea } from "./area.ts";
export type { RunNames } from "./hiding.ts";
export type { FileName } from "./names.ts";
export { requireSpace } from "./spaces.ts";
/**
 * For what reads files: `read(principal, path, space)` answers `{ text, digest }`, `list(principal, name)` pages of
 * entries; `write`, `copy` and `move` change them. Paths begin at the root of their space, with or without a slash.
 */
export { FileService } from "./service.ts";
