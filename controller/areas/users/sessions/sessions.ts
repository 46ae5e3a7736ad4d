import { SESSION_IDLE_MS, SESSION_MAX_MS, SESSION_REMEMBERED_MS, SESSION_TOUCH_MS } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { EvidenceList } from "../../../store/evidence.ts";
import type { SessionRecord, SessionStore, StoredSession, UserRecord } from "../store.ts";

export interface SessionDependencies {
  readonly runtime: Runtime;
  readonly store: SessionStore;
}

interface OpenOptions {
  /** See `Activity.epochOf`. */
  readonly epoch: string;
  readonly ospace: string;
  readonly remember: boolean;
  readonly remote: string;
}

/** Sessions. Each use prolongs a session, up to `SESSION_MAX_MS` after it was opened. */
export class Sessions {
  readonly #runtime: Runtime;
  readonly #store: SessionStore;

  constructor({ runtime, store }: SessionDependencies) {
    this.#runtime = runtime;
    this.#store = store;
  }

  /** Opens a session and answers its id: 256 unpredictable bits. */
  async open(user: UserRecord, options: OpenOptions): Promise<string> {
    const id = Buffer.from(this.#runtime.random.bytes(32)).toString("base64url");
    const createdMs = this.#nowMs();
    const idleMs = options.remember ? SESSION_REMEMBERED_MS : SESSION_IDLE_MS;
    const { tenant, username } = user;
    const { ospace, remote, epoch } = options;
    const record = { tenant, ospace, username, epoch, createdMs, idleMs, expiresMs: createdMs + idleMs };
    await this.#store.add(id, record, { createdMs, remote });
    return id;
  }

  /** The session, or undefined if it has ended. Use may prolong it. */
  async use(id: string, evidence?: EvidenceList): Promise<SessionRecord | undefined> {
    const session = await this.#store.recent(id, evidence);
    if (session === undefined || session.record.expiresMs <= this.#nowMs()) return undefined;
    await this.#touch(session);
    return session.record;
  }

  /** True if the session has not ended, and if its use now does not prolong it. */
  isSettled(record: SessionRecord): boolean {
    return record.expiresMs > this.#nowMs() && this.#prolongedMs(record) - record.expiresMs < SESSION_TOUCH_MS;
  }

  close(id: string): Promise<void> {
    return this.#store.remove(id);
  }

  /** Removes expired sessions and answers their number. Several controllers may do it at once. */
  async sweep(): Promise<number> {
    let removed = 0;
    for await (const session of this.#store.all()) {
      if (session.record.expiresMs > this.#nowMs()) continue;
      await this.#store.removeIf(session);
      removed++;
    }
    return removed;
  }

  async #touch(session: StoredSession): Promise<void> {
    const { record } = session;
    const expiresMs = this.#prolongedMs(record);
    if (expiresMs - record.expiresMs < SESSION_TOUCH_MS) return;
    try {
      await this.#store.replace(session, { ...record, expiresMs });
    } catch (error) {
      // The session is still valid; the next call tries again.
      this.#runtime.log.warn({ err: error }, "a session could not be prolonged");
    }
  }

  #prolongedMs({ idleMs, createdMs }: SessionRecord): number {
    return Math.min(this.#nowMs() + idleMs, createdMs + SESSION_MAX_MS);
  }

  #nowMs(): number {
    return this.#runtime.clock.nowMs();
  }
}
