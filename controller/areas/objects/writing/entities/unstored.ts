import { PRESENCE } from "../../../../store/cells.ts";
import type { EntityKey, ObjectStore, StoredRecord } from "../../../../store/objects.ts";
import type { LoadedClass } from "../../definitions/views.ts";
import { inPages } from "../../reading/locate.ts";
import type { Unstored } from "../../types.ts";
import type { ComposedWrite } from "../../values/compose.ts";
import { wholeId } from "../../values/identity.ts";
import type { Traces } from "./recreated.ts";

/** A written row whose object did not exist before. */
export interface WrittenRow {
  readonly key: EntityKey;
  readonly timeUs: number;
  /** Latest known write or removal of the object. */
  readonly lastUs: number;
  readonly expiresAtMs: number | undefined;
}

const NONE: readonly Unstored[] = [];

interface Looking {
  readonly view: LoadedClass;
  readonly store: ObjectStore;
  readonly nowMs: number;
}

/** The written rows whose objects did not exist before. */
export function madeAnew(composed: readonly ComposedWrite[], traces: Traces): readonly WrittenRow[] {
  const anew: WrittenRow[] = [];
  for (const { change } of composed) {
    const { key, timeUs, endsAtMs: expiresAtMs } = change;
    const trace = traces.get(key.id);
    if (trace?.entity === undefined) anew.push({ key, timeUs, expiresAtMs, lastUs: trace?.lastUs ?? 0 });
  }
  return anew;
}

/**
 * Finds the rows whose objects do not exist after the write: they were removed at its time or later, or their ttl is
 * over. Rows whose ttl is over are not read.
 */
export async function unstoredRows(rows: readonly WrittenRow[], of: Looking): Promise<readonly Unstored[]> {
  const get = (keys: readonly EntityKey[]): Promise<readonly unknown[]> => of.store.get(keys, PRESENCE);
  return unstored(rows, (row) => row.lastUs >= row.timeUs, { ...of, get });
}

/** Does the same for records. */
export async function unstoredRecords(records: readonly StoredRecord[], of: Looking): Promise<readonly Unstored[]> {
  const rows = records.map((record) => ({ ...record, key: record }));
  const get = (keys: readonly EntityKey[]): Promise<readonly unknown[]> => of.store.getRecords(keys);
  return unstored(rows, (row) => row.rewrittenUs !== undefined, { ...of, get });
}

async function unstored<R extends { readonly key: EntityKey; readonly expiresAtMs?: number | undefined }>(
  rows: readonly R[],
  isDoubtful: (row: R) => boolean,
  of: Looking & { readonly get: (keys: readonly EntityKey[]) => Promise<readonly unknown[]> },
): Promise<readonly Unstored[]> {
  const isEnded = ({ expiresAtMs = Infinity }: R): boolean => expiresAtMs <= of.nowMs;
  if (!rows.some((row) => isEnded(row) || isDoubtful(row))) return NONE;
  const doubtful = rows.filter((row) => !isEnded(row) && isDoubtful(row));
  const found = await inPages(
    doubtful.map(({ key }) => key),
    of.get,
  );
  const removed = new Set(doubtful.filter((_, at) => found[at] === undefined));
  const removal = of.view.options.version ? "history" : "removed";
  return rows.flatMap((row): Unstored[] => {
    const reason = isEnded(row) ? "ended" : removed.has(row) ? removal : undefined;
    return reason === undefined ? [] : [{ id: wholeId(of.view, row.key.id), reason }];
  });
}
