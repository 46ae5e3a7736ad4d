import { AppError } from "../../../common/errors.ts";
import { CONFIG_WATCHED_MAX_ENTRIES } from "../../../common/limits.ts";
import { isInside } from "../../../common/paths.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import type { EntryEvent } from "./entries.ts";
import { anyKey, below, ROOT } from "./keys.ts";
import { visibilityOf, type ConfigVisibility, type ShownRecord } from "./rights.ts";
import type { ConfigDependencies } from "./service.ts";

/** A frame of a watch. */
export type WatchedChange =
  | ShownRecord
  /** The entry was deleted, has expired, or is no longer visible to the reader. */
  | { readonly key: string; readonly deleted: true }
  /** All present entries have been sent; the frames that follow are changes. */
  | { readonly ready: true };

export interface ConfigReader {
  readonly signal: AbortSignal;
  /** See `SocketCall`. */
  readonly present: () => Promise<Principal | undefined>;
}

/** Follows configuration. Each frame is made with the rights that the reader has at that time. */
export class ConfigWatch {
  readonly #with: ConfigDependencies;

  constructor(dependencies: ConfigDependencies) {
    this.#with = dependencies;
  }

  /**
   * Yields the entries at and below the key, then `ready`, then every change, until the signal fires. Frames of one key
   * are in the order of its changes. `AppError("denied")` if the reader loses the right to read.
   * `AppError("too_large")` beyond `CONFIG_WATCHED_MAX_ENTRIES`. `AppError("compacted")` if the reader was too slow: it
   * must watch again, because changes were missed.
   */
  async *follow(principal: Principal, text: string, reader: ConfigReader): AsyncGenerator<WatchedChange> {
    requirePermission(principal, "config:read");
    const key = anyKey(text);
    const { tenant } = principal;
    const told = new Told();
    const sinceRevision = yield* this.#present({ tenant, key }, reader, told);
    yield { ready: true };
    // The watch also reports keys that begin with the same text but are not below the key.
    const events = this.#with.entries.watch(tenant, key, { sinceRevision, signal: reader.signal });
    for await (const batch of events) {
      const visibility = await this.#visibility(reader);
      for (const event of batch) if (isInside(key, event.key)) yield* told.take(event, visibility);
    }
  }

  /** Yields the present entries. Returns the revision of the store after which changes must be watched. */
  async *#present(
    { tenant, key }: { readonly tenant: string; readonly key: string },
    reader: ConfigReader,
    told: Told,
  ): AsyncGenerator<WatchedChange, number> {
    const { entries } = this.#with;
    let sinceRevision: number | undefined;
    let after: string | undefined;
    do {
      const visibility = await this.#visibility(reader);
      const page = await entries.page(tenant, below(key), after === undefined ? {} : { after });
      const own = sinceRevision === undefined && key !== ROOT ? await entries.get(tenant, key) : undefined;
      sinceRevision ??= page.revision;
      for (const entry of [...(own ? [own] : []), ...page.entries])
        yield* told.take({ key: entry.key, revision: entry.revision, entry }, visibility);
      after = page.next;
    } while (after !== undefined);
    return sinceRevision;
  }

  async #visibility({ present }: ConfigReader): Promise<ConfigVisibility> {
    const now = await present();
    if (now === undefined) throw new AppError("denied", "The user is signed out, or lost the permission.");
    const { objects, owners, runtime } = this.#with;
    return visibilityOf(now, { objects, owners, clock: runtime.clock });
  }
}

/** Revisions of the entries that were sent to the reader, so that no older state is sent later. */
class Told {
  readonly #revisions = new Map<string, number>();

  *take({ key, revision, entry }: EntryEvent, visibility: ConfigVisibility): Generator<WatchedChange> {
    const known = this.#revisions.get(key);
    if (known !== undefined && known >= revision) return;
    if (entry && visibility.sees(entry)) {
      this.#revisions.set(key, revision);
      if (this.#revisions.size > CONFIG_WATCHED_MAX_ENTRIES)
        throw new AppError("too_large", `One watch tells of at most ${CONFIG_WATCHED_MAX_ENTRIES} entries.`);
      yield visibility.shown(entry);
    } else if (this.#revisions.delete(key)) yield { key, deleted: true };
  }
}
