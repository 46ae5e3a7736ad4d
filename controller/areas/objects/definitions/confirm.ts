import { AppError, isAppError } from "../../../../common/errors.ts";
import { CATALOG_CONFIRM_ATTEMPTS_MAX } from "../../../../common/limits.ts";
import type { Held } from "./catalog.ts";
import type { Snapshot } from "./snapshot.ts";
import type { LoadedClass } from "./views.ts";

/** The definitions with which a call began, and the way to read them again. */
export interface WriteDefinitions {
  readonly snapshot: Snapshot;
  readonly held: Held;
  readonly resumed: () => Promise<Held>;
}

/**
 * Call between a write and its reply. If the definitions were held throughout, it does nothing. If this controller was
 * paused or disconnected and the definitions changed, `bring` rewrites the same cells under the current definitions, or
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

/** Definitions for the rest of a write, during which this controller may have been paused. */
export async function definitionsNow(of: WriteDefinitions): Promise<Snapshot> {
  return of.held.isHeld() ? of.snapshot : (await heldAnew(of)).snapshot;
}

/** The current class of that number. */
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
