import { AppError } from "../errors.ts";
import { ENCODING_NAME_SHOWN_CHARACTERS } from "../limits.ts";
import { beginningOf } from "./cut.ts";

/** How the bytes of an encoding make characters. */
export type EncodingKind = "utf-8" | "utf-16" | "single-byte" | "multi-byte";

/** An encoding by the name that the Encoding Standard gives it, in lower case. */
export interface Encoding {
  readonly name: string;
  readonly kind: EncodingKind;
  /** Bytes of one code unit. Lines end at multiples of it from the beginning of the text. */
  readonly unitBytes: 1 | 2;
  /** The bytes of a line feed. At a multiple of `unitBytes` they never occur inside a character. */
  readonly newline: Uint8Array;
}

/** Encodings with one to four bytes per character, decoded by tables. */
const MULTI_BYTE: ReadonlySet<string> = new Set(["gbk", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr"]);
/** Names of the standard that are not supported: a stateful encoding, and names that encode no text. */
const NOT_OFFERED: ReadonlySet<string> = new Set(["iso-2022-jp", "replacement", "x-user-defined"]);
/** Common names that the standard does not have. */
const ALIASES: Readonly<Record<string, string>> = {
  cp932: "shift_jis",
  cp936: "gbk",
  cp949: "euc-kr",
  cp950: "big5",
  euccn: "gbk",
  eucjp: "euc-jp",
  euckr: "euc-kr",
  gb_18030: "gb18030",
  ucs2: "utf-16le",
  utf16: "utf-16le",
  utf16be: "utf-16be",
  utf16le: "utf-16le",
};
const MARKS: readonly (readonly [encoding: string, bytes: readonly number[]])[] = [
  ["utf-8", [0xef, 0xbb, 0xbf]],
  ["utf-16le", [0xff, 0xfe]],
  ["utf-16be", [0xfe, 0xff]],
];

/** Bytes of the longest byte order mark. */
export const MARK_MAX_BYTES = 3;
/** Examples for messages that ask for the name of an encoding. */
export const ENCODING_EXAMPLES = "such as utf-8, utf-16le, gb18030, big5, shift_jis or windows-1252";

export const UTF8: Encoding = encodingOf("utf-8");

/**
 * Finds an encoding by its name in any case: a label of the Encoding Standard, or a code page such as `cp936`. As in
 * browsers, `iso-8859-1` and `ascii` are windows-1252. `AppError("invalid")` for another name; the error names the
 * parameter.
 */
export function encodingNamed(name: string, parameter = "encoding"): Encoding {
  const plain = name.trim().toLowerCase();
  const found = standardName(Object.hasOwn(ALIASES, plain) ? (ALIASES[plain] ?? plain) : plain);
  if (found !== undefined && !NOT_OFFERED.has(found)) return encodingOf(found);
  const shown = JSON.stringify(beginningOf(name, ENCODING_NAME_SHOWN_CHARACTERS));
  throw new AppError(
    "invalid",
    `${parameter}=${shown} is no encoding that is read here: name one ${ENCODING_EXAMPLES}.`,
  );
}

/** As `encodingNamed`; UTF-8 if the name is absent or empty. */
export function encodingGiven(name: string | undefined, parameter?: string): Encoding {
  return name === undefined || name.trim() === "" ? UTF8 : encodingNamed(name, parameter);
}

/** Name of the encoding whose byte order mark the text begins with; `undefined` without a mark. */
export function markedEncoding(bytes: Uint8Array): string | undefined {
  return MARKS.find(([, mark]) => mark.every((byte, at) => bytes[at] === byte))?.[0];
}

function standardName(label: string): string | undefined {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return undefined;
  }
}

function encodingOf(name: string): Encoding {
  const isWide = name.startsWith("utf-16");
  return {
    name,
    kind: kindOf(name),
    unitBytes: isWide ? 2 : 1,
    newline: Uint8Array.from(isWide ? (name === "utf-16le" ? [0x0a, 0] : [0, 0x0a]) : [0x0a]),
  };
}

function kindOf(name: string): EncodingKind {
  if (name === "utf-8") return "utf-8";
  if (name.startsWith("utf-16")) return "utf-16";
  return MULTI_BYTE.has(name) ? "multi-byte" : "single-byte";
}
