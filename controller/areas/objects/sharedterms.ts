import { AppError } from "../../../common/errors.ts";
import { SHARED_TERMS_ATTEMPTS_MAX } from "../../../common/limits.ts";
import type { EntityChange, EntityKey, EntityTrace, ObjectStore } from "../../store/objects.ts";
import { entityRow } from "./entity.ts";
import type { Patience } from "./patience.ts";
import { wordTerms } from "./terms.ts";
import type { LoadedClass } from "./views.ts";
import type { WriteClock } from "./writeclock.ts";

/** A write that added terms which other columns of the object can need, too. */
export interface SharedTermsWrite {
  readonly view: LoadedClass;
  readonly key: EntityKey;
  readonly timeUs: number;
  readonly terms: ReadonlySet<string>;
}

/**
 * To be called after such writes. Another controller may have dropped a term of the same object, as it did not see this write; it dropped it with
 * the time of what it had read. Where that can be above the time of this write, a later time is found now, as it was there before it was read:
 * then all words of the object are added again, above that time.
 */
export async function keepSharedTerms(
  writes: readonly SharedTermsWrite[],
  by: { readonly store: ObjectStore; readonly patience: Patience; readonly clock: WriteClock },
): Promise<void> {
  let open = writes;
  for (let attempt = 1; open.length > 0; attempt++) {
    if (attempt > SHARED_TERMS_ATTEMPTS_MAX)
      throw new AppError("unknown_outcome", "The object is changed by too many at once. Repeating it is safe.");
    const keys = open.map((write) => write.key);
    const traces = await by.patience.repeat(() => by.store.trace(keys));
    open = open.flatMap((write, at) => repaired(write, traces[at], by.clock) ?? []);
    const changes = open.map(repair);
    if (changes.length > 0) await by.patience.repeat(() => by.store.change(changes));
  }
}

/** Undefined when nothing is missing. */
function repaired(
  write: SharedTermsWrite,
  trace: EntityTrace | undefined,
  clock: WriteClock,
): SharedTermsWrite | undefined {
  if (trace?.entity === undefined) return undefined;
  const needed = wordTerms(write.view, entityRow(write.view, trace.entity));
  if (trace.lastUs <= write.timeUs && needed.every((term) => write.terms.has(term))) return undefined;
  return { ...write, timeUs: clock.nextUs(trace.lastUs), terms: new Set(needed) };
}

function repair({ key, timeUs, terms }: SharedTermsWrite): EntityChange {
  return { key, timeUs, addTerms: [...terms], numbers: new Map([[0, Math.floor(timeUs / 1_000)]]) };
}
