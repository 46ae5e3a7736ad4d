import { basename, join } from "node:path";
import { makeFolder, nodeFiles, syncFolder } from "../../files.ts";
import type { TenantStore } from "../engine.ts";
import { EmbeddedBlobStore } from "./blobs.ts";
import type { EmbeddedRuntime } from "./runtime.ts";
import { Environment } from "./environment.ts";
import { EmbeddedKvStore } from "./kv.ts";
import { EmbeddedObjectStore } from "./objects.ts";

export interface EmbeddedTenant extends TenantStore {
  readonly kv: EmbeddedKvStore;
  readonly objects: EmbeddedObjectStore;
  readonly blobs: EmbeddedBlobStore;
  close(): Promise<void>;
}

export async function openTenant(folder: string, runtime: EmbeddedRuntime): Promise<EmbeddedTenant> {
  const lmdb = join(folder, "lmdb");
  await makeFolder(nodeFiles, lmdb);
  const env = new Environment(lmdb, runtime.clock);
  // The library syncs what is in its file, not the file's name.
  await syncFolder(nodeFiles, lmdb);
  const kv = new EmbeddedKvStore(env, runtime);
  const objects = new EmbeddedObjectStore({ env, runtime, place: basename(folder) });
  const blobs = await EmbeddedBlobStore.open({ env, folder: join(folder, "blobs"), files: nodeFiles, runtime });
  await env.upgraded();
  await kv.open();
  return {
    kv, objects, blobs,
    async close() {
      kv.close();
      await objects.close();
      await blobs.close();
      await env.close();
    },
  };
}
