import type { Stores } from "../../../controller/store/engine.ts";
import { entriesUnder } from "../../../controller/store/kv/entries.ts";

/** The keys of the tenant `matrix` that begin with the prefix. */
export async function keysUnder(stores: Stores, prefix: string): Promise<readonly string[]> {
  const { kv } = await stores.tenant("matrix");
  const found: string[] = [];
  for await (const { key } of entriesUnder(kv, prefix)) found.push(key);
  return found;
}
