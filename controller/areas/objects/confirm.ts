import { AppError, isAppError } from "../../../common/errors.ts";
import { CATALOG_CONFIRM_ATTEMPTS_MAX } from "../../../common/limits.ts";
import type { Held } from "./catalog.ts";
import type { EntityWrite } from "./compose.ts";
import type { Snapshot } from "./snapshot.ts";
import type { LoadedClass } from "./views.ts";

/** What one call writes with: the definitions it began with, and how to get at them anew. */
export interface WriteDefinitions {
  readonly snapshot: Snapshot;
  readonly held: Held;
  readonly resumed: () => Promise<Held>;
}

/**
 * To be called between a write and its answer. Where the definitions were held all the while nobody waited in vain for this write, and there is
 * nothing to do. Otherwise this controller was stopped or cut off: `bring` makes of what was written what it is by the definitions of now, or
 * throws.
 */
export async function confirmed(of: WriteDefinitions, bring: (now: Snapshot) => Promise<void>): Promise<void> {
  let { held } = of;
  for (let attempt = 1; attempt <= CATALOG_CONFIRM_ATTEMPTS_MAX; attempt++) {
    if (held.isHeld()) return;
    held = await heldAnew(of);
    if (held.snapshot.definitions.counterRevision !== of.snapshot.definitions.counterRevision)
      await bring(held.snapshot);
  }
  throw unconfirmed();
}

/** By which to go on in the middle of a write that was perhaps stopped for a while. */
export async function definitionsNow(of: WriteDefinitions): Promise<Snapshot> {
  return of.held.isHeld() ? of.snapshot : (await heldAnew(of)).snapshot;
}

/** The class of that number as it is now. */
export function classNow(view: LoadedClass, now: Snapshot): LoadedClass {
  const current = now.byCid(view.cid);
  if (current === undefined)
    throw new AppError(
      "conflict",
      `[NotExist] class ${view.path} was dropped while it was written to: nothing was kept.`,
    );
  if (now.isDropping(current.path))
    throw new AppError("unknown_outcome", `[Valid] class ${view.path} is just being dropped: try again.`);
  return current;
}

/** The same write by the definitions of now: the same cells and time, with the terms and numbers they ask for. */
export function writeNow(write: EntityWrite, now: Snapshot): EntityWrite {
  const view = classNow(write.view, now);
  const edits = write.edits.map((edit) => {
    const column = view.columnByNumber(edit.column.number);
    if (column?.name !== edit.column.name) throw changedMeanwhile(view, `column ${edit.column.name}`);
    return { ...edit, column };
  });
  const gone = write.addEdges?.find((edge) => !now.hasEdgeType(edge.type));
  if (gone !== undefined) throw changedMeanwhile(view, `edge type ${gone.type}`);
  return { ...write, view, edits };
}

export function changedMeanwhile(view: LoadedClass, what: string): AppError {
  return new AppError(
    "conflict",
    `[Valid] class ${view.path}: the ${what} was dropped while this was written. The rest may have been kept.`,
  );
}

async function heldAnew(of: WriteDefinitions): Promise<Held> {
  try {
    return await of.resumed();
  } catch (error) {
    if (!isAppError(error, "unavailable")) throw error;
    throw unconfirmed(error);
  }
}

function unconfirmed(cause?: unknown): AppError {
  const text =
    "It was written, but the class definitions cannot be followed at the moment: whether they still fit is not known. Repeating it is safe.";
  return new AppError("unknown_outcome", text, { cause });
}
