import { ULID_TIME_MAX_MS } from "../../../../common/ids.ts";
import { INDEX_COUNT_PAGE_ROWS, INDEX_FILL_PAGE_ROWS } from "../../../../common/limits.ts";
import type { ObjectStore, PageRequest } from "../../../store/objects.ts";
import type { IndexPass } from "../definitions/indexstates.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import { belowTerm, ownTerm, type LoadedClass } from "../definitions/views.ts";
import type { Reindexing } from "../writing/reindexing.ts";

/** Objects that are indexed together. */
interface Step {
  readonly name: string;
  page(request: PageRequest): Promise<StepPage>;
}

interface StepPage {
  readonly count: number;
  readonly cursor: string | undefined;
  /** Writes the index entries of its objects. */
  fill(snapshot: Snapshot): Promise<void>;
}

export interface IndexPassDependencies {
  readonly store: ObjectStore;
  readonly reindexing: Reindexing;
  /** The current definitions. */
  readonly snapshot: () => Promise<Snapshot>;
  /** Stores the progress of the pass. Throws when another controller has taken it over. */
  readonly keep: (pass: IndexPass) => Promise<void>;
}

/** Continues the pass from its stored progress to its end. False when none of its indexes is wanted any more. */
export async function carryOut(pass: IndexPass, of: IndexPassDependencies): Promise<boolean> {
  const steps = stepsOf(pass.cid, await of.snapshot(), of);
  let now = pass.total === undefined ? { ...pass, total: await countAll(steps, of) } : pass;
  await of.keep(now);
  let at = Math.max(
    0,
    steps.findIndex((step) => step.name === now.position?.step),
  );
  for (let step = steps[at]; step !== undefined; step = steps[at]) {
    const snapshot = await of.snapshot();
    if (!isWanted(now, snapshot)) return false;
    const cursor = step.name === now.position?.step ? now.position.cursor : undefined;
    const page = await step.page(pageFrom(cursor, INDEX_FILL_PAGE_ROWS));
    await page.fill(snapshot);
    if (page.cursor === undefined) at++;
    const position =
      page.cursor === undefined ? { step: steps[at]?.name ?? step.name } : { step: step.name, cursor: page.cursor };
    now = { ...now, done: now.done + page.count, position };
    if (steps[at] !== undefined) await of.keep(now);
  }
  return isWanted(now, await of.snapshot());
}

/** True if the definitions still have one of its indexes. */
export function isWanted(pass: IndexPass, snapshot: Snapshot): boolean {
  const view = snapshot.byCid(pass.cid);
  return view !== undefined && view.pendingIndexes.some(({ number }) => pass.indexes.includes(number));
}

async function countAll(steps: readonly Step[], of: IndexPassDependencies): Promise<number> {
  let total = 0;
  for (const step of steps) {
    let cursor: string | undefined;
    do {
      await of.snapshot();
      const page = await step.page(pageFrom(cursor, INDEX_COUNT_PAGE_ROWS));
      total += page.count;
      cursor = page.cursor;
    } while (cursor !== undefined);
  }
  return total;
}

function pageFrom(cursor: string | undefined, limit: number): PageRequest {
  return cursor === undefined ? { limit } : { limit, cursor };
}

/**
 * The entities of the class, those below it, and the records of each class. Classes that are made later need no
 * filling.
 */
function stepsOf(cid: number, snapshot: Snapshot, of: IndexPassDependencies): Step[] {
  const root = snapshot.byCid(cid);
  if (root === undefined) return [];
  const tree = snapshot.tree(root.path).filter((view) => view.provide === undefined);
  const records = tree.filter((view) => view.kind === "record").sort((a, b) => a.cid - b.cid);
  return [entityStep(ownTerm(cid), of), entityStep(belowTerm(cid), of), ...records.map((view) => recordStep(view, of))];
}

function entityStep(term: string, { store, reindexing }: IndexPassDependencies): Step {
  return {
    name: term,
    page: async (request) => {
      const { items, cursor } = await store.find({ terms: [term] }, request);
      return { count: items.length, cursor, fill: (snapshot) => reindexing.reindex(snapshot, items) };
    },
  };
}

function recordStep({ cid }: LoadedClass, { store, reindexing }: IndexPassDependencies): Step {
  return {
    name: `r${cid}`,
    page: async (request) => {
      const { items, cursor } = await store.timeline({ cid, fromMs: 0, toMs: ULID_TIME_MAX_MS }, request);
      const fill = async (snapshot: Snapshot): Promise<void> => {
        const view = snapshot.byCid(cid);
        if (view !== undefined) await reindexing.reindexRecords(view, items);
      };
      return { count: items.length, cursor, fill };
    },
  };
}
