import { entriesUnder } from "../store/entries.ts";
import { decodeStored, encodeJson } from "../store/format.ts";
import type { KvEntry, KvStore } from "../store/kv.ts";
import { putOnce } from "../store/once.ts";
import type { KeyRing } from "./key-ring.ts";
import { keyIdOf } from "./secret-box.ts";

/** Something that is kept and does not open without a key. */
export interface SealedItem {
  /** For people: which one it is. */
  readonly name: string;
  /** Ids of the keys it needs. */
  readonly keyIds: readonly string[];
  /**
   * Seals it with the key that seals now, unless it was changed since it was read: then it is false, and the change
   * stays. Absent: it ends by itself, and its key has to open until then.
   */
  readonly sealAnew?: () => Promise<boolean>;
}

/** One kind of sealed items of an area, as it states them in `Area.sealed`. */
export interface SealedKind {
  readonly name: string;
  /** All there is of a tenant, or with `installation` of all of them, in any order; `tenant` is empty then. */
  readonly all: (tenant: string) => AsyncIterable<SealedItem>;
  /** It lies in the system's store. */
  readonly installation?: true;
}

/** Answers the text to be stored in the place of this one. The first of the contexts that fits is meant. */
export type Exchange = (sealed: string, ...contexts: readonly [string, ...string[]]) => string;

export interface SealedForm<T> {
  readonly prefix: string;
  readonly secrets: Pick<KeyRing, "sealAnew">;
  /** The value of `key` with every sealed text exchanged, and nothing else changed. */
  readonly exchanged: (value: T, key: string, exchange: Exchange) => T;
}

/** The entries of a KvStore under a prefix that have sealed texts. What they hold beside these stays. */
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

/** Sealing gives another text each time, so that `putOnce` knows its own write. */
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
