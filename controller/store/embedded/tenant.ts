import { basename, join } from "node:path";
import { makeFolder, nodeFiles } from "../../files.ts";
import { storeDamaged } from "../damage.ts";
import type { TenantStore } from "../engine.ts";
import { KvSweep } from "../kv/sweep.ts";
import { EmbeddedBlobStore } from "./blobs/blobs.ts";
import type { EmbeddedRuntime } from "./runtime.ts";
import { hasEnvironment, openEnvironment } from "./environment/new-environment.ts";
import { EmbeddedKvStore } from "./kv/kv.ts";
import { EmbeddedObjectStore } from "./objects.ts";
import type { ReadTurns } from "./environment/read-turns.ts";
import { EmbeddedScrub } from "./upkeep/scrub.ts";

export interface EmbeddedTenant extends TenantStore {
  readonly kv: EmbeddedKvStore;
  readonly objects: EmbeddedObjectStore;
  readonly blobs: EmbeddedBlobStore;
  close(): Promise<void>;
}

/** A missing store that was once created is damaged: creating an empty one in its place would hide the loss. */
export async function requireStore(folder: string): Promise<void> {
  if (await hasEnvironment(environmentIn(folder))) return;
  throw storeDamaged(
    `The store in ${folder} is damaged: its file lmdb/data.mdb is missing. Restore the data folder from a backup.`,
  );
}

/** Opens the store of a tenant; creates it if it is missing. */
export async function openTenant(
  folder: string,
  { runtime, turns }: { readonly runtime: EmbeddedRuntime; readonly turns: ReadTurns },
): Promise<EmbeddedTenant> {
  await makeFolder(nodeFiles, folder);
  const env = await openEnvironment(environmentIn(folder), runtime.clock);
  const place = basename(folder);
  const inTurn = turns.of(place);
  const kv = new EmbeddedKvStore({ env, runtime, inTurn });
  const blobs = await EmbeddedBlobStore.open({ env, folder: join(folder, "blobs"), files: nodeFiles, runtime });
  const objects = new EmbeddedObjectStore({ env, runtime, inTurn, place, kv, blobs });
  await env.upgraded();
  await kv.open();
  const sweep = new KvSweep({ kv, runtime });
  return {
    kv,
    objects,
    blobs,
    scrub: new EmbeddedScrub({ env, objects, blobs, place, nowMs: () => runtime.clock.nowMs() }),
    async close() {
      await sweep.close();
      kv.close();
      await objects.close();
      await blobs.close();
      await env.close();
    },
  };
}

function environmentIn(folder: string): string {
  return join(folder, "lmdb");
}
