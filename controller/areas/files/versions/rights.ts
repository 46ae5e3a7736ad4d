import type { Principal } from "../../permissions/index.ts";
import type { HidingGuard } from "../hiding.ts";
import type { Place } from "../names.ts";
import type { FileStore } from "../store.ts";
import type { FileVisibility } from "../visible.ts";
import type { KeptEntries } from "./kept-entries.ts";
import type { KeptTree } from "./records.ts";
import { newFiles, requireRestoring } from "./restoring.ts";
import { entriesBelow } from "./walk.ts";

/*
 * Checks of whole trees before work with them begins, so that denied work changes nothing. The work checks each entry
 * again, because a tree may change in between.
 */

interface Looking {
  readonly principal: Principal;
  readonly visibility: FileVisibility;
}
interface LookingAtTree extends Looking {
  readonly store: FileStore;
}
interface LookingAtVersion extends Looking {
  readonly entries: KeptEntries;
}

/** `AppError("denied")` unless the principal sees all of every entry of the tree. */
export async function requireKeeping({ principal, store, visibility }: LookingAtTree, place: Place): Promise<void> {
  if (visibility.rules === undefined) return;
  for await (const page of entriesBelow(store, principal, place))
    for (const entry of page) visibility.requireAllOf(entry);
}

/** `AppError("denied")` unless the principal could remove every entry of the version from the tree. */
export async function requireReleasing(
  { principal, visibility, entries }: LookingAtVersion,
  tree: KeptTree,
): Promise<void> {
  if (visibility.rules === undefined) return;
  for await (const page of entries.all(principal, tree))
    for (const entry of page) visibility.requireWriting(entry, { before: entry, columns: [] });
}

/**
 * `AppError("denied")` unless the principal may write every entry of the tree, and every entry of the version in its
 * place. With `hidesNothing`, no file of the version may come into being where it hides a system file.
 */
export async function requireRestoringAll(
  looking: LookingAtTree & LookingAtVersion & { readonly hiding: HidingGuard },
  tree: KeptTree,
  hidesNothing = false,
): Promise<void> {
  const { principal, visibility, store, hiding, entries } = looking;
  if (visibility.rules === undefined && !hidesNothing) return;
  for await (const page of entriesBelow(store, principal, tree))
    for (const entry of page) visibility.requireWriting(entry, { before: entry, columns: [] });
  for await (const page of entries.all(principal, tree)) {
    const former = await store.get(principal, page);
    for (const [at, entry] of page.entries()) requireRestoring(visibility, entry, former[at]);
    if (hidesNothing) await hiding.requireNothingHidden(principal, newFiles(page, former));
  }
}
