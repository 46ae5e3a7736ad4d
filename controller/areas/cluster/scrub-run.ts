import { AppError, isAppError } from "../../../common/errors.ts";
import {
  SCRUB_AGE_MIN_MS,
  SCRUB_BYTES_PER_CHECK,
  SCRUB_EXAMPLES_MAX,
  SCRUB_PAGE_ROWS,
  SCRUB_PROGRESS_MS,
} from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { isTransient } from "../../store/journal/index.ts";
import { Retry } from "../../store/calls/retry.ts";
import type { ScrubStore } from "../../store/scrub.ts";
import type { IndexScrubPage, ObjectService } from "../objects/index.ts";
import { systemPrincipal } from "../permissions/index.ts";
import {
  SCRUB_STEPS,
  type VersionedScrub,
  type OpenScrub,
  type ScrubCounts,
  type ScrubJournal,
  type ScrubStep,
} from "./open-scrubs.ts";

/** Small, because each content may be large. */
const CONTENTS_PER_PAGE = 10;

export interface ScrubRunDependencies {
  readonly stores: Stores;
  readonly objects: Pick<ObjectService, "scrubIndexes">;
  readonly runtime: Runtime;
  readonly journal: ScrubJournal;
}

export interface CarriedScrub extends ScrubRunDependencies {
  /** Fires when a user stops the scrub at this controller. */
  readonly stopped: AbortSignal;
}

interface PageDone {
  readonly step: ScrubStep;
  readonly looked: number;
  readonly bytes?: number;
  readonly comparisons: number;
  readonly missing?: number;
  readonly superfluous?: number;
  readonly damaged?: number;
  readonly examples: readonly string[];
  readonly cursor?: string;
}

/** Another controller continues the scrub, or a user has stopped it. */
class Lost extends Error {}

/** Runs a scrub at this controller, page by page, within its rate. */
export class ScrubRun {
  readonly #with: CarriedScrub;
  readonly #retry: Retry;
  #held: VersionedScrub;
  /** Present state; `#held` is the recorded one. */
  #now: OpenScrub;
  #notedMs: number;

  constructor(held: VersionedScrub, dependencies: CarriedScrub) {
    this.#with = dependencies;
    this.#retry = new Retry(dependencies.runtime);
    this.#held = held;
    this.#now = held.open;
    this.#notedMs = dependencies.runtime.clock.monotonicMs();
  }

