import { VERSIONS_ENDED_MAX } from "../../../../common/limits.ts";
import { decodeStored, encodePacked } from "../../format.ts";
import type { EntityChange, EntityKey, EntityVersion, Page, PageRequest, TimeRangeUs } from "../../objects.ts";
import { Cursors } from "../cursor.ts";
import type { Environment } from "../environment/environment.ts";
import type { Expiry } from "../environment/expiry.ts";
import { compareBytes, concat, following, prefixEnd, readU64Descending, u64Descending } from "../bytes/keys.ts";
import { EXPIRY_KINDS, historyKey, ownerPrefix } from "../bytes/object-keys.ts";

/** `expiresAtMs` 0: the version never expires. */
type Packed = readonly [value: Uint8Array, expiresAtMs: number, stays?: true];

/** Versions kept with changes, newest first. */
export class History {
  readonly #env: Environment;
  readonly #expiry: Expiry;

  constructor(env: Environment, expiry: Expiry) {
    this.#env = env;
    this.#expiry = expiry;
  }

  /** Call it inside a write transaction. `forgottenUs`: versions up to this time are not kept. */
  apply(change: EntityChange, forgottenUs: number): void {
    if (change.forgetHistory) this.#forget(change.key, forgottenUs);
    if (change.version !== undefined && change.timeUs > forgottenUs) this.#keep(change, change.version);
    if (change.endVersionsAtMs !== undefined) this.#end(change, Math.ceil(change.endVersionsAtMs));
  }

  #keep(change: EntityChange, version: Uint8Array): void {
    const key = historyKey(change.key, change.timeUs);
    const stored = this.#env.tables.history.get(key);
    const current = stored === undefined ? undefined : decodeStored<Packed>(stored);
    if (current !== undefined && compareBytes(version, current[0]) <= 0) return;
    const expiresAtMs = Math.ceil(change.versionExpiresAtMs ?? change.expiresAtMs ?? 0);
    this.#put(key, change.versionStays ? [version, expiresAtMs, true] : [version, expiresAtMs], current);
  }

  #end({ key, timeUs }: EntityChange, atMs: number): void {
    const start = following(historyKey(key, timeUs));
    const range = { start, end: prefixEnd(ownerPrefix(key))!, limit: VERSIONS_ENDED_MAX };
    for (const row of [...this.#env.tables.history.rows(range)]) {
      const current = decodeStored<Packed>(row.value);
      const [value, expiresAtMs, stays] = current;
      if (!stays && (expiresAtMs === 0 || expiresAtMs > atMs))
        this.#put(row.key, [value, atMs], current, row.isSound !== false);
    }
  }

  #put(key: Uint8Array, packed: Packed, before: Packed | undefined, isSound = true): void {
    this.#env.tables.history.put(key, encodePacked(packed), isSound);
    if (before !== undefined && before[1] > 0) this.#expiry.remove(before[1], EXPIRY_KINDS.version, key);
    if (packed[1] > 0) this.#expiry.add(packed[1], EXPIRY_KINDS.version, key);
  }

  /** Call it inside a write transaction. */
  visit(key: Uint8Array, atMs: number): void {
    const stored = this.#env.tables.history.get(key);
    if (stored !== undefined && decodeStored<Packed>(stored)[1] === atMs) this.#env.tables.history.remove(key);
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
    for (const doomed of keys) this.#env.tables.history.remove(doomed);
  }
}
