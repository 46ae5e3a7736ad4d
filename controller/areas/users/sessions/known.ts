import { SIGN_IN_CACHE_MAX_ENTRIES } from "../../../../common/limits.ts";
import type { Evidence } from "../../../store/evidence.ts";
import type { Principal } from "../../permissions/index.ts";
import type { SessionRecord } from "../store.ts";

/** The rights of a session, without the members that belong to one call. */
interface KnownSession {
  readonly principal: Omit<Principal, "traceparent" | "remote">;
  readonly record: SessionRecord;
  /** All cached values from which the principal was made. */
  readonly evidence: readonly Evidence[];
}

/**
 * The rights of sessions. They are made once, and used as long as all cached values behind them would be used: session,
 * user, organisations, groups and policy. So the next call of a program costs one look-up.
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
