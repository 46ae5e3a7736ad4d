/** Rows as CSV of RFC 4180 with a heading, in lines that end with a line feed. */
export function csvOf(heading: readonly string[], rows: readonly (readonly unknown[])[]): string {
  return [heading, ...rows].map((row) => `${row.map(cellOf).join(",")}\n`).join("");
}

function cellOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
