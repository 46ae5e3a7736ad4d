import { AppError, isAppError } from "../../../../common/errors.ts";
import {
  NOWHERE,
  printStatement,
  textNode,
  type CreateClass,
  type Insert,
  type Statement,
} from "../../../../common/mql/index.ts";
import type { FaultPlace, ScriptPart } from "../source.ts";
import { Archive } from "./archive.ts";
import { bookOf } from "./book.ts";
import { rowsOf, type SheetCell, type SheetRow } from "./cells.ts";
import { timeOfDays } from "./days.ts";
import {
  EDGE_TYPES,
  HEAD_ROWS,
  letters,
  parseOption,
  parseType,
  RELATION,
  unmarkedText,
  type HeadRow,
} from "./names.ts";

/**
 * Numbers in a column of times are days if they are smaller than this. Greater ones are milliseconds: as days they
 * would be thousands of years away.
 */
const DAYS_MAX = 3_000_000;
const CLASS_PATH = /^(\/[\p{L}\p{N}_]+)+$/u;

/** Converts a workbook to a script: for each sheet, the definition of its class, then its objects. */
export async function* workbookParts(path: string): AsyncGenerator<ScriptPart> {
  await using archive = await Archive.open(path);
  const book = await bookOf(archive);
  for (const sheet of book.sheets) {
    const reader = new SheetReader(sheet.name, book.is1904);
    for await (const row of rowsOf(archive, sheet, book)) yield* reader.take(row);
    yield* reader.end();
  }
}

interface Head {
  readonly path: string;
  /** Name of the class's column, by the index of the column in the sheet; `types` likewise. */
  readonly names: ReadonlyMap<number, string>;
  readonly types: ReadonlyMap<number, string>;
}

/** Reads one sheet. A sheet whose cell A1 is empty is ignored. */
class SheetReader {
  readonly #sheet: string;
  #kind: "unknown" | "other" | "class" | "edge types" = "unknown";
  readonly #rows = new Map<HeadRow, SheetRow>();
  readonly #is1904: boolean;
  #head: Head | undefined;

  constructor(sheet: string, is1904: boolean) {
    this.#sheet = sheet;
    this.#is1904 = is1904;
  }

