import type { Principal } from "../permissions/index.ts";
import type { FileEntry } from "./entries.ts";
import { type Place } from "./names.ts";
import { rowAt, type FileStore } from "./store.ts";
import type { FileVisibility } from "./visible.ts";
import type { OpenFileWork } from "./work-journal.ts";

type Asked = Pick<OpenFileWork, "kind" | "space" | "from" | "to" | "user">;

/** The place to which the work copies or moves an entry. */
export function targetOf({ from, to = "" }: Pick<OpenFileWork, "from" | "to">, { space, fullname }: Place): Place {
  return { space, fullname: to + fullname.slice(from.length) };
}

/**
 * `AppError("denied")` if the rules that the caller had at the start forbid this work on the entry. `former` is the
 * entry that exists at the target.
 */
export function requireWork(work: Asked, visibility: FileVisibility, entry: FileEntry, former?: FileEntry): void {
  if (work.kind !== "copy") visibility.requireWriting(entry, { before: entry, columns: [] });
  if (work.kind === "remove") return;
  visibility.requireAllOf(entry);
  const target = targetOf(work, entry);
  const owner = work.kind === "copy" ? work.user : entry.owner;
  const row = rowAt(target, { ...entry, owner }, entry.content);
  // An existing folder stays unchanged.
  if (former && !entry.content) return;
  if (work.kind === "copy")
    return visibility.requireWriting(target, { before: former, after: row, columns: ["digest"] });
  visibility.requireWriting(entry, { before: entry, after: row, columns: ["fullname"] });
}

interface Looking {
  readonly principal: Principal;
  readonly store: FileStore;
  readonly visibility: FileVisibility;
}

/**
 * Like `requireWork`, for all entries of the work. Called before the work begins: if one entry is denied, nothing is
 * done.
 */
export async function requireWholeWork(work: Asked, looking: Looking): Promise<void> {
  if (looking.visibility.rules === undefined) return;
  const place = { space: work.space, fullname: work.from };
  const [entry] = await looking.store.get(looking.principal, [place]);
  if (entry) await requireAll(work, [entry], looking);
  if (!entry?.content) await requireBelow(work, place, looking);
}

async function requireBelow(work: Asked, folder: Place, looking: Looking): Promise<void> {
  const folders: Place[] = [];
  for await (const page of looking.store.in(looking.principal, folder)) {
    await requireAll(work, page, looking);
    for (const { content, space, fullname } of page) if (!content) folders.push({ space, fullname });
  }
  for (const below of folders) await requireBelow(work, below, looking);
}

async function requireAll(work: Asked, entries: readonly FileEntry[], looking: Looking): Promise<void> {
  const { store, principal, visibility } = looking;
  const targets = work.kind === "copy" ? entries.map((entry) => targetOf(work, entry)) : [];
  const former = await store.get(principal, targets);
  for (const [at, entry] of entries.entries()) requireWork(work, visibility, entry, former[at]);
}
