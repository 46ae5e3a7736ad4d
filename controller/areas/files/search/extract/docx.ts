import { FILE_LINE_MAX_CHARACTERS } from "../../../../../common/limits.ts";
import type { Markup } from "../../../../../common/text/markup.ts";
import type { DocumentParts } from "./parts.ts";
import type { PassageCutter } from "./passages.ts";

export const DOCX_PART = "word/document.xml";

/** Adds the paragraphs of a docx as lines. Headers, footers, notes and deleted text are left out. */
export async function addDocxLines(parts: DocumentParts, into: PassageCutter): Promise<void> {
  const reader = new ParagraphReader(into);
  for await (const some of parts.read(DOCX_PART)) {
    for (const markup of some) reader.take(markup);
    if (into.isFull) return;
  }
  reader.endLine();
}

class ParagraphReader {
  readonly #into: PassageCutter;
  #line = "";
  #number = 1;
  #isText = false;
  /** Depth of `Fallback`, which repeats a text box for older programs. */
  #fallbacks = 0;

  constructor(into: PassageCutter) {
    this.#into = into;
  }

  take(markup: Markup): void {
    if (markup.kind === "text") return this.#addText(markup.text);
    const isOpen = markup.kind === "open";
    if (markup.name === "Fallback") this.#fallbacks += isOpen ? 1 : -1;
    else if (markup.name === "t") this.#isText = isOpen;
    else if (markup.name === "tab" && isOpen) this.#add("\t");
    else if ((markup.name === "br" || markup.name === "cr") && isOpen) this.#add(" ");
    else if (markup.name === "p" && !isOpen) this.endLine();
  }

  endLine(): void {
    if (this.#fallbacks > 0) return;
    this.#into.addLine(this.#line, this.#number);
    this.#line = "";
    this.#number += 1;
  }

  #addText(text: string): void {
    if (this.#isText) this.#add(text);
  }

  #add(text: string): void {
    if (this.#fallbacks > 0) return;
    this.#line += text;
    if (this.#line.length <= FILE_LINE_MAX_CHARACTERS) return;
    this.#into.addLine(this.#line, this.#number);
    this.#line = "";
  }
}