  take(row: SheetRow): readonly ScriptPart[] {
    if (row.cells.size === 0 || this.#kind === "other") return [];
    for (const [at, { fault }] of row.cells)
      if (fault !== undefined) throw this.#refused(`${letters(at)}${row.number}`, `${fault}.`);
    const first = row.cells.get(0)?.text.trim() ?? "";
    if (this.#kind === "unknown") return this.#begin(row, first);
    if (this.#kind === "edge types") return [this.#edgeType(row)];
    return this.#head ? this.#object(row, this.#head) : this.#headRow(row, first);
  }

  end(): readonly ScriptPart[] {
    return this.#kind === "class" && !this.#head ? [this.#close()] : [];
  }

  #begin(row: SheetRow, first: string): readonly ScriptPart[] {
    if (row.number !== 1) this.#kind = "other";
    else if (first === EDGE_TYPES) this.#kind = "edge types";
    else if (first === "class") this.#kind = "class";
    else throw this.#fault("A1", `says ${JSON.stringify(first)} and not class`);
    return this.#kind === "class" ? this.#headRow(row, first) : [];
  }

  #headRow(row: SheetRow, label: string): readonly ScriptPart[] {
    const known = HEAD_ROWS.find((name) => name === label);
    if (!known || this.#rows.has(known))
      throw this.#fault(
        `A${row.number}`,
        `says ${JSON.stringify(label)} where one of ${HEAD_ROWS.join(", ")} has to stand`,
      );
    this.#rows.set(known, row);
    return known === "type" ? [this.#close()] : [];
  }

  #close(): ScriptPart {
    const names = this.#cells("name");
    const types = this.#cells("type");
    const path = this.#cells("class").get(1) ?? "";
    if (!CLASS_PATH.test(path)) throw this.#fault("B1", `${JSON.stringify(path)} is no class path`);
    const columns = [...names].filter(([at]) => types.get(at) !== RELATION);
    this.#head = { path, names, types: new Map([...types].map(([at, type]) => [at, type.toLowerCase()])) };
    const definition: CreateClass = {
      kind: "createClass",
      ifNotExists: true,
      class: { kind: "class", path, subtree: false, alias: undefined, span: NOWHERE },
      columns: columns.map(([at, name]) => ({
        ...this.#type(types.get(at), at),
        kind: "column",
        name,
        title: this.#cells("title").get(at),
        span: NOWHERE,
      })),
      keys: [...this.#cells("keys").values()],
      indexes: [...this.#cells("indexes").values()],
      options: [...this.#cells("options")].map(([at, text]) => this.#placed("options", at, () => parseOption(text))),
      span: NOWHERE,
    };
    return this.#part(definition, () => "");
  }

  #type(text: string | undefined, at: number) {
    return this.#placed("type", at, () => {
      if (text === undefined) throw new AppError("invalid", "[Format] a column has no type.");
      return parseType(text);
    });
  }

  /** Texts of a row of the head, by column, from column B on. */
  #cells(row: HeadRow): ReadonlyMap<number, string> {
    const cells = [...(this.#rows.get(row)?.cells ?? [])].filter(
      ([at, { text }]) => at > 0 && (text !== "" || row === "title"),
    );
    return new Map(cells.map(([at, { text }]) => [at, row === "title" ? text : text.trim()]));
  }

  #edgeType(row: SheetRow): ScriptPart {
    const [name = "", remedy] = [row.cells.get(0)?.text, row.cells.get(1)?.text];
    return this.#part(
      { kind: "createEdgeType", ifNotExists: true, name, remedy: remedy === "" ? undefined : remedy, span: NOWHERE },
      () => ` row ${row.number}`,
    );
  }

  #object(row: SheetRow, { path, names, types }: Head): readonly ScriptPart[] {
    const stray = [...row.cells.keys()].find((at) => at > 0 && !names.has(at));
    if (stray !== undefined) throw this.#fault(`${letters(stray)}${row.number}`, "stands below no column of the class");
    const cells = [...row.cells].filter(([at, { text }]) => at > 0 || text !== "");
    if (cells.length === 0) return [];
    const insert: Insert = {
      kind: "insert",
      class: { kind: "class", path, subtree: false, alias: undefined, span: NOWHERE },
      form: "set",
      columns: cells.map(([at]) => names.get(at) ?? "id"),
      rows: [cells.map(([at, cell]) => textNode(this.#value(cell, types.get(at))))],
      at: undefined,
      span: NOWHERE,
    };
    const within = ({ field }: FaultPlace): string => {
      const at = [...names].find(([, name]) => name === field)?.[0];
      return at === undefined ? ` row ${row.number}` : ` cell ${letters(at)}${row.number}`;
    };
    return [this.#part(insert, within)];
  }

  #part(statement: Statement, within: (fault: FaultPlace) => string): ScriptPart {
    return { text: printStatement(statement), place: (fault) => `sheet ${this.#sheet}${within(fault)}` };
  }

  #placed<T>(row: HeadRow, at: number, work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (!isAppError(error)) throw error;
      throw new AppError(
        error.code,
        `sheet ${this.#sheet} cell ${letters(at)}${this.#rows.get(row)?.number ?? 0}: ${error.message}`,
        { cause: error },
      );
    }
  }

  #fault(cell: string, what: string): AppError {
    return this.#refused(cell, `it ${what}.`);
  }

  #refused(cell: string, reason: string): AppError {
    return new AppError("invalid", `sheet ${this.#sheet} cell ${cell}: [Format] ${reason}`);
  }

  #value({ text, isNumber }: SheetCell, type: string | undefined): string {
    if (!isNumber) return type === "varchar" || type === "text" ? unmarkedText(text) : text;
    const isDays = (type === "timestamp" || type === "date") && Math.abs(Number(text)) < DAYS_MAX;
    return String((isDays ? timeOfDays(Number(text), this.#is1904) : undefined) ?? text);
  }
}
