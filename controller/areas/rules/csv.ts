import { namedCharacter } from "../../../common/csv/named.ts";
import { type CsvForm, CsvReader } from "../../../common/csv/reader.ts";
import { AppError } from "../../../common/errors.ts";
import { isOn, type RuleText, single } from "./options.ts";

/** How a rule reads CSV. */
export interface CsvOptions {
  readonly form: CsvForm;
  /** `--header`: files begin with a line that names the fields. */
  readonly hasHeader: boolean;
  /** A value that stands for none when it is without quotes. */
  readonly none: string | undefined;
  /** Lines that begin with this character are left out. */
  readonly comment: string | undefined;
}

/** Options that only the parser csv has. */
export const CSV_OPTIONS = ["header", "separator", "quote", "escape", "null", "comment_sign"] as const;

const BYTE_ORDER_MARK = "\uFEFF";
const BLANK = 32;
const BLANK_WORDS: ReadonlySet<string> = new Set(["space", "\\s"]);

/** `AppError("invalid")` for values that are none, or that contradict each other. */
export function csvOptions(rule: RuleText): CsvOptions {
  const header = single(rule, "header");
  if (header !== undefined && !/^(true|1|yes|false|0|no)?$/i.test(header))
    throw new AppError("invalid", `--header is on or off, not ${header}; --fields names the fields.`);
  const separator = character(rule, "separator") ?? ",";
  const quote = single(rule, "quote")?.toLowerCase() === "none" ? "" : (character(rule, "quote") ?? '"');
  const escape = character(rule, "escape");
  if (quote === "" && escape !== undefined)
    throw new AppError("invalid", "--escape is for values in quotes, and --quote is none.");
  const comment = character(rule, "comment_sign");
  refuseSame({ separator, quote, comment_sign: comment });
  refuseSame({ separator, escape });
  const form = { separator, quote, escape: escape ?? quote, allowsBlanks: true };
  return { form, hasHeader: isOn(rule, "header"), none: single(rule, "null"), comment };
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

/** Reads lines as the options of a csv rule say. */
export class CsvRows {
  readonly options: CsvOptions;
  /** Names of the fields by `--fields` or the class; empty: the heading line has them. */
  readonly names: readonly string[];

  constructor(options: CsvOptions, names: readonly string[]) {
    this.options = options;
    this.names = names;
  }

  /** A blank line, a comment, or a heading line with these names. */
  isLeftOut(text: string, names: readonly string[]): boolean {
    const { hasHeader, comment } = this.options;
    if (text.trim() === "") return true;
    if (comment !== undefined && unmarked(text).startsWith(comment)) return true;
    if (!hasHeader || names.length === 0 || !mayNameAll(text, names)) return false;
    const { columns } = this.columns(text);
    return columns?.length === names.length && columns.every((column, at) => column?.trim() === names[at]);
  }

  /** `AppError("invalid")` for a line that names no fields, or one of them twice. */
  headingNames(line: string): readonly string[] {
    const { columns, error } = this.columns(line);
    if (columns === undefined) throw new AppError("invalid", `The heading line: ${error}`);
    const names = columns.map((column) => column?.trim() ?? "");
    if (names.every((name) => name === "")) throw new AppError("invalid", "The heading line names no fields.");
    const seen = new Set<string>();
    const twice = names.find((name) => name !== "" && seen.size === seen.add(name).size);
    if (twice !== undefined) throw new AppError("invalid", `The heading line names the field ${twice} twice.`);
    return names;
  }

  /** The values of one row; those that stand for none are undefined. */
  columns(text: string): { readonly columns?: Columns; readonly error?: string } {
    const { form, none } = this.options;
    const row = unmarked(text);
    const isPlain = !(form.quote !== "" && row.includes(form.quote)) && !row.includes("\n") && !row.includes("\r");
    if (isPlain) {
      const columns = row.split(form.separator);
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

/** False, at a cost of the names alone, for most records: these are read once. */
function mayNameAll(text: string, names: readonly string[]): boolean {
  if (text.length < names.length - 1 || !text.includes(names[0] ?? "")) return false;
  // Each name in quotes, with each of its characters behind an escape, and a separator; a mark before the first.
  let left = names.reduce((sum, { length }) => sum + 2 * length + 3, 1);
  // Programs fill columns with blanks, as many as they like.
  for (let at = 0; at < text.length && left >= 0; at += 1) if (text.charCodeAt(at) > BLANK) left -= 1;
  return left >= 0;
}

function unmarked(text: string): string {
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}
