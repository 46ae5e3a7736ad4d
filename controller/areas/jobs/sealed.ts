import { keyIdOf, sealedUnder, type KeyRing, type SealedItem, type SealedKind } from "../../secrets/index.ts";
import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { decodeStored } from "../../store/format.ts";
import { EXECUTIONS } from "./runs/executions.ts";
import { passwordContext } from "./groups/secrets.ts";
import { GROUPS, type StoredGroup } from "./groups/store.ts";
import { OPEN_RUNS, type RunOrder } from "./runs/open-runs.ts";

/** Sealed passwords of groups, and sealed parameters of unfinished runs. The parameters are removed with their run. */
export function sealedJobs(stores: Stores, secrets: Pick<KeyRing, "sealAnew">): readonly SealedKind[] {
  return [
    {
      name: "groups of hosts",
      async *all(tenant) {
        yield* sealedUnder<StoredGroup>((await stores.tenant(tenant)).kv, {
          prefix: GROUPS,
          secrets,
          exchanged: (group, _, exchange) => ({
            ...group,
            hosts: group.hosts.map((host) =>
              host.sealed === undefined
                ? host
                : { ...host, sealed: exchange(host.sealed, passwordContext({ tenant, group }, host)) },
            ),
          }),
        });
      },
    },
    {
      name: "runs",
      async *all(tenant) {
        for (const prefix of [EXECUTIONS, OPEN_RUNS]) yield* runsUnder(stores, tenant, prefix);
      },
    },
  ];
}

async function* runsUnder(stores: Stores, tenant: string, prefix: string): AsyncGenerator<SealedItem> {
  for await (const { key, value } of entriesUnder((await stores.tenant(tenant)).kv, prefix)) {
    const { order } = decodeStored<{ readonly order: Pick<RunOrder, "sealed"> }>(value);
    yield { name: key, keyIds: [keyIdOf(order.sealed) ?? ""] };
  }
}
