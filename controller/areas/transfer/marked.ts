import { AppError } from "../../../common/errors.ts";
import { RECORD_MAX_BYTES } from "../../../common/limits.ts";
import type { Row, Value } from "../../../common/value.ts";
import { canonicalValue, type ClassView, type RecordMark, type RecordMarks } from "../objects/index.ts";
import { MARKS_FIELD, RAW_BYTES_FIELD } from "../permissions/index.ts";

const MARKS: readonly RecordMark[] = ["cut", "malformed"];

interface MarkedRow {
  readonly values: Row;
  readonly marked?: RecordMarks;
}

/**
 * Separates the values of a row from those of the columns that the platform adds to records. Raw bytes without marks
 * count as those of a malformed record: a class may have its own column `marks`, which hides the platform's column.
 */
export function markedRow(row: Row, view: ClassView): MarkedRow {
  const { recordColumns = [] } = view;
  const [marks, raw] = [MARKS_FIELD, RAW_BYTES_FIELD].map((name) => {
    const column = Object.hasOwn(row, name) ? recordColumns.find((one) => one.name === name) : undefined;
    return column && { column, value: canonicalValue(column, row[name] ?? null) };
  });
  if (!marks && !raw) return { values: row };
  const taken = [marks, raw].map((one) => one?.column.name);
  const values = Object.fromEntries(Object.entries(row).filter(([name]) => !taken.includes(name)));
  const rawBytes = raw?.value;
  const found = marksOf(marks ? (marks.value ?? []) : typeof rawBytes === "string" ? ["malformed"] : []);
  if (typeof rawBytes !== "string") return found.length === 0 ? { values } : { values, marked: { marks: found } };
  if (!found.includes("malformed"))
    throw new AppError("invalid", `[Valid] ${RAW_BYTES_FIELD} is only of records whose ${MARKS_FIELD} has malformed.`);
  if (Buffer.byteLength(rawBytes, "base64") > RECORD_MAX_BYTES)
    throw new AppError("too_large", `[Valid] ${RAW_BYTES_FIELD} has at most ${RECORD_MAX_BYTES} bytes.`, {
      details: { limit: "RECORD_MAX_BYTES" },
    });
  return { values, marked: { marks: found, rawBytes } };
}

function marksOf(given: Value): readonly RecordMark[] {
  const names = Array.isArray(given) ? (given as readonly Value[]) : [given];
  const unknown = names.find((name) => !MARKS.some((mark) => mark === name));
  if (unknown !== undefined)
    throw new AppError("invalid", `[Valid] ${MARKS_FIELD} has ${MARKS.join(" and ")}, not ${JSON.stringify(unknown)}.`);
  return MARKS.filter((mark) => names.includes(mark));
}
