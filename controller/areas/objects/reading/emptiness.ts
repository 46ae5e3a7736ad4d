import { ULID_TIME_MAX_MS } from "../../../../common/ids.ts";
import type { ObjectStore, Page, PageRequest } from "../../../store/objects.ts";
import { ownTerm, type LoadedClass } from "../definitions/views.ts";
import { tombstoneTerm } from "../values/tombstones.ts";

/** True if the class itself has an object, a record, or versions of an object that was removed. */
export async function hasObjects(view: LoadedClass, of: { readonly store: ObjectStore }): Promise<boolean> {
  const { store } = of;
  if (view.kind === "record") {
    return any((page) => store.timeline({ cid: view.cid, fromMs: 0, toMs: ULID_TIME_MAX_MS }, page));
  }
  const bears = (term: string) => any((page) => store.find({ terms: [term] }, page));
  return (await bears(ownTerm(view.cid))) || bears(tombstoneTerm(view.cid));
}

async function any(read: (page: PageRequest) => Promise<Page<unknown>>): Promise<boolean> {
  let cursor: string | undefined;
  do {
    const page = await read({ limit: 1, ...(cursor === undefined ? {} : { cursor }) });
    if (page.items.length > 0) return true;
    cursor = page.cursor;
  } while (cursor !== undefined);
  return false;
}
