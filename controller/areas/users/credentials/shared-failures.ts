import { createHash } from "node:crypto";
import { AppError } from "../../../../common/errors.ts";
import { SIGN_IN_COUNT_ATTEMPTS_MAX, SIGN_IN_FORGET_MS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import type { Stores } from "../../../store/engine.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvEntry, KvStore } from "../../../store/kv.ts";
import { delayMs } from "./failures.ts";

/** Key prefix in the system store; a digest of the counter's name follows. */
const FAILURES = "signinfailures/";

interface FailureRecord {
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly blockedUntilMs: number;
}

export interface SharedCount {
  readonly record: FailureRecord;
  readonly waitMs: number;
  readonly isThere: boolean;
}

/** A failure that was counted before the check of its attempt: end of the waiting time with and without it. */
export interface CountedBefore {
  readonly untilMs: number;
  readonly beforeUntilMs: number;
}

const NONE: FailureRecord = { count: 0, blockedUntilMs: 0 };

/**
 * Failures on all controllers, by the name of a counter. They are forgotten `SIGN_IN_FORGET_MS` after the last change.
 */
export class SharedFailures {
  readonly #stores: Stores;
  readonly #clock: Clock;

  constructor(stores: Stores, clock: Clock) {
    this.#stores = stores;
    this.#clock = clock;
  }

  async read(name: string): Promise<SharedCount> {
    const entry = await (await this.#kv()).get(keyOf(name));
    const record = recordOf(entry);
    return { record, waitMs: record.blockedUntilMs - this.#clock.nowMs(), isThere: entry !== undefined };
  }

  /** Counts one failure. With `ifFree`, does not count during a waiting time, and answers `undefined`. */
  async count(name: string, free: number, ifFree = false): Promise<CountedBefore | undefined> {
    return this.#change(name, (record) => {
      const nowMs = this.#clock.nowMs();
      if (ifFree && nowMs < record.blockedUntilMs) return undefined;
      const count = record.count + 1;
      const untilMs = Math.max(record.blockedUntilMs, nowMs + delayMs(count, free));
      return { next: { count, blockedUntilMs: untilMs }, answer: { untilMs, beforeUntilMs: record.blockedUntilMs } };
    });
  }

  /**
   * Takes a count back, because the attempt did not fail. Its waiting time ends too, unless others have extended it.
   */
  async takeBack(name: string, { untilMs, beforeUntilMs }: CountedBefore): Promise<void> {
    await this.#change(name, ({ count, blockedUntilMs }) => {
      if (count === 0) return undefined;
      const left = blockedUntilMs === untilMs ? beforeUntilMs : blockedUntilMs;
      return { next: { count: count - 1, blockedUntilMs: left }, answer: undefined };
    });
  }

  async forget(name: string): Promise<void> {
    await (await this.#kv()).delete(keyOf(name));
  }

  async #change<T>(
    name: string,
    make: (record: FailureRecord) => { readonly next: FailureRecord; readonly answer: T } | undefined,
  ): Promise<T | undefined> {
    const kv = await this.#kv();
    const key = keyOf(name);
    let entry = await kv.get(key);
    for (let attempt = 0; attempt < SIGN_IN_COUNT_ATTEMPTS_MAX; attempt++) {
      const made = make(recordOf(entry));
      if (made === undefined) return undefined;
      const expiresAtMs = Math.floor(this.#clock.nowMs()) + SIGN_IN_FORGET_MS;
      const put = await kv.put(key, encodeJson(made.next), { ifRevision: entry?.revision ?? 0, expiresAtMs });
      if (put.ok) return made.answer;
      entry = put.current;
    }
    throw new AppError("limited", "Too many sign-ins at once; come back later.");
  }

  async #kv(): Promise<KvStore> {
    return (await this.#stores.system()).kv;
  }
}

function recordOf(entry: KvEntry | undefined): FailureRecord {
  return entry === undefined ? NONE : decodeStored<FailureRecord>(entry.value);
}

function keyOf(name: string): string {
  return FAILURES + createHash("sha256").update(name).digest("hex");
}
