import { AppError } from "../../../../../common/errors.ts";
import { SHARED_TERMS_ATTEMPTS_MAX } from "../../../../../common/limits.ts";
import type { EntityChange, EntityKey, EntityTrace, ObjectStore } from "../../../../store/objects.ts";
import type { LoadedClass } from "../../definitions/views.ts";
import { keyText } from "../../reading/locate.ts";
import { entityRow } from "../../values/entity.ts";
import { sharedTerms } from "../../values/terms.ts";
import type { WriteClock } from "../times/writeclock.ts";

/** A write that added terms which other columns of the object may need too. */
export interface SharedTermsWrite {
  readonly view: LoadedClass;
  readonly key: EntityKey;
  readonly timeUs: number;
  readonly terms: ReadonlySet<string>;
}

/**
 * Call after such writes. Another controller that did not see this write may have dropped a term of the same object,
 * with the time of what it had read. If that time can be above the time of this write, the object has a later time when
 * it is read now. In that case all its words and branches of tags are added again, above that time.
 */
export async function keepSharedTerms(
  writes: readonly SharedTermsWrite[],
  by: { readonly store: ObjectStore; readonly clock: WriteClock },
): Promise<void> {
  let open = writes;
  for (let attempt = 1; open.length > 0; attempt++) {
    if (attempt > SHARED_TERMS_ATTEMPTS_MAX)
      throw new AppError("unknown_outcome", "The object is changed by too many at once. Repeating it is safe.");
    const keys = open.map((write) => write.key);
    const traces = await by.store.trace(keys);
    open = open.flatMap((write, at) => repaired(write, traces[at], by.clock) ?? []);
    const changes = open.map(repair);
    if (changes.length > 0) await by.store.change(changes);
  }
}

/** Undefined when nothing is missing. */
function repaired(
  write: SharedTermsWrite,
  trace: EntityTrace | undefined,
  clock: WriteClock,
): SharedTermsWrite | undefined {
  if (trace?.entity === undefined) return undefined;
  const needed = sharedTerms(write.view, entityRow(write.view, trace.entity));
  if (trace.lastUs <= write.timeUs && needed.every((term) => write.terms.has(term))) return undefined;
  const timeUs = clock.ofObject([keyText(write.key)], trace.lastUs, clock.nextUs());
  return { ...write, timeUs, terms: new Set(needed) };
}

function repair({ key, timeUs, terms }: SharedTermsWrite): EntityChange {
  return { key, timeUs, addTerms: [...terms], numbers: new Map([[0, Math.floor(timeUs / 1_000)]]) };
}