  /** Resolves with the decided scrub; `undefined` when it paused, or when this controller lost it. */
  async run(): Promise<OpenScrub | undefined> {
    try {
      if (this.#held.open.end === undefined) await this.#carry();
      return this.#held.open;
    } catch (error) {
      if (error instanceof Lost) return undefined;
      if (isTransient(error)) {
        this.#with.runtime.log.warn({ err: error, tenant: this.#now.tenant }, "a scrub rests and goes on later");
        return undefined;
      }
      if (!isAppError(error)) throw error;
      return this.#decided("failed", error.message);
    }
  }

  async #carry(): Promise<void> {
    const { clock } = this.#with.runtime;
    for (let step: ScrubStep | undefined = this.#now.step; step !== undefined; ) {
      const beganMs = clock.monotonicMs();
      const page = await this.#retry.run(() => this.#page());
      await this.#pace(page.comparisons, beganMs);
      if (page.cursor === undefined) step = SCRUB_STEPS[SCRUB_STEPS.indexOf(step) + 1];
      this.#now = { ...this.#now, ...added(this.#now, page), step: step ?? page.step, cursor: page.cursor };
      if (clock.monotonicMs() - this.#notedMs >= SCRUB_PROGRESS_MS) await this.#note();
    }
    await this.#decided("done", "");
  }

  async #page(): Promise<PageDone> {
    const { step, cursor, tenant } = this.#now;
    const limit = step === "contents" ? CONTENTS_PER_PAGE : SCRUB_PAGE_ROWS;
    const request = { limit, ...(cursor !== undefined && { cursor }), beforeUs: this.#beforeUs() };
    const { scrub } = await this.#with.stores.tenant(tenant);
    if (step === "contents") return this.#contents(scrub, request);
    if (step === "objects" || step === "indexes") return { ...(await this.#indexes(step, request)), step };
    const page = await scrub.edges(step === "sources" ? "source" : "target", request);
    return { ...page, comparisons: 2 * page.looked, step };
  }

  #indexes(
    step: "objects" | "indexes",
    request: { readonly limit: number; readonly cursor?: string; readonly beforeUs: number },
  ): Promise<IndexScrubPage> {
    const { tenant, ospace, traceparent } = this.#now;
    return this.#with.objects.scrubIndexes(systemPrincipal(tenant, ospace, traceparent), { ...request, step });
  }

  async #contents(
    scrub: ScrubStore,
    { limit, cursor }: { readonly limit: number; readonly cursor?: string },
  ): Promise<PageDone> {
    const { items, cursor: next } = await scrub.contents({ limit, ...(cursor !== undefined && { cursor }) });
    const damaged: string[] = [];
    let read = 0;
    for (const { digest } of items) {
      const state = await scrub.verify(digest, async (bytes) => {
        read += bytes;
        await this.#pace(Math.ceil(bytes / SCRUB_BYTES_PER_CHECK), this.#with.runtime.clock.monotonicMs());
      });
      if (state === "damaged") damaged.push(`damaged: content ${digest}`);
    }
    const done = { step: "contents" as const, looked: items.length, comparisons: items.length };
    const found = { bytes: read, damaged: damaged.length, examples: damaged };
    return { ...done, ...found, ...(next === undefined ? {} : { cursor: next }) };
  }

  #beforeUs(): number {
    return (this.#with.runtime.clock.nowMs() - SCRUB_AGE_MIN_MS) * 1_000;
  }

  /** Waits to keep the rate. Throws when the controller stops or the scrub was stopped. */
  async #pace(comparisons: number, beganMs: number): Promise<void> {
    const { runtime, journal, stopped } = this.#with;
    const { stopping } = journal.inFlight;
    const takenMs = runtime.clock.monotonicMs() - beganMs;
    const restMs = (comparisons / this.#now.rate) * 1_000 - takenMs;
    if (restMs > 0) await wait(runtime.clock, restMs, stopping, stopped);
    if (stopped.aborted) throw new Lost();
    if (stopping.aborted) throw new AppError("cancelled", "The controller is shutting down.");
  }

  async #note(): Promise<void> {
    const { step, cursor, looked, bytes, missing, superfluous, damaged, examples } = this.#now;
    const changes = { step, cursor, looked, bytes, missing, superfluous, damaged, examples };
    const stepped = await this.#with.journal.step(this.#held, changes);
    if (stepped === undefined) throw new Lost();
    this.#held = stepped;
    this.#notedMs = this.#with.runtime.clock.monotonicMs();
  }

  async #decided(state: "done" | "failed", message: string): Promise<OpenScrub> {
    await this.#note();
    const endedMs = this.#with.runtime.clock.nowMs();
    const decided = await this.#with.journal.decide(this.#held, { state, message, endedMs });
    if (decided === undefined) throw new Lost();
    this.#held = decided;
    return decided.open;
  }
}

function added(counts: ScrubCounts, page: PageDone): ScrubCounts {
  return {
    looked: { ...counts.looked, [page.step]: counts.looked[page.step] + page.looked },
    bytes: counts.bytes + (page.bytes ?? 0),
    missing: counts.missing + (page.missing ?? 0),
    superfluous: counts.superfluous + (page.superfluous ?? 0),
    damaged: counts.damaged + (page.damaged ?? 0),
    examples: [...counts.examples, ...page.examples].slice(0, SCRUB_EXAMPLES_MAX),
  };
}
