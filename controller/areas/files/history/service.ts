import { AppError } from "../../../../common/errors.ts";
import {
  FILE_HISTORY_LOOK_MS,
  FILE_HISTORY_ROWS_PER_SWEEP,
  FILE_TRASH_PAGE_MAX,
  FILE_TRASH_SPAN_MS,
} from "../../../../common/limits.ts";
import { isInside } from "../../../../common/paths.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { pathAllowed, requirePermission, systemPrincipal, type Principal } from "../../permissions/index.ts";
import type { Carrying } from "../carrying.ts";
import type { FileContents } from "../contents.ts";
import { placeBelowRoot, placeOf, type FileName, type Place } from "../names.ts";
import { notFound, openPlace, visiblePlace } from "../open-places.ts";
import type { FileStore } from "../store.ts";
import type { FileEdits } from "../transfer/edits.ts";
import { quietPlaces } from "../transfer/expected.ts";
import type { FileVisibility } from "../visible.ts";
import type { FileWorkJournal } from "../work-journal.ts";
import type { FormerFile } from "./former.ts";
import { RemovalPurge } from "./purging.ts";
import { newestFirst, type HistoryStore } from "./store.ts";

interface Dependencies {
  readonly stores: Stores;
  readonly journal: FileWorkJournal;
  readonly runtime: Pick<Runtime, "clock">;
  readonly store: FileStore;
  readonly history: HistoryStore;
  readonly contents: FileContents;
  readonly edits: FileEdits;
  readonly carrying: Carrying;
  readonly visibilityOf: (principal: Principal) => Promise<FileVisibility>;
}

interface Page {
  readonly former: readonly FormerFile[];
  /** The `after` of the next page; absent: this page is the last one. */
  readonly next?: string;
}

/** Former contents of files, and what was removed. The rights are those on the file of the same path. */
export class FileHistory {
  readonly #with: Dependencies;
  /** Times before which the histories of tenants are not checked. */
  readonly #looks = new Map<string, number>();

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** Former contents of a file, newest first. `AppError("not_found")` if there are none, and no file. */
  async list(principal: Principal, name: FileName): Promise<readonly FormerFile[]> {
    requirePermission(principal, "files:read");
    const { place, visibility } = await this.#seen(principal, name);
    const { now, former } = await this.#formerOf(principal, place, visibility);
    if (former.length === 0 && !(now && visibility.shown(now))) throw notFound(place);
    return shownOf(visibility, former);
  }

