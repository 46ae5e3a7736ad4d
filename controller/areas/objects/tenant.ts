import { KeyedQueue } from "../../../common/keyed-queue.ts";
import type { Runtime } from "../../runtime.ts";
import type { TenantStore } from "../../store/engine.ts";
import { Retry } from "../../store/calls/retry.ts";
import { retrying } from "../../store/calls/retrying.ts";
import { Changes } from "./changes/changes.ts";
import { TenantCatalog } from "./definitions/catalog.ts";
import { TriggerVersions } from "./definitions/triggerversions.ts";
import { ensureRoot, ensureSystemClass } from "./definitions/classchanges.ts";
import { Indexer } from "./indexing/indexer.ts";
import { IndexPasses } from "./indexing/indexpasses.ts";
import { ObjectReader } from "./reading/reader.ts";
import type { SystemClass } from "./definitions/system-class.ts";
import { EdgeEndings, type EndingJournal } from "./writing/edges/endings.ts";
import { ObjectTurns } from "./writing/turns/turns.ts";
import { ObjectRemover } from "./writing/remover.ts";
import { StateRestorer } from "./writing/restorer.ts";
import { Reindexing } from "./writing/reindexing.ts";
import { ObjectWriter } from "./writing/writer.ts";
import { Writing } from "./writing/writing.ts";

/**
 * A change of definitions must fit into one transaction of the key-value store, including the parent classes that it
 * makes.
 */
const SYSTEM_CLASSES_PER_CHANGE = 20;

export interface TenantObjects {
  /** The store; its operations are retried. */
  readonly store: TenantStore;
  readonly catalog: TenantCatalog;
  readonly writer: ObjectWriter;
  readonly reindexing: Reindexing;
  readonly remover: ObjectRemover;
  readonly restorer: StateRestorer;
  readonly reader: ObjectReader;
  readonly indexer: Indexer;
  readonly changes: Changes;
  readonly versions: TriggerVersions;
  readonly endings: EdgeEndings;
  /** Drops of classes, by path: one attempt after the other. */
  readonly drops: KeyedQueue;
}

export interface OpenTenantOptions {
  readonly tenant: string;
  readonly store: TenantStore;
  readonly runtime: Runtime;
  readonly ospace: string;
  readonly systemClasses: readonly SystemClass[];
  readonly endings: EndingJournal;
}

/** Follows the tenant's definitions and makes its root and system classes before the first call. */
export async function openTenantObjects(options: OpenTenantOptions): Promise<TenantObjects> {
  const { tenant, runtime, ospace, systemClasses } = options;
  const retry = new Retry(runtime);
  const store = { ...options.store, objects: retrying(options.store.objects, retry) };
  const owners = new Map(systemClasses.map((definition) => [ospace + definition.path, definition]));
  const catalog = new TenantCatalog({ kv: store.kv, runtime, owners });
  await retry.run(() => catalog.open());
  try {
    await catalog.change((draft) => ensureRoot(draft, ospace));
    await ensureAll(catalog, [...owners], ospace);
  } catch (error) {
    await catalog.close();
    throw error;
  }
  const parts = { store: store.objects, runtime };
  const endings = new EdgeEndings({ ...parts, tenant, catalog, journal: options.endings });
  const writing = new Writing({
    ...parts,
    endings,
    turns: new ObjectTurns({ kv: store.kv, runtime, retry }),
    number: () => catalog.followerNumber,
  });
  const reindexing = new Reindexing(writing);
  const indexer = new Indexer({ ...parts, catalog, reindexing, passes: new IndexPasses(store.kv, retry) });
  indexer.start();
  const versions = new TriggerVersions({ kv: store.kv, clock: runtime.clock, retry });
  const changes = new Changes({ tenant, store, runtime, retry, catalog });
  return {
    store,
    catalog,
    indexer,
    changes,
    versions,
    endings,
    reindexing,
    writer: new ObjectWriter(writing),
    remover: new ObjectRemover(writing),
    restorer: new StateRestorer(writing),
    reader: new ObjectReader(parts),
    drops: new KeyedQueue(),
  };
}

async function ensureAll(
  catalog: TenantCatalog,
  classes: readonly (readonly [string, SystemClass])[],
  ospace: string,
): Promise<void> {
  for (let from = 0; from < classes.length; from += SYSTEM_CLASSES_PER_CHANGE) {
    await catalog.change((draft) => {
      for (const [path, definition] of classes.slice(from, from + SYSTEM_CLASSES_PER_CHANGE))
        ensureSystemClass(draft, definition, { path, ospace });
    });
  }
}
