import { ANCHOR_OF_HEADS, type Anchor } from "../../../common/audit-anchor.ts";
import { errorText } from "../../../common/errors.ts";
import { AUDIT_ANCHOR_INTERVAL_MS } from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import type { AnchorFile } from "./anchor-file.ts";
import type { AuditRecord } from "./chain.ts";

export interface AnchoringOptions {
  readonly runtime: Pick<Runtime, "clock" | "log">;
  readonly file: AnchorFile;
}

/**
 * Writes the newest digest of every run of this controller to a file outside the store, every
 * `AUDIT_ANCHOR_INTERVAL_MS` and when the controller stops. A failed write is logged and repeated; the trail continues
 * without it.
 */
export class Anchoring {
  readonly file: AnchorFile;
  readonly #runtime: AnchoringOptions["runtime"];
  /** Anchors that are not in the file yet, by tenant and run; also of runs that have ended. */
  readonly #waiting = new Map<string, Anchor>();
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #writing: Promise<void> = Promise.resolve();
  #failure: string | undefined;

  constructor({ runtime, file }: AnchoringOptions) {
    this.file = file;
    this.#runtime = runtime;
  }

  /** Call it when the entry, or the seal of all heads, is durable in the store. */
  kept(anchor: Anchor): void {
    this.#waiting.set(placeOf(anchor), anchor);
  }

  /** Number of runs with entries that are not in the file. */
  get waiting(): number {
    return [...this.#waiting.values()].filter(({ run }) => run !== ANCHOR_OF_HEADS).length;
  }

  /** Reason why the last write failed; `undefined` if it succeeded. */
  get failure(): string | undefined {
    return this.#failure;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Writes the last digests to the file; a failure is logged. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.write();
  }

  /** Writes run one after another; never throws. */
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

export function anchorOf({ timeMs, tenant, run, sequence, hash }: AuditRecord): Anchor {
  return { timeMs, tenant, run, sequence, hash };
}
