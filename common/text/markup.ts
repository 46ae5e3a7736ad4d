import { AppError } from "../errors.ts";
import { MARKUP_MAX_CHARACTERS, MARKUP_TAG_MAX_CHARACTERS } from "../limits.ts";

/**
 * A token of an XML part of an office document. Names have no namespace prefix. Comments and processing instructions
 * give no token.
 */
export type Markup =
  | { readonly kind: "open"; readonly name: string; readonly attributes: string }
  | { readonly kind: "close"; readonly name: string }
  | { readonly kind: "text"; readonly text: string };

const TAG = /<(\/?)(?:[^\s/>"'=:]*:)?([^\s/>"'=:]+)((?:[^<>"']|"[^"]*"|'[^']*')*)>/y;
const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };
/** Escaped character, such as `_x0000_`, for characters that XML cannot contain. */
const ESCAPED = /_x([0-9a-fA-F]{4})_/g;
const NOT_IN_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\r\ufffe\uffff]/g;
const SIGNS: Readonly<Record<string, string>> = { "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;" };

/**
 * Reads XML in pieces. Refuses a document type, so there are no custom entities and no external references. Holds at
 * most `MARKUP_MAX_CHARACTERS` of incomplete input.
 */
export class MarkupReader {
  #held = "";
  /** Number of open tags. */
  #depth = 0;

  take(piece: string): Markup[] {
    this.#held += piece;
    const found: Markup[] = [];
    let at = 0;
    for (let end = this.#next(at, found); end !== undefined; end = this.#next(at, found)) at = end;
    this.#held = this.#held.slice(at);
    if (this.#held.length <= MARKUP_MAX_CHARACTERS) return found;
    throw new AppError(
      "too_large",
      `[Format] A part of the document has a piece of more than ${MARKUP_MAX_CHARACTERS} characters.`,
    );
  }

  /** Call it at the end of the text. `AppError("invalid")` if the XML is incomplete. */
  end(): void {
    if (this.#held.trim() !== "" || this.#depth !== 0) throw broken();
  }

  /** Reads one token. Returns the position after it; `undefined` if the token is incomplete. */
  #next(at: number, found: Markup[]): number | undefined {
    const open = this.#held.indexOf("<", at);
    if (open === -1) return undefined;
    if (open > at) {
      found.push({ kind: "text", text: unescaped(this.#held.slice(at, open)) });
      return open;
    }
    const mark = this.#held.charAt(at + 1);
    if (mark === "!") return this.#declaration(at, found);
    return mark === "?" ? this.#behind("?>", at) : this.#tag(at, found);
  }

  #declaration(at: number, found: Markup[]): number | undefined {
    const head = this.#held.slice(at, at + 9);
    if (head.startsWith("<!--")) return this.#behind("-->", at + 4);
    if (head !== "<![CDATA[") {
      if (head.length < 9) return undefined;
      throw new AppError("invalid", "[Format] A part of the document has a document type, which is refused.");
    }
    const end = this.#behind("]]>", at);
    if (end !== undefined) found.push({ kind: "text", text: this.#held.slice(at + 9, end - 3) });
    return end;
  }

  #behind(mark: string, from: number): number | undefined {
    const end = this.#held.indexOf(mark, from);
    return end === -1 ? undefined : end + mark.length;
  }

  #tag(at: number, found: Markup[]): number | undefined {
    TAG.lastIndex = at;
    const [whole, slash, name = "", attributes = ""] = TAG.exec(this.#held) ?? [];
    if (whole === undefined) return this.#unfinished(at);
    if (slash === "") found.push({ kind: "open", name, attributes });
    if (slash === "/" || attributes.endsWith("/")) found.push({ kind: "close", name });
    this.#depth += attributes.endsWith("/") ? 0 : slash === "" ? 1 : -1;
    return at + whole.length;
  }

  /** Each piece reads the tag from its beginning again, so a tag is short. */
  #unfinished(at: number): undefined {
    if (this.#held.length - at <= MARKUP_TAG_MAX_CHARACTERS) return undefined;
    throw new AppError(
      "too_large",
      `[Format] A part of the document has a tag of more than ${MARKUP_TAG_MAX_CHARACTERS} characters.`,
    );
  }
}

/** Collects the texts of the elements `t` and `v`, without phonetic texts. */
export class CellText {
  text = "";
  #isText = false;
  #phonetic = false;

  begin(): void {
    this.text = "";
  }

  take(markup: Markup): void {
    if (markup.kind === "text") {
      if (this.#isText && !this.#phonetic) this.text += markup.text;
    } else if (markup.name === "rPh") this.#phonetic = markup.kind === "open";
    else if (markup.name === "t" || markup.name === "v") this.#isText = markup.kind === "open";
  }
}

/** The value of a tag's attribute, with any namespace prefix; `undefined` if it is missing. */
export function attributeOf(attributes: string, name: string): string | undefined {
  const match = new RegExp(`(?:^|[\\s:])${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`).exec(attributes);
  const value = match?.[1] ?? match?.[2];
  return value === undefined ? undefined : unescaped(value);
}

/** Escapes a text for the XML of a cell. */
export function cellText(text: string): string {
  return text
    .replace(ESCAPED, "_x005F$&")
    .replace(NOT_IN_XML, (character) => `_x${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}_`)
    .replace(/[<>&"]/g, (sign) => SIGNS[sign] ?? sign);
}

export function textOfCell(text: string): string {
  return text.replace(ESCAPED, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

function unescaped(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(
    /&(?:#x([0-9a-fA-F]+)|#(\d+)|(\w+));/g,
    (_, hexadecimal?: string, decimal?: string, name = "") => {
      const code = hexadecimal === undefined ? Number(decimal) : Number.parseInt(hexadecimal, 16);
      const character = Number.isNaN(code)
        ? ENTITIES[name as string]
        : code <= 0x10ffff
          ? String.fromCodePoint(code)
          : undefined;
      if (character === undefined) throw broken();
      return character;
    },
  );
}

function broken(): AppError {
  return new AppError("invalid", "[Format] A part of the document is no XML.");
}
