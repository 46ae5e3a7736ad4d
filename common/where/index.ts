export type { Where } from "./ast.ts";
export { compileWhere } from "./compile.ts";
export { parseWhere } from "./parse.ts";
