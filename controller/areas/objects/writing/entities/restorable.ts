import { mapLimited } from "../../../../../common/concurrency.ts";
import { HISTORY_READS_IN_FLIGHT_MAX } from "../../../../../common/limits.ts";
import { latestVersions, type HistorySource } from "../../history/history.ts";
import type { LoadedClass } from "../../definitions/views.ts";
import type { IngestOptions } from "../../types.ts";
import { wholeId } from "../../values/identity.ts";
import type { CheckedRow } from "../../values/rows.ts";
import type { Traces } from "./recreated.ts";
import { wholeRow } from "./wholerows.ts";

interface Restoring extends HistorySource {
  readonly later: NonNullable<IngestOptions["restored"]>;
}

/** Reports the objects that were written or removed later than their rows. Returns the rows of the other objects. */
export async function restorable(
  { view, rows }: { readonly view: LoadedClass; readonly rows: readonly CheckedRow[] },
  traces: Traces,
  { later, ...source }: Restoring,
): Promise<readonly CheckedRow[]> {
  const versionsUs = await latestVersions(
    rows.map(({ key }) => ({ view, key: { cid: view.cid, id: key } })),
    source,
  );
  const dated = rows.map((row, at) => {
    const versionUs = versionsUs[at] ?? 0;
    const isLater = Math.max(traces.get(row.key)?.lastUs ?? 0, versionUs) > (row.writeUs ?? Infinity);
    return { isLater, row: { ...row, hasVersion: versionUs > 0 && versionUs === row.writeUs } };
  });
  later(dated.flatMap(({ isLater, row }) => (isLater ? [wholeId(view, row.key)] : [])));
  const standing = dated.flatMap(({ isLater, row }) => (isLater ? [] : [row]));
  return mapLimited(standing, HISTORY_READS_IN_FLIGHT_MAX, (row) =>
    wholeRow(row, { view, entity: traces.get(row.key)?.entity, ...source }),
  );
}
