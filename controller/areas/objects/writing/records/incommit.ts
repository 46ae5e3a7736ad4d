import { checkRecord } from "../../../../store/checks.ts";
import type { AlsoInCommit } from "../../../../store/also-in-commit.ts";
import type { RecordsInCommit, StoredRecord } from "../../../../store/objects.ts";
import { covers } from "../../definitions/subscriptions.ts";
import type { Snapshot } from "../../definitions/snapshot.ts";
import type { LoadedClass } from "../../definitions/views.ts";
import type { InCommit, NewRecord } from "../../types.ts";
import { RepeatableIds } from "../../values/identity.ts";
import { recordOf } from "../../values/records.ts";
import { checkRecordRow } from "../../values/rows.ts";
import type { BeforeTriggers } from "../beforetriggers.ts";

/** Records for the commit of one write. */
export interface WriteInCommit extends RecordsInCommit {
  /** Without an error: the write succeeded. */
  ended(error?: unknown): void;
}

interface Definitions {
  readonly snapshot: Snapshot;
  readonly triggers: BeforeTriggers | undefined;
}

/**
 * `undefined` if a trigger or a subscription wants records of that class: these need more than one write. The caller
 * then writes the records by `ingest`.
 */
export function writeInCommit(inCommit: InCommit, { snapshot, triggers }: Definitions): WriteInCommit | undefined {
  const view = snapshot.get(inCommit.class);
  if (view?.kind !== "record" || triggers?.has(view)) return undefined;
  for (const subscription of snapshot.definitions.subscriptions.values())
    if (covers(subscription, view.path)) return undefined;
  const encode = (rows: readonly NewRecord[]): readonly StoredRecord[] => encoded(view, snapshot, rows);
  return {
    records: () => inCommit.records(encode),
    failed: () => inCommit.failed(),
    ended: (error) => inCommit.ended(error),
  };
}

/** The context of a write with the writes of other seams that the caller gives for its commit. */
export function withAlso<C extends { readonly inCommit?: WriteInCommit | undefined }>(
  context: C,
  also: AlsoInCommit | undefined,
): C {
  return also === undefined ? context : { ...context, inCommit: { ...(context.inCommit ?? NO_RECORDS), also } };
}

const NO_RECORDS: WriteInCommit = { records: () => [], failed: () => undefined, ended: () => undefined };

/** Makes the write and reports its end. */
export async function together(
  inCommit: WriteInCommit,
  write: (inCommit: RecordsInCommit) => Promise<void>,
): Promise<void> {
  try {
    await write(inCommit);
  } catch (error) {
    inCommit.ended(error);
    throw error;
  }
  inCommit.ended();
}

function encoded(view: LoadedClass, snapshot: Snapshot, rows: readonly NewRecord[]): readonly StoredRecord[] {
  const ids = new RepeatableIds();
  return rows.map((record) => {
    const row = checkRecordRow(view, snapshot, record.values);
    const stored = recordOf(view, ids.ulid(record), row, record.marked);
    checkRecord(stored);
    return stored;
  });
}
