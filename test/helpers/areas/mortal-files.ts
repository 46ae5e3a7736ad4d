import {
  filesArea,
  FileSearchService,
  FileService,
  type HistoryBounds,
} from "../../../controller/areas/files/index.ts";
import { ObjectService } from "../../../controller/areas/objects/index.ts";
import { visibleObjects } from "../../../controller/areas/query/index.ts";
import type { BlobStore } from "../../../controller/store/blobs.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import { Mortality, mortalStores } from "../engines/mortal.ts";
import { tagRuntime } from "../objects/tags.ts";
import { testPrincipal } from "../time/runtime.ts";
import { NO_TRAIL, type FileController } from "./files.ts";

/** A controller named `dying` that dies at one of its writes in each of its lives. */
export interface MortalFiles extends AsyncDisposable {
  /** Names of the streams that it has written. */
  readonly streams: Set<string>;
  /**
   * Begins the work in a life of this length; then the heir finishes what is open. Returns true if the controller died
   * before the work ended.
   */
  dies(
    mortality: Mortality,
    work: (files: FileService, search: FileSearchService) => Promise<unknown>,
  ): Promise<boolean>;
}

/** `heir` knows that the controller `dying` has gone. */
export async function mortalFiles(engine: Stores, heir: FileController, history?: HistoryBounds): Promise<MortalFiles> {
  let mortality = new Mortality(Infinity, false);
  const streams = new Set<string>();
  const { keys, data } = mortalStores(engine, () => mortality);
  const runtime = tagRuntime();
  const objects = new ObjectService({ visible: visibleObjects, stores: data, runtime });
  for (const definition of filesArea(heir.files, heir.search, NO_TRAIL).classes ?? [])
    objects.registerSystemClass(definition);
  await objects.catalog(testPrincipal());
  const stores: Stores = {
    system: () => engine.system(),
    tenant: async (name) => {
      const store = await keys.tenant(name);
      return { ...store, blobs: noted(mortality.mortal(store.blobs), streams) };
    },
  };
  return {
    streams,
    async dies(life, work) {
      mortality = life;
      const dying = { stores, objects, runtime, controllers: { own: "dying", has: () => true } };
      const search = new FileSearchService(dying);
      const files = new FileService({ ...dying, keeper: search, history });
      const isDead = await Promise.race([work(files, search).then(() => false), life.died.then(() => true)]);
      if (!isDead) return false;
      await heir.files.maintain("matrix");
      await heir.files.settled();
      await heir.files.archives.maintain("matrix");
      await heir.search.maintain("matrix");
      await heir.search.settled();
      return true;
    },
    [Symbol.asyncDispose]: () => objects.close(),
  };
}

function noted(blobs: BlobStore, streams: Set<string>): BlobStore {
  const append: BlobStore["append"] = (stream, ...given) => {
    streams.add(stream);
    return blobs.append(stream, ...given);
  };
  return new Proxy(blobs, {
    get: (target, name) => (name === "append" ? append : (Reflect.get(target, name) as unknown)),
  });
}
