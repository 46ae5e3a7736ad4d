import { namedCharacter } from "../../../../common/csv/named.ts";
import { type CsvForm, CsvReader } from "../../../../common/csv/reader.ts";
import { AppError } from "../../../../common/errors.ts";
import { isOn, type RuleText, single } from "../definitions/options.ts";

/** How a rule reads CSV. */
export interface CsvOptions {
  readonly form: CsvForm;
  /** `--header`: each file has a line that names the fields. */
  readonly hasHeader: boolean;
  /** `--header=w3c`: heading lines begin with `#Fields:`. They may also be between the rows. */
  readonly isW3c: boolean;
  /** Text of an unquoted value that means "no value". `undefined`: no text has this meaning. */
  readonly none: string | undefined;
  /** Lines that begin with this character are left out. */
  readonly comment: string | undefined;
}

/** Options that only the csv parser has. */
export const CSV_OPTIONS = ["header", "separator", "quote", "escape", "null", "comment_sign"] as const;

const BYTE_ORDER_MARK = "\uFEFF";
const BLANK = 32;
const W3C_HEADING = /^#Fields:/i;
/** Separator of the names in a W3C heading line. The values may have another separator. */
const W3C_NAMES_END = /[\s,;]+/;
const BLANKS = /[ \t]+/;
const BLANK_WORDS: ReadonlySet<string> = new Set(["space", "\\s"]);

/** `AppError("invalid")` for wrong values, and for values that contradict each other. */
export function csvOptions(rule: RuleText): CsvOptions {
  const header = single(rule, "header");
  const isW3c = header?.toLowerCase() === "w3c";
  if (header !== undefined && !isW3c && !/^(true|1|yes|false|0|no)?$/i.test(header))
    throw new AppError("invalid", `--header is on, off or w3c, not ${header}; --fields names the fields.`);
  if (isW3c) refuseFields(rule);
  const separator = character(rule, "separator") ?? (isW3c ? " " : ",");
  const quote = single(rule, "quote")?.toLowerCase() === "none" ? "" : (character(rule, "quote") ?? (isW3c ? "" : '"'));
  const escape = character(rule, "escape");
  if (quote === "" && escape !== undefined)
    throw new AppError("invalid", "--escape is for values in quotes, and --quote is none.");
  const comment = character(rule, "comment_sign") ?? (isW3c ? "#" : undefined);
  refuseSame({ separator, quote, comment_sign: comment });
  refuseSame({ separator, escape });
  const form = { separator, quote, escape: escape ?? quote, allowsBlanks: true };
  const none = single(rule, "null") ?? (isW3c ? "-" : undefined);
  return { form, hasHeader: hasHeader(rule), isW3c, none, comment };
}

/** True with `--header`: files have heading lines. */
export function hasHeader(rule: RuleText): boolean {
  return isOn(rule, "header") || single(rule, "header")?.toLowerCase() === "w3c";
}

function refuseFields(rule: RuleText): void {
  const given = ["fields", "fields_type"].find((name) => single(rule, name) !== undefined);
  if (given === undefined) return;
  throw new AppError("invalid", `With --header=w3c the lines #Fields: name the fields: leave out --${given}.`);
}

function character(rule: RuleText, name: string): string | undefined {
  const given = single(rule, name);
  if (given === undefined) return undefined;
  const found = BLANK_WORDS.has(given.toLowerCase()) ? " " : namedCharacter(given);
  if (found !== undefined) return found;
  const words = name === "quote" ? "tab, space or none" : "tab or space";
  throw new AppError("invalid", `--${name} is one character, or the word ${words}, not ${JSON.stringify(given)}.`);
}

function refuseSame(characters: Readonly<Record<string, string | undefined>>): void {
  const given = Object.entries(characters).filter(([, one]) => one !== undefined && one !== "");
  for (const [at, [name, one]] of given.entries()) {
    const same = given.slice(at + 1).find(([, other]) => other === one);
    if (same) throw new AppError("invalid", `--${name} and --${same[0]} are the same character.`);
  }
}

type Columns = readonly (string | undefined)[];

/** Reads lines by the options of a csv rule. */
export class CsvRows {
  readonly options: CsvOptions;
  /** Names of the fields by `--fields` or the class. Empty: the heading line names them. */
  readonly names: readonly string[];

