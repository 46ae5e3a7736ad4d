import { errorText, isAppError } from "../../../common/errors.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import type { KvEntry, KvStore } from "../kv.ts";

const AGAIN_MS = 1_000;

export interface FollowedKeysOptions {
  readonly kv: KvStore;
  readonly prefix: string;
  readonly runtime: Runtime;
  readonly put: (entry: KvEntry) => void;
  /** Called when the key was removed, at that revision or before. */
  readonly end: (key: string, revision: number) => void;
}

/**
 * Reports the existing entries under a prefix, then every change. If the watch breaks, it lists the entries again and
 * reports the present state of each; changes in between may be missing.
 */
export class FollowedKeys {
  readonly #with: FollowedKeysOptions;
  readonly #keys = new Set<string>();
  readonly #stop = new AbortController();
  #watching: Promise<void> | undefined;

  constructor(options: FollowedKeysOptions) {
    this.#with = options;
  }

  /** Resolves when every existing entry has been reported. */
  async start(): Promise<void> {
    const revision = await this.#reload();
    this.#watching = this.#watch(revision);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#watching;
  }

  async #watch(sinceRevision: number): Promise<void> {
    const { kv, prefix } = this.#with;
    let revision = sinceRevision;
    while (!this.#stop.signal.aborted) {
      try {
        for await (const events of kv.watch(prefix, { sinceRevision: revision, signal: this.#stop.signal })) {
          for (const event of events) {
            revision = event.kind === "put" ? event.entry.revision : event.revision;
            if (event.kind === "put") this.#put(event.entry);
            else this.#end(event.key, event.revision);
          }
        }
      } catch (error) {
        revision = await this.#recover(error, revision);
      }
    }
  }

  async #recover(error: unknown, revision: number): Promise<number> {
    const { runtime, prefix } = this.#with;
    if (this.#stop.signal.aborted) return revision;
    if (!isAppError(error, "compacted")) runtime.log.warn({ prefix, reason: errorText(error) }, "a watch broke");
    try {
      return await this.#reload();
    } catch {
      await wait(runtime.clock, AGAIN_MS, this.#stop.signal);
      return revision;
    }
  }

  async #reload(): Promise<number> {
    const { kv, prefix } = this.#with;
    const found = new Set<string>();
    let after: string | undefined;
    let first: number | undefined;
    do {
      const page = await kv.list(prefix, after === undefined ? {} : { after });
      first ??= page.revision;
      for (const entry of page.entries) {
        found.add(entry.key);
        this.#put(entry);
      }
      after = page.next;
    } while (after !== undefined);
    for (const key of this.#keys) if (!found.has(key)) this.#end(key, first);
    return first;
  }

  #put(entry: KvEntry): void {
    this.#keys.add(entry.key);
    this.#with.put(entry);
  }

  #end(key: string, revision: number): void {
    this.#keys.delete(key);
    this.#with.end(key, revision);
  }
}
