import { ANCHOR_OF_HEADS, type Anchor } from "../../../common/audit-anchor.ts";
import { errorText } from "../../../common/errors.ts";
import { AUDIT_ANCHOR_INTERVAL_MS } from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import type { AnchorFile } from "./anchor-file.ts";

export interface AnchoringOptions {
  readonly runtime: Pick<Runtime, "clock" | "log">;
  readonly file: AnchorFile;
}

/**
 * Puts the newest digest of every run of this controller into a file outside the store, every
 * `AUDIT_ANCHOR_INTERVAL_MS` and when the controller stops. What the disk refuses is told and tried again: the trail
 * goes on without it.
 */
export class Anchoring {
  readonly file: AnchorFile;
  readonly #runtime: AnchoringOptions["runtime"];
  /** By tenant and run: of a run that is over, until it is in the file. */
  readonly #waiting = new Map<string, Anchor>();
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #writing: Promise<void> = Promise.resolve();
  #failure: string | undefined;

  constructor({ runtime, file }: AnchoringOptions) {
    this.file = file;
    this.#runtime = runtime;
  }

  /** The entry, or what is sealed of all runs, is durable in the store. */
  kept(anchor: Anchor): void {
    this.#waiting.set(placeOf(anchor), anchor);
  }

  /** Runs with entries that are not in the file. */
  get waiting(): number {
    return [...this.#waiting.values()].filter(({ run }) => run !== ANCHOR_OF_HEADS).length;
  }

  /** Why the last write failed; undefined when it did not. */
  get failure(): string | undefined {
    return this.#failure;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** With the last digests in the file, or told that they are not. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.write();
  }

  /** One after the other; never throws. */
  write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      await wait(this.#runtime.clock, AUDIT_ANCHOR_INTERVAL_MS, signal);
      if (signal.aborted) return;
      await this.write();
    }
  }

  async #write(): Promise<void> {
    const anchors = [...this.#waiting.values()];
    if (anchors.length === 0) return;
    try {
      await this.file.append(anchors);
      for (const anchor of anchors)
        if (this.#waiting.get(placeOf(anchor)) === anchor) this.#waiting.delete(placeOf(anchor));
      this.#failure = undefined;
    } catch (error) {
      this.#failure = errorText(error);
      this.#runtime.log.error(
        { err: error, file: this.file.path, runs: anchors.length },
        "THE AUDIT TRAIL IS NOT ANCHORED: its newest digests could not be written outside the store",
      );
    }
  }
}

function placeOf({ tenant, run }: Anchor): string {
  return `${tenant}/${run}`;
}
