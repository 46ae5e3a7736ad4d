import { basename, join } from "node:path";
import { makeFolder, nodeFiles } from "../../files.ts";
import type { TenantStore } from "../engine.ts";
import { EmbeddedBlobStore } from "./blobs.ts";
import type { EmbeddedRuntime } from "./runtime.ts";
import { openEnvironment } from "./new-environment.ts";
import { EmbeddedKvStore } from "./kv.ts";
import { EmbeddedObjectStore } from "./objects.ts";

export interface EmbeddedTenant extends TenantStore {
  readonly kv: EmbeddedKvStore;
  readonly objects: EmbeddedObjectStore;
  readonly blobs: EmbeddedBlobStore;
  close(): Promise<void>;
}

export async function openTenant(folder: string, runtime: EmbeddedRuntime): Promise<EmbeddedTenant> {
  await makeFolder(nodeFiles, folder);
  const env = await openEnvironment(join(folder, "lmdb"), runtime.clock);
  const kv = new EmbeddedKvStore(env, runtime);
  const objects = new EmbeddedObjectStore({ env, runtime, place: basename(folder) });
  const blobs = await EmbeddedBlobStore.open({ env, folder: join(folder, "blobs"), files: nodeFiles, runtime });
  await env.upgraded();
  await kv.open();
  return {
    kv,
    objects,
    blobs,
    async close() {
      kv.close();
      await objects.close();
      await blobs.close();
      await env.close();
    },
  };
}
