import { entriesUnder } from "../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../store/format.ts";
import type { KvEntry, KvStore } from "../store/kv.ts";
import { putOnce } from "../store/once.ts";
import type { KeyRing } from "./key-ring.ts";
import { keyIdOf } from "./secret-box.ts";

/** A stored item that cannot be read without keys. */
export interface SealedItem {
  /** Name of the item in messages. */
  readonly name: string;
  /** Ids of the keys with which its texts are sealed. */
  readonly keyIds: readonly string[];
  /**
   * Seals the item with the current key. Returns false and writes nothing if the item was changed since it was read.
   * Absent: the item expires by itself, and its key must open until then.
   */
  readonly sealAnew?: () => Promise<boolean>;
}

/** One kind of sealed items of an area, as it states them in `Area.sealed`. */
export interface SealedKind {
  readonly name: string;
  /** All items of a tenant, in any order. With `installation`: of the whole installation, and `tenant` is empty. */
  readonly all: (tenant: string) => AsyncIterable<SealedItem>;
  /** The items are in the store of the installation. */
  readonly installation?: true;
}

/** Returns the text to store instead of this one. The text belongs to the first of the contexts that opens it. */
export type Exchange = (sealed: string, ...contexts: readonly [string, ...string[]]) => string;

export interface SealedForm<T> {
  readonly prefix: string;
  readonly secrets: Pick<KeyRing, "sealAnew">;
  /** Returns the value of `key` with every sealed text exchanged, and nothing else changed. */
  readonly exchanged: (value: T, key: string, exchange: Exchange) => T;
}

/** The entries of a KvStore under a prefix that have sealed texts. `sealAnew` keeps the other data of an entry. */
export async function* sealedUnder<T>(kv: KvStore, form: SealedForm<T>): AsyncGenerator<SealedItem> {
  for await (const entry of entriesUnder(kv, form.prefix)) {
    const value = decodeStored<T>(entry.value);
    const keyIds = new Set<string>();
    form.exchanged(value, entry.key, (sealed) => {
      keyIds.add(keyIdOf(sealed) ?? "");
      return sealed;
    });
    if (keyIds.size > 0)
      yield { name: entry.key, keyIds: [...keyIds], sealAnew: () => sealAnew(kv, form, { ...entry, decoded: value }) };
  }
}

/** Each sealing gives a different text, so `putOnce` recognizes its own write. */
async function sealAnew<T>(
  kv: KvStore,
  { exchanged, secrets }: SealedForm<T>,
  { key, revision, expiresAtMs, decoded }: KvEntry & { readonly decoded: T },
): Promise<boolean> {
  const value = exchanged(decoded, key, (sealed, ...contexts) => secrets.sealAnew(sealed, contexts));
  const put = {
    key,
    value: encodeJson(value),
    ifRevision: revision,
    ...(expiresAtMs !== undefined && { expiresAtMs }),
  };
  return (await putOnce(kv, put)).ok;
}
