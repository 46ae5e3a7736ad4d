import type { Row } from "../../../common/value.ts";
import { keyIdOf, sealedUnder, type KeyRing, type SealedItem, type SealedKind } from "../../secrets/index.ts";
import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { decodeStored } from "../../store/format.ts";
import type { ObjectService, Unrestricted } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { AUTHORITY, type StoredAuthority } from "./authority/authority.ts";
import { credentialContexts } from "./ssh/destination.ts";
import { classPath, recordOf, secretContext, type HostRecord } from "./store.ts";
import { TOKENS, type StoredToken } from "./tokens/store.ts";

export interface SealedHostsDependencies {
  readonly stores: Stores;
  readonly objects: Pick<ObjectService, "exchangeSealed"> & Unrestricted<"read">;
  readonly secrets: Pick<KeyRing, "sealAnew">;
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
  /** Finishes changes of hosts that are not in the records yet, because their secrets are sealed as well. */
  readonly finish: (tenant: string) => Promise<void>;
}

/** Sealed secrets: credentials of hosts, the key of the agents' authority, and join tokens, which expire. */
export function sealedHosts(dependencies: SealedHostsDependencies): readonly SealedKind[] {
  const { stores, secrets } = dependencies;
  return [
    { name: "hosts", all: (tenant) => hostItems(dependencies, tenant) },
    {
      name: "authority",
      installation: true,
      async *all() {
        yield* sealedUnder<StoredAuthority>((await stores.system()).kv, {
          prefix: AUTHORITY,
          secrets,
          exchanged: (stored, _, exchange) => ({ ...stored, key: exchange(stored.key, AUTHORITY) }),
        });
      },
    },
    {
      name: "join tokens",
      installation: true,
      async *all() {
        for await (const { key, value } of entriesUnder((await stores.system()).kv, TOKENS))
          yield { name: key, keyIds: [decodeStored<StoredToken>(value).keyId] };
      },
    },
  ];
}

async function* hostItems(
  { objects, secrets, actAs, finish }: SealedHostsDependencies,
  tenant: string,
): AsyncGenerator<SealedItem> {
  await finish(tenant);
  const principal = await actAs(tenant, "");
  const ofClass = { class: classPath(principal), subtree: false, where: [] };
  for await (const rows of objects.unrestricted.read(principal, ofClass)) {
    for (const row of rows) {
      const record = recordOf(row);
      const texts = [record.secret ?? [], Object.values(record.credentials)].flat();
      const keyIds = [...new Set(texts.map((text) => keyIdOf(text) ?? ""))];
      const again = (values: Row): Row => sealedAnew({ ...row, values }, { tenant, secrets });
      if (keyIds.length > 0)
        yield {
          name: record.id,
          keyIds,
          sealAnew: () => objects.exchangeSealed(principal, { id: row.id, class: row.class.path }, again),
        };
    }
  }
}

function sealedAnew(
  row: Parameters<typeof recordOf>[0],
  { tenant, secrets }: { readonly tenant: string; readonly secrets: Pick<KeyRing, "sealAnew"> },
): Row {
  const record: HostRecord = recordOf(row);
  const { secret, credentials } = record;
  const entries = Object.entries(credentials).map(([name, text]) => [
    name,
    secrets.sealAnew(text, credentialContexts(name, tenant, record)),
  ]);
  return {
    ...row.values,
    ...(secret !== undefined && { secret: secrets.sealAnew(secret, [secretContext(tenant, record.host, "secret")]) }),
    credentials: Object.fromEntries(entries) as Record<string, string>,
  };
}
