import { ULID_ORDINALS_MAX } from "../../../common/ids.ts";
import type { Row } from "../../../common/value.ts";
import type { NewRecord } from "../objects/index.ts";
import type { AuditRecord } from "./chain.ts";

/** The entry as a row of the class of the trail. The same entry always gets the same id. */
export function rowOf(record: AuditRecord): NewRecord {
  return { values: valuesOf(record), timeMs: record.timeMs, ...placeOf(record) };
}

/** Within one run and millisecond, ids have the order of the entries. */
function placeOf({ run, sequence }: AuditRecord): { readonly identity: string; readonly ordinal: number } {
  return {
    identity: `${run}/${String(Math.floor(sequence / ULID_ORDINALS_MAX))}`,
    ordinal: sequence % ULID_ORDINALS_MAX,
  };
}

function valuesOf(record: AuditRecord): Row {
  const { user, permission, action, object, outcome, code, remote, traceparent } = record;
  const { run, sequence, previous, hash } = record;
  return { user, permission, action, object, outcome, code, remote, traceparent, run, sequence, previous, hash };
}
