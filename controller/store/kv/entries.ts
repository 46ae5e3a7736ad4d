import type { KvEntry, KvStore } from "../kv.ts";

/** Every entry whose key begins with `prefix`, in byte order of keys, read page by page on demand. */
export async function* entriesUnder(kv: Pick<KvStore, "list">, prefix: string): AsyncGenerator<KvEntry> {
  let after: string | undefined;
  do {
    const page = await kv.list(prefix, after === undefined ? {} : { after });
    yield* page.entries;
    after = page.next;
  } while (after !== undefined);
}
