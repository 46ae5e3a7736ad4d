import { INDEX_FILL_PAGE_ROWS } from "../../../../common/limits.ts";
import type { Entity, EntityKey } from "../../../store/objects.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import type { LoadedClass } from "../definitions/views.ts";
import { findEntities, inPages, keyText, type Place } from "../reading/locate.ts";
import { indexEntries, withIndexEntries } from "./entities/indexentries.ts";
import type { WriteContext, Writing } from "./writing.ts";

/** Writes index entries of stored objects again. Values stay as they are. */
export class Reindexing {
  readonly #writing: Writing;

  constructor(writing: Writing) {
    this.#writing = writing;
  }

  /** Returns the number of objects found. Each list of places names one object. */
  async refresh({ snapshot }: WriteContext, refs: readonly (readonly Place[])[]): Promise<number> {
    let count = 0;
    for (let from = 0; from < refs.length; from += INDEX_FILL_PAGE_ROWS) {
      const batch = refs.slice(from, from + INDEX_FILL_PAGE_ROWS);
      const found = (await findEntities(this.#writing.store, batch)).flatMap((entry) => entry?.entity ?? []);
      await this.reindex(snapshot, found);
      count += found.length;
      for (const { view, key } of batch.flat())
        if (view.kind === "record") count += await this.reindexRecords(view, [key]);
    }
    return count;
  }

  /** Writes the index entries of these objects again. Skips objects of dropped classes. */
  async reindex(snapshot: Snapshot, entities: readonly Entity[]): Promise<void> {
    await this.#writing.change(
      entities.flatMap((entity) => {
        const view = snapshot.byCid(entity.key.cid);
        return view === undefined ? [] : indexEntries(view, entity);
      }),
    );
  }

  /** Does the same for records; removed records stay removed. Returns the number of records. */
  reindexRecords(view: LoadedClass, keys: readonly EntityKey[]): Promise<number> {
    return this.#writing.queue.run(keys.map(keyText), undefined, async () => {
      const records = await inPages(keys, (page) => this.#writing.store.getRecords(page));
      const there = records.filter((record) => record !== undefined);
      await this.#writing.append(there.map((record) => withIndexEntries(view, record)));
      return there.length;
    });
  }
}
