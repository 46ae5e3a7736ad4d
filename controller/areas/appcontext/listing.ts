import { AppError } from "../../../common/errors.ts";
import { APPCONTEXT_LIST_MAX_ITEMS, APPCONTEXT_PAGE_ITEMS } from "../../../common/limits.ts";
import type { Slices } from "../query/index.ts";
import type { HeldBytes } from "./held.ts";
import type { StoredItem } from "./store.ts";
import type { Item } from "./types.ts";

/** Characters that take as long to parse as an ordinary item. */
const CHARACTERS_PER_WORK = 256;

export interface Selection {
  readonly pages: AsyncIterable<readonly StoredItem[]>;
  /** All items when absent. */
  readonly condition?: (item: Item) => boolean;
  readonly slices: Slices;
}

/** The items of a selection page by page, oldest first. Yields to other work between items. */
export async function* listed(selection: Selection, held: HeldBytes): AsyncGenerator<readonly Item[]> {
  const { slices } = selection;
  const share = held.share(slices.tenant);
  try {
    const items: StoredItem[] = [];
    for await (const { stored } of selected(selection)) {
      share.take(stored.text.length + stored.id.length);
      items.push(stored);
      if (items.length > APPCONTEXT_LIST_MAX_ITEMS) throw tooMany();
    }
    items.sort(byAge);
    for (let at = 0; at < items.length; at += APPCONTEXT_PAGE_ITEMS) {
      const page: Item[] = [];
      for (const stored of items.slice(at, at + APPCONTEXT_PAGE_ITEMS)) {
        page.push(itemOf(stored));
        if (slices.isOver(workOf(stored))) await slices.pause();
      }
      yield page;
    }
  } finally {
    share.giveBack();
  }
}

/** The oldest or the newest item of a selection. */
export async function endOf(selection: Selection, end: "first" | "last"): Promise<Item | undefined> {
  let best: { readonly stored: StoredItem; readonly item: Item } | undefined;
  for await (const one of selected(selection)) {
    const order = best === undefined ? 0 : byAge(one.stored, best.stored);
    if (best === undefined || (end === "first" ? order < 0 : order > 0)) best = one;
  }
  return best?.item;
}

async function* selected({ pages, condition, slices }: Selection) {
  for await (const page of pages) {
    slices.check();
    for (const stored of page) {
      const item = itemOf(stored);
      if (condition === undefined || condition(item)) yield { stored, item };
      if (slices.isOver(workOf(stored))) await slices.pause();
    }
  }
}

/** No check needed: the text was checked, and written with the id in it, when it was stored. */
export function itemOf({ text }: Pick<StoredItem, "text">): Item {
  return JSON.parse(text) as Item;
}

function workOf({ text }: StoredItem): number {
  return 1 + Math.floor(text.length / CHARACTERS_PER_WORK);
}

function byAge(one: StoredItem, other: StoredItem): number {
  return one.madeUs - other.madeUs || (one.id < other.id ? -1 : 1);
}

function tooMany(): AppError {
  return new AppError("too_large", `More than ${APPCONTEXT_LIST_MAX_ITEMS} items: narrow them by where.`, {
    details: { limit: "APPCONTEXT_LIST_MAX_ITEMS" },
  });
}
