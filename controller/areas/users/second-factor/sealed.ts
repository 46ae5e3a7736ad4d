import { sealedUnder, type KeyRing, type SealedKind } from "../../../secrets/index.ts";
import type { Stores } from "../../../store/engine.ts";
import { FACTORS, type FactorRecord } from "./store.ts";
import { factorContext } from "./second-factor.ts";

/** The stored secrets of second factors. */
export function sealedUsers(stores: Stores, secrets: Pick<KeyRing, "sealAnew">): readonly SealedKind[] {
  return [
    {
      name: "second factors",
      async *all(tenant) {
        yield* sealedUnder<FactorRecord>((await stores.tenant(tenant)).kv, {
          prefix: FACTORS,
          secrets,
          exchanged: (factor, key, exchange) => ({
            ...factor,
            sealed: exchange(factor.sealed, factorContext({ tenant, id: key.slice(FACTORS.length) })),
          }),
        });
      },
    },
  ];
}
