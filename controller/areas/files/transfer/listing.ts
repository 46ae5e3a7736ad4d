import { AppError } from "../../../../common/errors.ts";
import { FILE_LIST_BATCH } from "../../../../common/limits.ts";
import { pathVisible, type Principal } from "../../permissions/index.ts";
import type { FileEntry } from "../entries.ts";
import { nameOf, placeIn, type Place } from "../names.ts";
import { notFound } from "../open-places.ts";
import type { FileStore } from "../store.ts";
import type { FileVisibility } from "../visible.ts";

interface ListingDependencies {
  readonly store: Pick<FileStore, "find" | "get" | "in">;
  readonly visibilityOf: (principal: Principal) => Promise<FileVisibility>;
}

export interface PageOfFolder {
  readonly limit: number;
  /** Only entries with later names. Absent: from the first one. */
  readonly after?: string | undefined;
}

export interface FilePage {
  /** In the order of names. An entry that is removed meanwhile is left out. */
  readonly entries: AsyncIterable<readonly FileEntry[]>;
  /** Name of the last entry; absent on the last page. */
  readonly next?: string;
}

/**
 * The content of a folder, as far as the principal sees it. The service has checked the permission and the path. Hidden
 * entries fill no page, and no `next` names one.
 */
export class FolderListing {
  readonly #with: ListingDependencies;

  constructor(dependencies: ListingDependencies) {
    this.#with = dependencies;
  }

  /** All entries, in no order. `AppError("not_found")` if there is no such folder. */
  async *all(principal: Principal, place: Place, signal?: AbortSignal): AsyncGenerator<readonly FileEntry[]> {
    const { store, visibilityOf } = this.#with;
    const visibility = await visibilityOf(principal);
    const found = place.fullname === "/" ? undefined : await store.find(principal, place);
    const folder = found && visibility.shown(found);
    if (folder?.content) throw new AppError("invalid", `${place.fullname} is a file, not a folder.`);
    let isEmpty = true;
    for await (const page of store.in(principal, place, signal)) {
      const shown = shownTo(principal, visibility, page);
      isEmpty &&= shown.length === 0;
      yield shown;
    }
    if (isEmpty && !folder && place.fullname !== "/") throw notFound(place);
  }

  /** One page. Reads the names of the whole folder, and then the entries of the page. Errors as `all`. */
  async page(
    principal: Principal,
    place: Place,
    { limit, after, signal }: PageOfFolder & { readonly signal?: AbortSignal | undefined },
  ): Promise<FilePage> {
    // One more than the page has, which tells that another page follows.
    let names: readonly string[] = [];
    for await (const entries of this.all(principal, place, signal)) {
      const last = names.length > limit ? names.at(-1) : undefined;
      const found = entries.map(({ fullname }) => nameOf(fullname)).filter((name) => isBetween(name, { after, last }));
      if (found.length > 0) names = merged(names, found.sort(compare)).slice(0, limit + 1);
    }
    const own = names.slice(0, limit);
    const next = names.length > limit ? own.at(-1) : undefined;
    return { entries: this.#named(principal, place, own), ...(next !== undefined && { next }) };
  }

  async *#named(principal: Principal, folder: Place, names: readonly string[]): AsyncGenerator<readonly FileEntry[]> {
    const { store, visibilityOf } = this.#with;
    const visibility = await visibilityOf(principal);
    for (let at = 0; at < names.length; at += FILE_LIST_BATCH) {
      const places = names.slice(at, at + FILE_LIST_BATCH).map((name) => placeIn(folder, name));
      const entries = (await store.get(principal, places)).filter((entry) => entry !== undefined);
      yield shownTo(principal, visibility, entries);
    }
  }
}

function shownTo(
  principal: Principal,
  visibility: FileVisibility,
  entries: readonly FileEntry[],
): readonly FileEntry[] {
  return entries
    .flatMap((entry) => visibility.shown(entry) ?? [])
    .filter(({ fullname }) => pathVisible(principal, fullname));
}

function isBetween(
  name: string,
  { after, last }: { readonly after: string | undefined; readonly last: string | undefined },
): boolean {
  return (after === undefined || name > after) && (last === undefined || name < last);
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** Two sorted lists as one, each name once. A single sort of a large page would block the thread. */
function merged(one: readonly string[], other: readonly string[]): readonly string[] {
  const all: string[] = [];
  let [left, right] = [0, 0];
  while (left < one.length || right < other.length) {
    const [a, b] = [one[left], other[right]];
    const takesLeft = a !== undefined && (b === undefined || a <= b);
    const name = takesLeft ? a : b;
    if (takesLeft) left += 1;
    else right += 1;
    if (name !== undefined && name !== all.at(-1)) all.push(name);
  }
  return all;
}
