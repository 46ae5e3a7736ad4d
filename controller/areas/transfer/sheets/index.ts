export { workbookParts } from "./read.ts";
export { workbookBytes } from "./workbook.ts";
export { classSheet, edgeTypeSheet } from "./write.ts";
