import {
  OBJECT_PAGE_EXAMINED_MAX,
  OBJECT_PAGE_MAX,
  ORDERED_CLASS_MIN,
  ORDERED_EXAMINED_MAX,
  ORDERED_EXAMINED_MIN,
  ORDERED_FINDS_MAX,
} from "../../../../common/limits.ts";
import type { Entity, FindRequest, NumberOrder, ObjectStore } from "../../../store/objects.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import type { LoadedClass } from "../definitions/views.ts";
import type { ObjectRow, OrderedRead, OrderedRequest, ReadOrder, ReadRequest } from "../types.ts";
import { estimatedReads } from "./estimating.ts";
import { checkSignal, objectsOf } from "./reader.ts";
import { planRead, type Branch, type Find, type ReadPlan } from "./readplan.ts";

/** Cost of passing over one index entry, as a share of the cost of an object. */
const PASSED_SHARE = 1 / 8;
/** A read in order is used if its expected cost is at most this share of the cost of reading all. */
const WORTH_SHARE = 1 / 4;
/** A read in order is given up after this share of the cost of reading all, which is the price of a wrong estimate. */
const TRIED_SHARE = 1 / 8;
const PAGE_MIN_ROWS = 16;

/** Plan of a read along the numbers of one slot. */
export interface InOrderPlan {
  readonly branch: Branch;
  readonly slot: number;
  /** Finds of all objects of the classes, without the conditions of the read. */
  readonly classes: readonly Find[];
}

interface Planning {
  readonly snapshot: Snapshot;
  readonly readable: (view: LoadedClass) => boolean;
}

/** `undefined` if no single slot has the order of all objects. */
export function planInOrder(
  request: ReadRequest & { readonly order: ReadOrder },
  { snapshot, readable }: Planning,
): InOrderPlan | undefined {
  const { branches, byId, provided, timelines } = planRead(
    snapshot,
    { ...request, where: (request.where ?? []).filter((one) => one.kind === "range" || isOfOneValue(one)) },
    readable,
  );
  const [branch] = branches;
  if (branch === undefined || branches.length > 1 || byId !== undefined || provided.length + timelines.length > 0)
    return undefined;
  const slots = new Set(branch.views.map((view) => slotOf(view, request.order.column)));
  const [slot] = slots;
  if (slots.size !== 1 || slot === undefined) return undefined;
  const classes = planRead(snapshot, { ...request, where: [] }, readable).branches.flatMap(({ finds }) => finds);
  const isMuch = Math.max(branch.finds.length, classes.length) > ORDERED_FINDS_MAX;
  return isMuch ? undefined : { branch, slot, classes };
}

function isOfOneValue(pushdown: NonNullable<ReadRequest["where"]>[number]): boolean {
  return pushdown.kind === "equals" && pushdown.values.length === 1;
}

function slotOf(view: LoadedClass, column: string): number | undefined {
  return column === "vtime" || column === "mtime" ? 0 : view.column(column)?.slot;
}

/**
 * Number of objects that may be looked at in the order before the caller reads all instead. `undefined` if reading all
 * by the plan `whole` is expected to cost less.
 */
export async function worthInOrder(
  { classes }: InOrderPlan,
  { whole, rows }: { readonly whole: ReadPlan; readonly rows: number },
  store: Pick<ObjectStore, "countClass" | "countRecords" | "estimate">,
): Promise<number | undefined> {
  const { size, isMore } = await sizeOf(classes, store);
  if (size < ORDERED_CLASS_MIN) return undefined;
  const narrowings = whole.branches.map(({ narrowing }) => narrowing);
  const isNarrowed = narrowings.some(({ terms, union, words }) => union || terms.length + words.length > 0);
  if (isMore && isNarrowed) return undefined;
  const isRanged = narrowings.some(({ ranges }) => ranges.length > 0);
  const least = isNarrowed || isRanged ? await estimatedReads(whole, store) : size;
  if (isMore || least === undefined) return isNarrowed ? undefined : ORDERED_EXAMINED_MAX;
  const expected = rows * (1 + (size / Math.max(1, least)) * PASSED_SHARE);
  return expected <= least * WORTH_SHARE ? Math.max(ORDERED_EXAMINED_MIN, least * TRIED_SHARE) : undefined;
}

/** Number of objects of these finds. `isMore`: the number is a lower bound. */
async function sizeOf(
  finds: readonly Find[],
  store: Pick<ObjectStore, "countClass">,
): Promise<{ readonly size: number; readonly isMore: boolean }> {
  let size = 0;
  let isMore = false;
  for (const term of new Set(finds.flatMap(({ request }) => request.terms))) {
    const { count, cursor } = await store.countClass(term);
    size += count;
    isMore ||= cursor !== undefined;
  }
  return { size, isMore };
}

