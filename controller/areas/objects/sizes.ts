import { OBJECT_PAGE_MAX } from "../../../common/limits.ts";
import type { ObjectStore, Page, PageRequest, StoredRecord } from "../../store/objects.ts";
import type { Snapshot } from "./definitions/snapshot.ts";
import { entitySize, recordSize, sumOf, type Growth } from "./values/room.ts";

/** Objects and bytes in classes that are not the platform's, page by page. */
export async function* sizes(store: ObjectStore, snapshot: Snapshot): AsyncGenerator<Growth> {
  const isOwn = (cid: number): boolean => snapshot.byCid(cid)?.system === false;
  for await (const entities of pages((page) => store.scan(page)))
    yield sumOf(entities.filter(({ key }) => isOwn(key.cid)).map(entitySize));
  for (const { cid, kind, system } of snapshot.tree("/")) {
    if (system || kind !== "record") continue;
    const all = { cid, fromMs: 0, toMs: Number.MAX_SAFE_INTEGER };
    for await (const records of pages<StoredRecord>((page) => store.timeline(all, page)))
      yield sumOf(records.map(recordSize));
  }
}

async function* pages<T>(read: (page: PageRequest) => Promise<Page<T>>): AsyncGenerator<readonly T[]> {
  let cursor: string | undefined;
  do {
    const page = await read({ limit: OBJECT_PAGE_MAX, ...(cursor !== undefined && { cursor }) });
    yield page.items;
    cursor = page.cursor;
  } while (cursor !== undefined);
}
