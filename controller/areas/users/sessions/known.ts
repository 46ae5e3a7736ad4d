import { SIGN_IN_CACHE_MAX_ENTRIES } from "../../../../common/limits.ts";
import type { Evidence } from "../../../store/evidence.ts";
import type { Principal } from "../../permissions/index.ts";
import type { SessionRecord } from "../store.ts";

/** What a session may do, without what belongs to one call. */
interface KnownSession {
  readonly principal: Omit<Principal, "traceparent" | "remote">;
  readonly record: SessionRecord;
  /** All cached values from which the principal was made. */
  readonly evidence: readonly Evidence[];
}

/**
 * What sessions may do, made once and used for as long as every value that it was made from would be used: session,
 * user, organisations, groups and policy. A program that calls often so costs one look-up for each call.
 */
export class KnownSessions {
  readonly #known = new Map<string, KnownSession>();

  /** `undefined` if the session is not known, or if a value behind it must be read again. */
  find(session: string, nowMs: number): KnownSession | undefined {
    const known = this.#known.get(session);
    if (known === undefined) return undefined;
    for (const evidence of known.evidence) {
      if (evidence.isCurrent(nowMs)) continue;
      this.#known.delete(session);
      return undefined;
    }
    return known;
  }

  keep(session: string, known: KnownSession): void {
    this.#known.delete(session);
    const [oldest] = this.#known.keys();
    if (this.#known.size >= SIGN_IN_CACHE_MAX_ENTRIES && oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(session, known);
  }
}