export function readInOrder(
  { branch, slot }: InOrderPlan,
  { request, most }: { readonly request: OrderedRequest; readonly most: number },
  { store, snapshot }: { readonly store: Pick<ObjectStore, "find">; readonly snapshot: Snapshot },
): OrderedRead {
  const { order, expected, signal } = request;
  const limit = Math.min(OBJECT_PAGE_MAX, Math.max(PAGE_MIN_ROWS, expected));
  const [view, ...others] = branch.views;
  const only = others.length === 0 && branch.finds.length === 1 ? view : undefined;
  const streams = branch.finds.map((find) => new Stream(find, findRequest(find, { slot, ...order }, only), limit));
  const pages = async function* (): AsyncGenerator<readonly ObjectRow[]> {
    let left = most;
    while (left > 0 && streams.some((stream) => !stream.ended)) {
      checkSignal(signal);
      for (const stream of streams) if (stream.head === undefined && !stream.ended) left -= await stream.fill(store);
      yield merged(streams, { slot, descending: order.descending }).flatMap(({ find, entity }) =>
        objectsOf(snapshot, branch, { entities: [entity], find }),
      );
    }
  };
  return {
    pages: pages(),
    isWhole: () => streams.every((stream) => stream.ended),
    isById: () => only !== undefined && !streams.some((stream) => stream.isMixed),
  };
}

function findRequest({ request }: Find, { slot, ...order }: SlotOrder, only: LoadedClass | undefined): FindRequest {
  const { descending, from } = order;
  const range = from === undefined ? [] : [{ slot, ...(descending ? { to: from } : { from }) }];
  const behind = only && keyBehind(request, { slot, ...order }, only);
  const passed = only === undefined || behind === undefined ? {} : { behind: { cid: only.cid, id: behind } };
  return { ...request, ranges: [...(request.ranges ?? []), ...range], order: { slot, descending, ...passed } };
}

type SlotOrder = ReadOrder & { readonly slot: number };

/**
 * Key of the object behind which the read begins. `undefined` if the read begins with another number, or if the class
 * had another label when the id was given.
 */
function keyBehind(
  { ranges = [] }: FindRequest,
  { slot, descending, from, behind }: SlotOrder,
  { label }: LoadedClass,
): string | undefined {
  if (from === undefined || !behind?.startsWith(`${label}:`)) return undefined;
  const isNarrowed = ranges.some(
    (range) => range.slot === slot && (descending ? (range.to ?? from) < from : (range.from ?? from) > from),
  );
  return isNarrowed ? undefined : behind.slice(label.length + 1);
}

/** The entities of the streams in order, until one of the streams has to read its next page. */
function merged(
  streams: readonly Stream[],
  { slot, descending }: NumberOrder,
): { readonly find: Find; readonly entity: Entity }[] {
  const found: { readonly find: Find; readonly entity: Entity }[] = [];
  const along = ({ head }: Stream): number => (descending ? -1 : 1) * (head?.numbers[slot] ?? 0);
  for (;;) {
    if (streams.some((stream) => stream.head === undefined && !stream.ended)) return found;
    const [first, ...others] = streams.filter((stream) => stream.head !== undefined);
    if (first === undefined) return found;
    const next = others.reduce((best, stream) => (along(stream) < along(best) ? stream : best), first);
    const entity = next.take();
    if (entity !== undefined) found.push({ find: next.find, entity });
  }
}

class Stream {
  readonly find: Find;
  readonly #request: FindRequest;
  readonly #limit: number;
  #items: readonly Entity[] = [];
  #at = 0;
  #cursor: string | undefined;
  #isLast = false;
  /** True if objects with equal numbers came in no order. */
  isMixed = false;

  constructor(find: Find, request: FindRequest, limit: number) {
    this.find = find;
    this.#request = request;
    this.#limit = limit;
  }

  get head(): Entity | undefined {
    return this.#items[this.#at];
  }

  get ended(): boolean {
    return this.#isLast && this.head === undefined;
  }

  take(): Entity | undefined {
    return this.#items[this.#at++];
  }

  /** Reads the next page. Returns about how many objects were looked at. */
  async fill(store: Pick<ObjectStore, "find">): Promise<number> {
    const page = { limit: this.#limit, ...(this.#cursor === undefined ? {} : { cursor: this.#cursor }) };
    const { items, cursor, isMixed } = await store.find(this.#request, page);
    this.isMixed ||= isMixed === true;
    [this.#items, this.#at, this.#cursor, this.#isLast] = [items, 0, cursor, cursor === undefined];
    return items.length < this.#limit ? Math.max(items.length, OBJECT_PAGE_EXAMINED_MAX) : items.length;
  }
}
