import type { KvTxn } from "./kv.ts";

/**
 * Writes of the other seams in the commit of a change. If a condition of `kv` does not hold, nothing is written, and the
 * change ends with `AppError("conflict")`.
 */
export interface AlsoInCommit {
  readonly kv: KvTxn;
  /** A content of at most `BLOB_ROW_MAX_BYTES` with its digest, stored and marked as by `BlobStore.put`. */
  readonly content?: { readonly digest: string; readonly bytes: Uint8Array; readonly owner: string } | undefined;
  /** Called inside the commit if a condition does not hold. */
  unmet(): void;
  /** Called after an attempt that failed: it is unknown whether it was made, unless `unmet` was called. */
  failed(): void;
}
