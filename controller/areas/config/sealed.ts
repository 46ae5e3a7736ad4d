import { sealedUnder, type KeyRing, type SealedKind } from "../../secrets/index.ts";
import type { Stores } from "../../store/engine.ts";
import { keyOf, keyOfSlot, sealContext, SLOTS, VALUES, type Version } from "./stored.ts";

/** Secret values and their versions. Entries that are plain texts, from before versions existed, are never secret. */
export function sealedConfig(stores: Stores, secrets: Pick<KeyRing, "sealAnew">): readonly SealedKind[] {
  const kind = (name: string, prefix: string, nameOf: (stored: string) => string): SealedKind => ({
    name,
    async *all(tenant) {
      const { kv } = await stores.tenant(tenant);
      yield* sealedUnder<Version | string>(kv, {
        prefix,
        secrets,
        exchanged: (value, stored, exchange) =>
          typeof value === "string" || value.sealed === undefined
            ? value
            : { ...value, sealed: exchange(value.sealed, sealContext(tenant, nameOf(stored))) },
      });
    },
  });
  return [kind("configuration", VALUES, keyOf), kind("versions of configuration", SLOTS, keyOfSlot)];
}
