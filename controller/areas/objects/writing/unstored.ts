import { PRESENCE } from "../../../store/cells.ts";
import type { EntityKey, ObjectStore, StoredRecord } from "../../../store/objects.ts";
import type { LoadedClass } from "../definitions/views.ts";
import { inPages } from "../reading/locate.ts";
import type { Unstored } from "../types.ts";
import { wholeId } from "../values/identity.ts";

/** A row that was written to an object that was not there. */
export interface WrittenRow {
  readonly key: EntityKey;
  readonly timeUs: number;
  /** Of what is known of the object: also its removal. */
  readonly lastUs: number;
  readonly expiresAtMs: number | undefined;
}

interface Looking {
  readonly view: LoadedClass;
  readonly store: ObjectStore;
  readonly nowMs: number;
}

/** Rows whose objects are not there after they were written: removed at their time or later, or ended by now. */
export async function unstoredRows(rows: readonly WrittenRow[], of: Looking): Promise<readonly Unstored[]> {
  const doubtful = rows.filter((row) => row.lastUs >= row.timeUs || isEnded(row, of));
  const found = await inPages(
    doubtful.map(({ key }) => key),
    (page) => of.store.get(page, PRESENCE),
  );
  return toldOf(
    doubtful.filter((_, at) => found[at] === undefined),
    of,
  );
}

/** The same of records. */
export async function unstoredRecords(records: readonly StoredRecord[], of: Looking): Promise<readonly Unstored[]> {
  const doubtful = records.filter((record) => record.rewrittenUs !== undefined || isEnded(record, of));
  const found = await inPages(doubtful, (page) => of.store.getRecords(page));
  return toldOf(
    doubtful.filter((_, at) => found[at] === undefined).map((record) => ({ ...record, key: record })),
    of,
  );
}

function toldOf(
  rows: readonly { readonly key: EntityKey; readonly expiresAtMs?: number | undefined }[],
  of: Looking,
): readonly Unstored[] {
  return rows.map((row) => ({ id: wholeId(of.view, row.key.id), reason: isEnded(row, of) ? "ended" : "removed" }));
}

function isEnded({ expiresAtMs = Infinity }: { readonly expiresAtMs?: number | undefined }, { nowMs }: Looking) {
  return expiresAtMs <= nowMs;
}
