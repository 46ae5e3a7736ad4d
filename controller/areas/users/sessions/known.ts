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
    if (isCurrent(known, nowMs)) return known;
    this.#known.delete(session);
    return undefined;
  }

  keep(session: string, known: KnownSession, nowMs: number): void {
    this.#known.delete(session);
    this.#dropOutdated(nowMs);
    const [oldest] = this.#known.keys();
    if (this.#known.size >= SIGN_IN_CACHE_MAX_ENTRIES && oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(session, known);
  }

  /** Number of sessions in memory. */
  get size(): number {
    return this.#known.size;
  }

  /**
   * Drops the oldest sessions up to the first that is current. The evidence of a session holds the values themselves,
   * such as all groups of its tenant as they were.
   */
  #dropOutdated(nowMs: number): void {
    for (const [session, known] of this.#known) {
      if (isCurrent(known, nowMs)) return;
      this.#known.delete(session);
    }
  }
}

function isCurrent({ evidence }: KnownSession, nowMs: number): boolean {
  for (const one of evidence) if (!one.isCurrent(nowMs)) return false;
  return true;
}
