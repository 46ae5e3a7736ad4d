/** A cell wider than this is cut: a table is for looking, `--json` for everything. */
const CELL_MAX_CHARACTERS = 60;

/** Rows as a table with a heading; columns in the order they first appear. */
export function table(rows: readonly unknown[]): string {
  const objects = rows.map((row) =>
    typeof row === "object" && row !== null ? (row as Record<string, unknown>) : { value: row },
  );
  const columns = [...new Set(objects.flatMap((row) => Object.keys(row)))];
  if (columns.length === 0) return "no rows";
  const lines = [columns, ...objects.map((row) => columns.map((column) => cell(row[column])))];
  const widths = columns.map((_column, index) => Math.max(...lines.map((line) => line[index]?.length ?? 0)));
  const text = lines.map((line) =>
    line
      .map((value, index) => value.padEnd(widths[index] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  text.splice(1, 0, widths.map((width) => "-".repeat(width)).join("  "));
  return text.join("\n");
}

function cell(value: unknown): string {
  if (value === undefined || value === null) return "";
  const text = (typeof value === "string" ? value : JSON.stringify(value)).replaceAll(/\s+/g, " ");
  return text.length > CELL_MAX_CHARACTERS ? `${text.slice(0, CELL_MAX_CHARACTERS - 1)}…` : text;
}
