import type { Runtime } from "../../runtime.ts";
import type { TenantStore } from "../../store/engine.ts";
import { TenantCatalog } from "./catalog.ts";
import { Changes } from "./changes.ts";
import { ensureRoot, ensureSystemClass } from "./classchanges.ts";
import { Indexer } from "./indexer.ts";
import { IndexPasses } from "./indexpasses.ts";
import { Patience } from "./patience.ts";
import { KeyedQueue } from "./queue.ts";
import { ObjectReader } from "./reader.ts";
import { ObjectRemover } from "./remover.ts";
import type { SystemClass } from "./types.ts";
import { ObjectWriter } from "./writer.ts";
import { Writing } from "./writing.ts";

/** A change of definitions must fit one transaction of the key-value store, with the parents it makes. */
const SYSTEM_CLASSES_PER_CHANGE = 20;

export interface TenantObjects {
  readonly store: TenantStore;
  readonly catalog: TenantCatalog;
  readonly writer: ObjectWriter;
  readonly remover: ObjectRemover;
  readonly reader: ObjectReader;
  readonly patience: Patience;
  readonly indexer: Indexer;
  readonly changes: Changes;
  /** Classes are dropped one attempt after the other, by path. */
  readonly drops: KeyedQueue;
}

export interface OpenTenantOptions {
  readonly tenant: string;
  readonly store: TenantStore;
  readonly runtime: Runtime;
  readonly ospace: string;
  readonly systemClasses: readonly SystemClass[];
}

/** Follows the tenant's definitions, makes its root and system classes, and only then lets anybody in. */
export async function openTenantObjects(options: OpenTenantOptions): Promise<TenantObjects> {
  const { tenant, store, runtime, ospace, systemClasses } = options;
  const owners = new Map(systemClasses.map((definition) => [ospace + definition.path, definition]));
  const catalog = new TenantCatalog({ kv: store.kv, runtime, owners });
  const patience = new Patience(runtime);
  await patience.repeat(() => catalog.open());
  try {
    await catalog.change((draft) => ensureRoot(draft, ospace));
    await ensureAll(catalog, [...owners], ospace);
  } catch (error) {
    await catalog.close();
    throw error;
  }
  const parts = { store: store.objects, runtime, patience };
  const writing = new Writing({ ...parts, number: () => catalog.followerNumber });
  const writer = new ObjectWriter(writing);
  const indexer = new Indexer({ ...parts, catalog, writer, passes: new IndexPasses(store.kv, patience) });
  indexer.start();
  const changes = new Changes({ tenant, store, runtime, patience, catalog });
  return {
    store,
    catalog,
    patience,
    indexer,
    changes,
    writer,
    remover: new ObjectRemover(writing),
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
