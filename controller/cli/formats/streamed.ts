import { AppError } from "../../../common/errors.ts";
import { CLI_STREAM_FIRST_ROWS } from "../../../common/limits.ts";
import { rowsOf, viewOf, type View } from "./columns.ts";
import type { Format } from "./names.ts";
import { rendered, renderedTable, requireKnown, type Rendering } from "./rendered.ts";

const STREAMED: readonly Format[] = ["json", "yaml", "csv", "name"];

/**
 * True for a format whose rows are written as they arrive. A table may be as well, if the columns that hold times are
 * known before all rows are there.
 */
export function isStreamed(format: Format): boolean {
  return STREAMED.includes(format);
}

/** Names of the columns that hold times. It is asked once, after the first rows or after all. */
export type TimesOf = () => Promise<ReadonlySet<string>>;

const NO_TIMES: TimesOf = () => Promise.resolve(new Set());

/**
 * Rows of a list as text, which is the same as that of `rendered` for all of them. The columns of CSV, those of a table
 * with their widths, and the known fields are those of the first `CLI_STREAM_FIRST_ROWS` rows. `AppError("invalid")`
 * for a later row of CSV or a table that has another column.
 */
export async function* streamedText(
  batches: AsyncIterable<readonly unknown[]>,
  rendering: Rendering,
  timesOf: TimesOf = NO_TIMES,
): AsyncGenerator<string> {
  const first: unknown[] = [];
  let texts: Texts | undefined;
  for await (const batch of batches) {
    if (texts === undefined) {
      for (const row of batch) first.push(row);
      if (first.length < CLI_STREAM_FIRST_ROWS) continue;
      texts = textsOf(viewOf(rowsOf(first), await timesOf()), first, rendering);
      yield texts.of(first);
    } else yield texts.of(batch);
  }
  if (texts !== undefined) yield texts.end;
  else yield rendered(first, rendering, first.length === 0 ? undefined : viewOf(rowsOf(first), await timesOf()));
}

/** The texts of a list, one batch of rows after the other; a batch has at least one row. */
interface Texts {
  of(batch: readonly unknown[]): string;
  readonly end: string;
}

function textsOf(view: View, first: readonly unknown[], rendering: Rendering): Texts {
  const { format, fields } = rendering;
  if (fields) requireKnown(fields, rowsOf(first));
  const part = { ...rendering, isPart: true };
  if (format === "csv") return { of: csvText(view, part), end: "" };
  if (format === "json") return { of: jsonText(part), end: "\n]\n" };
  if (!isStreamed(format)) return tableOf(view, first, part);
  return { of: (batch) => rendered(batch, part, view), end: "" };
}

function tableOf(view: View, first: readonly unknown[], part: Rendering): Texts {
  const texts = renderedTable(rowsOf(first), part, view);
  const known = part.fields === undefined ? namesOf(view) : undefined;
  return {
    of(batch) {
      if (batch === first) return texts.first;
      requireNoOther(batch, known);
      return texts.further(rowsOf(batch));
    },
    end: texts.end,
  };
}

function namesOf({ columns }: View): ReadonlySet<string> {
  return new Set(columns.map(({ name }) => name));
}

function csvText(view: View, part: Rendering): Texts["of"] {
  const known = namesOf(view);
  let isHeaded = false;
  return (batch) => {
    requireNoOther(batch, part.fields === undefined ? known : undefined);
    const text = rendered(batch, part, view);
    const rows = isHeaded ? text.slice(rendered([], part, view).length) : text;
    isHeaded = true;
    return rows;
  };
}

function requireNoOther(batch: readonly unknown[], known: ReadonlySet<string> | undefined): void {
  const other =
    known &&
    rowsOf(batch)
      .flatMap(Object.keys)
      .find((name) => !known.has(name));
  if (other === undefined) return;
  throw new AppError("invalid", `A later row has the column ${other}: name the columns in the SELECT, or use -o json.`);
}

function jsonText(part: Rendering): Texts["of"] {
  let begin = "[\n";
  return (batch) => {
    const text = begin + rendered(batch, part).slice("[\n".length, -"\n]\n".length);
    begin = ",\n";
    return text;
  };
}