  /** Files and folders below a folder that were removed and are not there again, newest first. */
  async trash(
    principal: Principal,
    name: FileName,
    { after, limit }: { readonly after?: string | undefined; readonly limit: number },
  ): Promise<Page> {
    requirePermission(principal, "files:read");
    const folder = visiblePlace(principal, placeOf(name));
    const { runtime, history } = this.#with;
    const most = Math.min(limit, FILE_TRASH_PAGE_MAX);
    const behind = after === undefined ? undefined : positionOf(after);
    const visibility = await this.#with.visibilityOf(principal);
    const oldestMs = runtime.clock.nowMs() - (history.bounds?.ageMs ?? 0) - FILE_HISTORY_LOOK_MS;
    const found: FormerFile[] = [];
    let toMs = behind?.atMs ?? runtime.clock.nowMs();
    for (let spanMs = FILE_TRASH_SPAN_MS; toMs >= oldestMs && found.length <= most; spanMs *= 4) {
      const fromMs = toMs - spanMs;
      found.push(...(await this.#removed(principal, { folder, fromMs, toMs, behind, most, visibility })));
      toMs = fromMs - 1;
    }
    const former = found.slice(0, most);
    const last = former.at(-1);
    return { former, ...(found.length > most && last && { next: `${last.atMs}.${last.key}` }) };
  }

  /**
   * Restores a former content of a file, or a removed folder with everything that was removed with it, and returns the
   * number of files. Files that are there again stay. `AppError("not_found")` for an unknown key, `deadline`: the
   * restore of a folder continues in the background.
   */
  async restore(principal: Principal, name: FileName, key: string): Promise<number> {
    requirePermission(principal, "files:write");
    const { store, contents, edits, carrying } = this.#with;
    const { place, visibility } = await this.#seen(principal, name);
    const former = await this.#named(principal, { place, visibility, key });
    const { content, size, ftype, attr, tags, indexed } = former.entry;
    if (!content) {
      const work = carrying.newWork(principal, visibility, { kind: "recover", place, removal: former.removal });
      return (await carrying.carry(work)).changed ?? 0;
    }
    visibility.requireAllOf(former.entry);
    const kept = await contents.markAnew(principal, content, size);
    try {
      const isThere = (await store.find(principal, place)) !== undefined;
      const notes = isThere ? {} : { ftype, attr, tags };
      await edits.save(principal, place, { content: kept, notes, isSearched: indexed });
    } finally {
      await kept.release();
    }
    return 1;
  }

  /**
   * Purges one former content of a file, or all of them without a key; with the key of a removed folder, everything that
   * was removed with it. Returns the number of contents. `AppError("not_found")` if there are none, `denied` if the rules
   * forbid to remove one of them, `conflict` if the folder is still being removed or restored: then nothing is purged.
   * A purge of a folder that breaks off has purged a part; a repetition purges the rest.
   */
  async purge(
    principal: Principal,
    name: FileName,
    { key, signal }: { readonly key?: string | undefined; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<number> {
    requirePermission(principal, "files:write");
    const { history } = this.#with;
    const { place, visibility } = await this.#seen(principal, name);
    const require = ({ entry }: FormerFile): void => visibility.requireWriting(entry, { before: entry, columns: [] });
    if (key === undefined) {
      const { former } = await this.#formerOf(principal, place, visibility);
      if (former.length === 0) throw notFound(place);
      former.forEach(require);
      await history.purge(principal, former);
      return former.length;
    }
    const top = await this.#named(principal, { place, visibility, key });
    require(top);
    if (!top.entry.content) await quietPlaces(this.#with, principal.tenant, [place]);
    const purging = new RemovalPurge(history, principal, { top, signal });
    if (visibility.rules !== undefined) for await (const some of purging.below()) some.forEach(require);
    return purging.run();
  }

  /** Purges what is older than the bounds of the tenant, in steps of bounded length. */
  async sweep(tenant: string, ospace: string): Promise<void> {
    const { history, runtime } = this.#with;
    const nowMs = runtime.clock.nowMs();
    if ((this.#looks.get(tenant) ?? 0) > nowMs) return;
    const principal = systemPrincipal(tenant, ospace, "");
    const toMs = await this.#endOf(principal, nowMs);
    if (await history.purgeUpTo(principal, toMs, FILE_HISTORY_ROWS_PER_SWEEP))
      this.#looks.set(tenant, nowMs + FILE_HISTORY_LOOK_MS);
  }

  async #seen(principal: Principal, name: FileName) {
    const place = openPlace(principal, placeBelowRoot(name));
    return { place, visibility: await this.#with.visibilityOf(principal) };
  }

  /** The file as it is, and its former contents that the principal sees, newest first, with their hidden columns. */
  async #formerOf(principal: Principal, place: Place, visibility: FileVisibility) {
    const { store, history } = this.#with;
    const now = await store.find(principal, place);
    const found = (await history.of(principal, [place])).filter(({ entry }) => visibility.shown(entry));
    return { now, former: found.filter(({ entry }) => entry.content?.mark !== now?.content?.mark) };
  }

  async #named(
    principal: Principal,
    { place, visibility, key }: { readonly place: Place; readonly visibility: FileVisibility; readonly key: string },
  ): Promise<FormerFile> {
    const former = await this.#with.history.find(principal, key);
    const isHere = former?.entry.fullname === place.fullname && former.entry.space === place.space;
    if (former && isHere && visibility.shown(former.entry)) return former;
    throw new AppError("not_found", `The history has no ${key} of ${place.fullname}.`);
  }

  async #endOf(principal: Principal, nowMs: number): Promise<number> {
    const { history } = this.#with;
    if (!history.bounds) return nowMs;
    const { ageMs, maxBytes } = history.bounds;
    return history.timeOfBytes(principal, { fromMs: nowMs - ageMs, toMs: nowMs, maxBytes });
  }

  /** The newest in a span of time, at most one more than a page. */
  async #removed(principal: Principal, { folder, fromMs, toMs, behind, most, visibility }: Looking) {
    const { history, store } = this.#with;
    let found: FormerFile[] = [];
    const where = [
      { kind: "equals", column: "top", values: ["yes"] },
      { kind: "range", column: "at", from: fromMs, to: toMs },
    ] as const;
    for await (const page of history.read(principal, where)) {
      const some = shownOf(visibility, page).filter(
        (one) =>
          one.isTop &&
          one.atMs >= fromMs &&
          one.atMs <= toMs &&
          one.entry.space === folder.space &&
          isInside(folder.fullname, one.entry.fullname) &&
          pathAllowed(principal, one.entry.fullname) &&
          (!behind || newestFirst(behind, one) < 0),
      );
      const now = await store.get(
        principal,
        some.map(({ entry }) => entry),
      );
      found.push(...some.filter((_, at) => !now[at]));
      if (found.length > 4 * most) found = found.sort(newestFirst).slice(0, most + 1);
    }
    return found.sort(newestFirst).slice(0, most + 1);
  }
}

interface Looking {
  readonly folder: Place;
  readonly fromMs: number;
  readonly toMs: number;
  readonly behind: Position | undefined;
  readonly most: number;
  readonly visibility: FileVisibility;
}

type Position = Pick<FormerFile, "atMs" | "key">;

function positionOf(after: string): Position {
  const [, at, key] = /^(\d{1,15})\.([\w-]{43})$/.exec(after) ?? [];
  if (at === undefined || key === undefined)
    throw new AppError("invalid", "after is to be the member next of an earlier answer.");
  return { atMs: Number(at), key };
}

/** As the principal may see them. */
function shownOf(visibility: FileVisibility, former: readonly FormerFile[]): readonly FormerFile[] {
  return former.flatMap((one) => {
    const entry = visibility.shown(one.entry);
    if (!entry) return [];
    // The user who replaced a file owns it now.
    const user = entry.owner === one.entry.owner ? one.user : "";
    return [{ ...one, entry, user }];
  });
}
