import { AppError } from "../../../common/errors.ts";
import { INGEST_CLAIM_ATTEMPTS_MAX, INGEST_WRITE_SPAN_US } from "../../../common/limits.ts";
import type { BegunBatch, Mark, MarkStore, PinnedRule, VersionedMark } from "./store.ts";

export interface ClaimOptions {
  readonly marks: MarkStore;
  readonly streamId: string;
  readonly host: string;
  /** Unique. */
  readonly claim: string;
  readonly nowMs: () => number;
}

/**
 * A stream as its holder knows it: the session that claimed it last. Every write of the mark is conditional on the one
 * before, so the writes of a former holder fail, even after a long pause; and nothing of a batch is stored before the
 * mark names the batch, so the present holder knows every batch a former one may still store.
 */
export class HeldStream {
  readonly #with: ClaimOptions;
  #known: VersionedMark;
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(options: ClaimOptions, known: VersionedMark) {
    this.#with = options;
    this.#known = known;
  }

  static async claim(options: ClaimOptions): Promise<HeldStream> {
    const { marks, streamId, host, claim } = options;
    for (let attempt = 0; attempt < INGEST_CLAIM_ATTEMPTS_MAX; attempt++) {
      const found = await marks.load(streamId, host);
      await marks.register(streamId, host);
      const mark: Mark = { ...found.mark, claim };
      const revision = await marks.save(streamId, mark, found.revision);
      if (revision !== undefined) return new HeldStream(options, { mark, revision });
    }
    throw new AppError("unavailable", `The stream ${streamId} could not be claimed: others keep claiming it.`);
  }

  get mark(): Mark {
    return this.#known.mark;
  }

  /** One piece of work after the other. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Nothing of these entries may be stored before this resolves. */
  async begin(batch: {
    readonly first: number;
    readonly last: number;
    readonly rules: Readonly<Record<string, PinnedRule>>;
  }): Promise<BegunBatch> {
    // Above what this controller writes by itself in the same millisecond.
    const writeUs = Math.max((Math.floor(this.#with.nowMs()) + 1) * 1_000, this.mark.nextWriteUs);
    const begun = { ...batch, writeUs };
    await this.#save({
      ...this.mark,
      begun,
      nextWriteUs: writeUs + (batch.last - batch.first + 1) * INGEST_WRITE_SPAN_US,
    });
    return begun;
  }

  /** To be called when everything up to `sequence` is stored. */
  async finish(sequence: number): Promise<void> {
    const { begun, ...mark } = this.mark;
    await this.#save({ ...mark, acknowledged: sequence, ...(begun && begun.last > sequence ? { begun } : {}) });
  }

  async #save(mark: Mark): Promise<void> {
    const { marks, streamId } = this.#with;
    const revision = await marks.save(streamId, mark, this.#known.revision);
    if (revision === undefined) throw new AppError("conflict", `Another session goes on with the stream ${streamId}.`);
    this.#known = { mark, revision };
  }
}

/**
 * The time of a row's write: rises with the sequence and, inside an entry, with the ordinal; the same for every holder.
 */
export function writeTimeUs(begun: BegunBatch, sequence: number, ordinal: number): number {
  return begun.writeUs + (sequence - begun.first) * INGEST_WRITE_SPAN_US + Math.min(ordinal, INGEST_WRITE_SPAN_US - 1);
}