  constructor(options: CsvOptions, names: readonly string[]) {
    this.options = options;
    this.names = names;
  }

  /** True for a blank line, a comment, and a W3C heading line. */
  isComment(text: string): boolean {
    const { isW3c, comment } = this.options;
    if (text.trim() === "" || (isW3c && isW3cHeading(text))) return true;
    return comment !== undefined && unmarked(text).startsWith(comment);
  }

  /** True for a line that makes no row: see `isComment`, or a heading line with exactly these names. */
  isLeftOut(text: string, names: readonly string[]): boolean {
    const { hasHeader, isW3c } = this.options;
    if (this.isComment(text)) return true;
    if (!hasHeader || isW3c || names.length === 0 || !mayNameAll(text, names)) return false;
    const { columns } = this.columns(text);
    return columns?.length === names.length && columns.every((column, at) => column?.trim() === names[at]);
  }

  /** The names in a heading line. `AppError("invalid")` if it names no fields, or one of them twice. */
  headingNames(line: string): readonly string[] {
    const names = isW3cHeading(line) ? this.#w3cNames(line) : this.#lineNames(line);
    if (names.every((name) => name === "")) throw new AppError("invalid", "The heading line names no fields.");
    const seen = new Set<string>();
    const twice = names.find((name) => name !== "" && seen.size === seen.add(name).size);
    if (twice !== undefined) throw new AppError("invalid", `The heading line names the field ${twice} twice.`);
    return names;
  }

  #w3cNames(line: string): readonly string[] {
    if (!this.options.isW3c)
      throw new AppError("invalid", "The heading line begins with #Fields: and is read by --header=w3c.");
    return unmarked(line).replace(W3C_HEADING, "").trim().split(W3C_NAMES_END);
  }

  #lineNames(line: string): readonly string[] {
    if (this.options.isW3c)
      throw new AppError("invalid", "The heading line does not begin with #Fields:, as --header=w3c says.");
    const { columns, error } = this.columns(line);
    if (columns === undefined) throw new AppError("invalid", `The heading line: ${error}`);
    return columns.map((column) => column?.trim() ?? "");
  }

  /**
   * The values of one row; `undefined` for each unquoted value that equals `--null`. Returns an error for an invalid
   * row.
   */
  columns(text: string): { readonly columns?: Columns; readonly error?: string } {
    const { form, none } = this.options;
    const row = unmarked(text);
    const isPlain = !(form.quote !== "" && row.includes(form.quote)) && !row.includes("\n") && !row.includes("\r");
    if (isPlain) {
      const columns =
        this.options.isW3c && form.separator === " " ? row.trim().split(BLANKS) : row.split(form.separator);
      return { columns: none === undefined ? columns : columns.map((one) => (one === none ? undefined : one)) };
    }
    const reader = new CsvReader(form);
    const rows = [...reader.take(row), ...reader.end()];
    const fault = rows.find((one) => one.fault !== undefined)?.fault;
    if (fault !== undefined) return { error: `${fault.charAt(0).toUpperCase()}${fault.slice(1)}.` };
    if (rows.length !== 1) return { error: "It has more than one line outside quotes." };
    const cells = rows[0]?.cells ?? [];
    return { columns: cells.map((cell) => (cell.text === none && !cell.isQuoted ? undefined : cell.text)) };
  }
}

/** True for a line that names the fields of a W3C log. */
export function isW3cHeading(line: string): boolean {
  return W3C_HEADING.test(unmarked(line));
}

/** A cheap check before the line is parsed. It is false for most records, so these are parsed only once, as rows. */
function mayNameAll(text: string, names: readonly string[]): boolean {
  if (text.length < names.length - 1 || !text.includes(names[0] ?? "")) return false;
  // The most characters of a heading line: each name in quotes with every character escaped, separators, and a byte
  // order mark.
  let left = names.reduce((sum, { length }) => sum + 2 * length + 3, 1);
  // Blanks do not count, because programs may pad columns with any number of them.
  for (let at = 0; at < text.length && left >= 0; at += 1) if (text.charCodeAt(at) > BLANK) left -= 1;
  return left >= 0;
}

function unmarked(text: string): string {
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}
