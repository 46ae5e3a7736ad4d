import { AppError } from "../../../../../common/errors.ts";
import { FILE_INDEX_MAX_CHARACTERS } from "../../../../../common/limits.ts";
import { addDocxLines, DOCX_PART } from "./docx.ts";
import { DocumentParts } from "./parts.ts";
import { PassageCutter, type Passage } from "./passages.ts";
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
  if (bytes.subarray(0, 4).toString("latin1") === "PK\u0003\u0004") await addPackage(bytes, cutter);
  else if (bytes.subarray(0, PDF_MARK_BYTES).includes("%PDF-"))
    throw new AppError("unsupported", "The text of a pdf is not extracted yet.");
  else addTextLines(bytes, cutter);
  return extracted(cutter, "line");
}

/** The mark of a pdf is in its first kilobyte. */
const PDF_MARK_BYTES = 1_024;

async function addPackage(bytes: Buffer, into: PassageCutter): Promise<void> {
  const parts = await DocumentParts.open(bytes);
  if (parts.has(DOCX_PART)) return addDocxLines(parts, into);
  if (parts.has(XLSX_PART)) return addXlsxLines(parts, into);
  throw new AppError("invalid", "The content is an archive, but neither docx nor xlsx.");
}

function extracted(cutter: PassageCutter, unit: Extracted["unit"]): Extracted {
  const { isFull } = cutter;
  cutter.flush();
  const note = `Only the first ${FILE_INDEX_MAX_CHARACTERS} characters are searched.`;
  return { passages: cutter.passages, unit, ...(isFull && { note }) };
}
