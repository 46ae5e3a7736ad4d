import { AppError } from "../../../../../common/errors.ts";
import { FILE_INDEX_MAX_CHARACTERS, FILE_SNIFF_BYTES } from "../../../../../common/limits.ts";
import { addDocxLines, DOCX_PART } from "./docx.ts";
import { DocumentParts } from "./parts.ts";
import { PassageCutter, type Passage } from "./passages.ts";
import { addPdfPages } from "./pdf.ts";
import { addTextLines } from "./text.ts";
import { addXlsxLines, XLSX_PART } from "./xlsx.ts";

/** Contents that an earlier version extracted are extracted again when they are indexed again. */
export const EXTRACTOR_VERSION = 1;

export interface ExtractInput {
  /** The whole content. */
  readonly bytes: SharedArrayBuffer;
}

export interface Extracted {
  readonly passages: readonly Passage[];
  /** The unit of the positions. */
  readonly unit: "line" | "page";
  /** Tells which part of the content is not in the passages. */
  readonly note?: string;
}

/**
 * Extracts the text of a content. the bytes decide its format, not the name of the file. `AppError("invalid")` if it
 * has no text that can be read, `too_large` if it exceeds a limit.
 */
export async function extractText({ bytes: shared }: ExtractInput): Promise<Extracted> {
  const bytes = Buffer.from(new Uint8Array(shared).slice().buffer);
  const cutter = new PassageCutter();
  const format = formatOf(bytes);
  if (format === "package") await addPackage(bytes, cutter);
  else if (format === "pdf") await addPdfPages(new Uint8Array(bytes), cutter);
  else addTextLines(bytes, cutter);
  const { isFull } = cutter;
  cutter.flush();
  const note = `Only the first ${FILE_INDEX_MAX_CHARACTERS} characters are searched.`;
  return { passages: cutter.passages, unit: format === "pdf" ? "page" : "line", ...(isFull && { note }) };
}

const FORMATS = { package: /^PK\u0003\u0004/, pdf: /^(?:\u00ef\u00bb\u00bf)?\s*%PDF-/ } as const;

function formatOf(bytes: Buffer): "package" | "pdf" | "text" {
  const beginning = bytes.subarray(0, FILE_SNIFF_BYTES).toString("latin1");
  if (FORMATS.package.test(beginning)) return "package";
  return FORMATS.pdf.test(beginning) ? "pdf" : "text";
}

async function addPackage(bytes: Buffer, into: PassageCutter): Promise<void> {
  const parts = await DocumentParts.open(bytes);
  if (parts.has(DOCX_PART)) return addDocxLines(parts, into);
  if (parts.has(XLSX_PART)) return addXlsxLines(parts, into);
  throw new AppError("invalid", "The content is an archive, but neither docx nor xlsx.");
}
