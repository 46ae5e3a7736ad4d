import { formatObjectId, parseObjectId, ulidTimeMs } from "../../../../common/ids.ts";
import { OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import { canonicalText, type ClassView, idFromColumns, type NewRecord, type ObjectRow } from "../../objects/index.ts";
import { MARKS_FIELD } from "../../permissions/index.ts";
import { type Scope, visibility } from "../plan/scope.ts";
import { canonicalRow, isRuledByRow, outsideRule, requireWriting, type WriteContext } from "./write.ts";

/** The class of rows as their principal sees it. */
interface Target {
  readonly scope: Scope;
  readonly view: ClassView;
}

/** A row with its marks and its own time, which row conditions see. */
export interface GatedRow extends Pick<NewRecord, "values" | "marked"> {
  readonly timeMs?: number | undefined;
}

/** `AppError("denied")` for a row whose object the principal may not see or write, before or after. */
export async function checkRows(
  target: Target,
  rows: readonly GatedRow[],
  context: Pick<WriteContext, "objects" | "clock">,
): Promise<void> {
  const { scope, view } = target;
  if (!isRuledByRow(scope, view)) return;
  const visible = visibility(scope);
  for (let from = 0; from < rows.length; from += OBJECT_PAGE_MAX) {
    const candidates = rows.slice(from, from + OBJECT_PAGE_MAX).map((row) => candidateOf(view, row));
    const there = await existing(candidates, target, context);
    for (const candidate of candidates) {
      const found = there.get(candidate.id);
      if (found && visible(found) !== true) throw outsideRule(scope, view);
      const after = written(candidate, found, { view, nowMs: context.clock.nowMs() });
      if (visible(after) !== true) throw outsideRule(scope, view);
      requireWriting(scope, view, Object.keys(candidate.values), { before: found, after });
    }
  }
}

/** The object that a row would make. */
interface Candidate {
  /** Absent: it is made up with the insert. */
  readonly id: string | undefined;
  readonly values: Row;
  /** Columns that the platform keeps: the principal does not write them. */
  readonly kept: Row;
  readonly timeMs: number | undefined;
}

function candidateOf(view: ClassView, { values, marked, timeMs }: GatedRow): Candidate {
  const isMarked = marked !== undefined && view.recordColumns?.some(({ name }) => name === MARKS_FIELD);
  const kept: Row = isMarked ? { [MARKS_FIELD]: [...marked.marks] } : {};
  const id = insertedId(view, values);
  return { id, values: canonicalRow(view, values), kept, timeMs: recordTimeMs(view, id, timeMs) };
}

/** The time in the id comes first. Objects have none of their own here: their writes come after those before. */
function recordTimeMs({ kind }: ClassView, id: string | undefined, timeMs: number | undefined): number | undefined {
  return kind === "record" ? (ulidTimeMs(parseObjectId(id ?? "")?.key ?? "") ?? timeMs) : undefined;
}

/** The id that an insert of the row names; `undefined` where it is generated. */
export function insertedId(view: ClassView, row: Row): string | undefined {
  return givenId(view, row) ?? idFromColumns(view, canonicalRow(view, keyValues(view, row)));
}

function written(
  { id = "", values, kept, timeMs }: Candidate,
  found: ObjectRow | undefined,
  now: { readonly view: ClassView; readonly nowMs: number },
): ObjectRow {
  const { view, nowMs } = now;
  const vtimeMs = timeMs ?? nowMs;
  const whole = { ...found?.values, ...values, ...kept };
  return { id, class: view, values: whole, vtimeMs, ctimeMs: found?.ctimeMs ?? vtimeMs };
}

async function existing(
  candidates: readonly Candidate[],
  { scope, view }: Target,
  { objects }: Pick<WriteContext, "objects">,
): Promise<ReadonlyMap<string | undefined, ObjectRow | undefined>> {
  const ids = candidates.flatMap(({ id }) => id ?? []);
  if (ids.length === 0) return new Map();
  const found = await objects.get(
    scope.principal,
    ids.map((id) => ({ id, class: view.path })),
  );
  return new Map(ids.map((id, at) => [id, found[at]]));
}

/** The values of the key columns that are set. */
function keyValues(view: ClassView, values: Row): Row {
  const keys: Row = {};
  for (const name of view.keys) if (values[name] !== undefined && values[name] !== null) keys[name] = values[name];
  return keys;
}

/** The id as it will be, from a bare or a whole one, also a number. */
function givenId(view: ClassView, row: Row): string | undefined {
  const given = row.id ?? "";
  if (given === "") return undefined;
  const id = canonicalText(given);
  return parseObjectId(id)?.label === view.label ? id : formatObjectId(view.label, id);
}
