import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { AppError, errorText, isAppError } from "../../../../../common/errors.ts";
import { FILE_PDF_PAGES_MAX } from "../../../../../common/limits.ts";
import { defineDrawing } from "./drawing.ts";
import type { PassageCutter } from "./passages.ts";

/** Verbosity of pdf.js for which it logs nothing but errors. */
const ERRORS_ONLY = 0;

/**
 * Adds the pages of a pdf. The packed tables of character codes (`cmaps` of the package)
 * give the text of Chinese, Japanese and Korean fonts that have no table of their own. `AppError("invalid")` if the pdf
 * is encrypted or damaged, `too_large` if it has more than `FILE_PDF_PAGES_MAX` pages.
 */
export async function addPdfPages(bytes: Uint8Array, into: PassageCutter): Promise<void> {
  const { getDocument } = await loadPdfJs();
  const folder = dirname(createRequire(import.meta.url).resolve("pdfjs-dist/package.json"));
  const loading = getDocument({
    data: bytes,
    cMapUrl: `${join(folder, "cmaps")}/`,
    cMapPacked: true,
    standardFontDataUrl: `${join(folder, "standard_fonts")}/`,
    isEvalSupported: false,
    disableFontFace: true,
    useSystemFonts: false,
    enableXfa: false,
    verbosity: ERRORS_ONLY,
  });
  try {
    const document = await loading.promise;
    if (document.numPages > FILE_PDF_PAGES_MAX)
      throw new AppError(
        "too_large",
        `The pdf has ${document.numPages} pages; at most ${FILE_PDF_PAGES_MAX} are read.`,
      );
    for (let number = 1; number <= document.numPages && !into.isFull; number++) {
      const page = await document.getPage(number);
      addPage(await page.getTextContent(), number, into);
      page.cleanup();
    }
  } catch (error) {
    throw unreadable(error);
  } finally {
    await loading.destroy();
  }
}

/** The package is large, and most threads never need it. */
async function loadPdfJs() {
  defineDrawing();
  const console = globalThis.console;
  // When it is loaded, it warns that it cannot draw, and has no setting for this.
  Object.assign(globalThis, { console: { ...console, warn: () => undefined } });
  try {
    return await import("pdfjs-dist/legacy/build/pdf.mjs");
  } finally {
    Object.assign(globalThis, { console });
  }
}

interface PageText {
  readonly items: readonly object[];
}

function addPage({ items }: PageText, number: number, into: PassageCutter): void {
  let line = "";
  for (const item of items) {
    if (!("str" in item) || typeof item.str !== "string") continue;
    line += item.str;
    if (!("hasEOL" in item) || item.hasEOL !== true) continue;
    into.addLine(line, number);
    line = "";
  }
  into.addLine(line, number);
  into.flush();
}

function unreadable(error: unknown): AppError {
  if (isAppError(error)) return error;
  const isEncrypted = error instanceof Error && error.name === "PasswordException";
  const text = isEncrypted ? "The pdf is encrypted." : `The pdf cannot be read: ${errorText(error)}`;
  return new AppError("invalid", text, { cause: error });
}
