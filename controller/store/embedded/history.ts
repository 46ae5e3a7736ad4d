import { decodeStored, encodePacked } from "../format.ts";
import type { EntityChange, EntityKey, EntityVersion, Page, PageRequest, TimeRangeUs } from "../objects.ts";
import { Cursors } from "./cursor.ts";
import type { Environment } from "./environment.ts";
import type { Expiry } from "./expiry.ts";
import { compareBytes, concat, following, prefixEnd, readU64Descending, u64Descending } from "./keys.ts";
import { EXPIRY_KINDS, historyKey, ownerPrefix } from "./object-keys.ts";

type Packed = readonly [value: Uint8Array, expiresAtMs: number];

/** Versions kept with changes, newest first. */
export class History {
  readonly #env: Environment;
  readonly #expiry: Expiry;

  constructor(env: Environment, expiry: Expiry) {
    this.#env = env;
    this.#expiry = expiry;
  }

  /** Inside a write transaction. `forgottenUs`: versions up to this time are not kept. */
  apply(change: EntityChange, forgottenUs: number): void {
    if (change.forgetHistory) this.#forget(change.key, forgottenUs);
    if (change.version === undefined || change.timeUs <= forgottenUs) return;
    const key = historyKey(change.key, change.timeUs);
    const stored = this.#env.tables.history.get(key);
    const current = stored === undefined ? undefined : decodeStored<Packed>(stored);
    if (current !== undefined && compareBytes(change.version, current[0]) <= 0) return;
    const expiresAtMs = Math.ceil(change.expiresAtMs ?? 0);
    void this.#env.tables.history.put(key, encodePacked([change.version, expiresAtMs] satisfies Packed));
    if (current !== undefined && current[1] > 0) this.#expiry.remove(current[1], EXPIRY_KINDS.version, key);
    if (expiresAtMs > 0) this.#expiry.add(expiresAtMs, EXPIRY_KINDS.version, key);
  }

  /** Inside a write transaction. */
  visit(key: Uint8Array, atMs: number): void {
    const stored = this.#env.tables.history.get(key);
    if (stored !== undefined && decodeStored<Packed>(stored)[1] === atMs) void this.#env.tables.history.remove(key);
  }

  read(
    key: EntityKey,
    range: TimeRangeUs,
    options: { readonly page: PageRequest; readonly nowMs: number; readonly place: string },
  ): Page<EntityVersion> {
    const { page, nowMs, place } = options;
    const cursors = new Cursors([place, "history", key.cid, key.id, range.fromUs ?? null, range.toUs ?? null]);
    const after = cursors.read(page);
    const prefix = ownerPrefix(key);
    const newest = range.toUs === undefined ? prefix : concat(prefix, u64Descending(Math.max(0, range.toUs)));
    const end =
      range.fromUs === undefined
        ? prefixEnd(prefix)!
        : following(concat(prefix, u64Descending(Math.max(0, range.fromUs))));
    const rows = [
      ...this.#env
        .read()
        .history.getRange({ start: after === undefined ? newest : following(after), end, limit: page.limit }),
    ];
    const items = rows
      .map((row) => ({ timeUs: readU64Descending(row.key, prefix.length), packed: decodeStored<Packed>(row.value) }))
      .filter(({ packed }) => packed[1] === 0 || packed[1] > nowMs)
      .map(({ timeUs, packed }) => ({ timeUs, value: new Uint8Array(packed[0]) }));
    return rows.length < page.limit ? { items } : { items, cursor: cursors.write(rows.at(-1)!.key) };
  }

  #forget(key: EntityKey, forgottenUs: number): void {
    const prefix = ownerPrefix(key);
    const keys = [
      ...this.#env.tables.history.getKeys({
        start: concat(prefix, u64Descending(forgottenUs)),
        end: prefixEnd(prefix)!,
      }),
    ];
    for (const doomed of keys) void this.#env.tables.history.remove(doomed);
  }
}
