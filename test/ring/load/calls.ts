import { isAppError } from "../../../common/errors.ts";
import { CHANGE_BATCH_MAX, STORE_CALL_DEADLINE_MS } from "../../../common/limits.ts";
import type { Page, PageRequest } from "../../../controller/store/objects.ts";
import { ARE_TIMES_BOUND } from "../../helpers/time/times.ts";

/** Tolerance added to a promised deadline: the time in which a busy machine notices that it has passed. */
const SLACK_MS = 3_000;

/** Number of store calls by kind and by fault. */
export interface Tally {
  writes: number;
  reads: number;
  unavailable: number;
  unknown: number;
  longestMs: number;
}

/** Store calls of a load, which are repeated as callers must, and the account of them. */
export class Calls {
  readonly tally: Tally = { writes: 0, reads: 0, unavailable: 0, unknown: 0, longestMs: 0 };
  /** Faults that calls returned, for the report. */
  readonly faults: string[] = [];
  readonly complaints: string[] = [];
  readonly #repeatsMax: number;

  /** `repeatsMax`: how often one call is repeated at most. */
  constructor(repeatsMax: number) {
    this.#repeatsMax = repeatsMax;
  }

  complain(text: string): void {
    this.complaints.push(text);
  }

  /** Makes a call and repeats it, as every caller does. */
  async make<T>(kind: "write" | "read", action: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const began = performance.now();
      try {
        const result = await action();
        this.tally[kind === "write" ? "writes" : "reads"]++;
        return result;
      } catch (error) {
        if (!isAppError(error, "unavailable", "unknown_outcome") || attempt > this.#repeatsMax) throw error;
        if (isAppError(error, "unknown_outcome") && kind === "read") throw error;
        this.tally[isAppError(error, "unavailable") ? "unavailable" : "unknown"]++;
        this.faults.push(`${kind}: ${error.code}: ${error.message}`);
      } finally {
        const tookMs = performance.now() - began;
        this.tally.longestMs = Math.max(this.tally.longestMs, Math.round(tookMs));
        if (ARE_TIMES_BOUND && tookMs > STORE_CALL_DEADLINE_MS + SLACK_MS)
          this.complain(`A ${kind} took ${Math.round(tookMs)} ms.`);
      }
    }
  }

  /** The items of all pages, which are read one after the other. */
  async *pages<T>(read: (page: PageRequest) => Promise<Page<T>>): AsyncGenerator<T> {
    let cursor: string | undefined;
    do {
      const request: PageRequest =
        cursor === undefined ? { limit: CHANGE_BATCH_MAX } : { limit: CHANGE_BATCH_MAX, cursor };
      const page = await this.make("read", () => read(request));
      yield* page.items;
      cursor = page.cursor;
    } while (cursor !== undefined);
  }
}
