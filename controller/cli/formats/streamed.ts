import { AppError } from "../../../common/errors.ts";
import { CLI_STREAM_FIRST_ROWS } from "../../../common/limits.ts";
import { rowsOf, viewOf, type Row } from "./columns.ts";
import type { Format } from "./names.ts";
import { rendered, requireKnown, type Rendering } from "./rendered.ts";

const STREAMED: readonly Format[] = ["json", "yaml", "csv", "name"];

/** True for a format whose rows are written as they arrive. A table has to know all rows for the width of its columns. */
export function isStreamed(format: Format): boolean {
  return STREAMED.includes(format);
}

/**
 * Rows of a list as text, which is the same as that of `rendered` for all of them. The columns of CSV and the known
 * fields are those of the first `CLI_STREAM_FIRST_ROWS` rows. `AppError("invalid")` for a later row of CSV that has
 * another column.
 */
export async function* streamedText(
  batches: AsyncIterable<readonly unknown[]>,
  rendering: Rendering,
): AsyncGenerator<string> {
  const first: unknown[] = [];
  let textOf: BatchText | undefined;
  for await (const batch of batches) {
    if (textOf === undefined) {
      first.push(...batch);
      if (first.length < CLI_STREAM_FIRST_ROWS) continue;
      textOf = batchText(rowsOf(first), rendering);
      yield textOf(first);
    } else yield textOf(batch);
  }
  if (textOf === undefined) yield rendered(first, rendering);
  else if (rendering.format === "json") yield "\n]\n";
}

/** The text of one batch of rows after the other; a batch has at least one row. */
type BatchText = (batch: readonly unknown[]) => string;

function batchText(first: readonly Row[], rendering: Rendering): BatchText {
  const { format, fields } = rendering;
  if (fields) requireKnown(fields, first);
  const part = { ...rendering, isPart: true };
  if (format === "csv") return csvText(first, part);
  if (format === "json") return jsonText(part);
  const view = viewOf(first);
  return (batch) => rendered(batch, part, view);
}

function csvText(first: readonly Row[], part: Rendering): BatchText {
  const view = viewOf(first);
  const known = new Set(view.columns.map(({ name }) => name));
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

function jsonText(part: Rendering): BatchText {
  let begin = "[\n";
  return (batch) => {
    const text = begin + rendered(batch, part).slice("[\n".length, -"\n]\n".length);
    begin = ",\n";
    return text;
  };
}
