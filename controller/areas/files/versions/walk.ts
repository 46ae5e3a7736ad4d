import type { Principal } from "../../permissions/index.ts";
import type { FileEntry } from "../entries.ts";
import type { Place } from "../names.ts";
import type { FileStore } from "../store.ts";

/** The file or folder and everything below it, page by page, each folder before its content. */
export async function* entriesBelow(
  store: FileStore,
  principal: Principal,
  root: Place,
  signal?: AbortSignal,
): AsyncGenerator<readonly FileEntry[]> {
  const entry = await store.find(principal, root);
  if (entry) yield [entry];
  if (entry?.content) return;
  const folders: string[] = [root.fullname];
  for (let fullname = folders.pop(); fullname !== undefined; fullname = folders.pop()) {
    for await (const page of store.in(principal, { space: root.space, fullname }, signal)) {
      yield page;
      for (const below of page) if (!below.content) folders.push(below.fullname);
    }
  }
}
