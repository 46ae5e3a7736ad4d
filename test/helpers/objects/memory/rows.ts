import { createHash } from "node:crypto";
import { AppError } from "../../../../common/errors.ts";
import type { Row } from "../../../../common/value.ts";
import { canonicalText, canonicalValue, type ClassView } from "../../../../controller/areas/objects/index.ts";

/** Values as they are stored; throws for a column that the class does not have. */
export function canonicalRow(view: ClassView, row: Row): Row {
  const values: Row = {};
  for (const [name, value] of Object.entries(row)) {
    if (name === "id") continue;
    const column = view.column(name);
    if (!column) throw new AppError("not_found", `Field ${name} Not Exist`);
    const kept = canonicalValue(column, value);
    if (kept !== undefined) values[name] = kept;
  }
  return values;
}

/** The full id that a row is given or that its keys make; `undefined` if it has neither. */
export function idOf(view: ClassView, given: Row, values: Row): string | undefined {
  const id = canonicalText(given.id ?? "");
  if (id !== "" && given.id !== null) return id.startsWith(`${view.label}:`) ? id : `${view.label}:${id}`;
  if (view.keys.length === 0) return undefined;
  const text = view.keys.map((key) => canonicalText(values[key] ?? "")).join(":");
  return `${view.label}:${view.options.keyMode === "md5" ? digest(text) : text}`;
}

export function digest(text: string): string {
  return createHash("md5").update(text).digest("hex");
}
