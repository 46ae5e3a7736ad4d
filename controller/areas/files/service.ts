import { AppError } from "../../../common/errors.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { Controllers } from "../../store/journal/index.ts";
import { TAGS_COLUMN, type Edit, type Objects, type TenantRoom } from "../objects/index.ts";
import { pathAllowed, pathVisible, requireOneOf, requirePermission, type Principal } from "../permissions/index.ts";
import type { FileSource } from "../rules/index.ts";
import { FileArchives } from "./archive/service.ts";
import { entryOf, placeColumns, refOf, type FileEntry } from "./entries.ts";
import { HidingGuard, type RunNames } from "./hiding.ts";
import { nameOf, placeBelowRoot, placeIn, placeOf, type FileName, type Place, type Space } from "./names.ts";
import { Carrying } from "./carrying.ts";
import { WriteRights } from "./write-rights.ts";
import { FileContents, type Content, type OpenedFile, type TextFile } from "./contents.ts";
import { notFound, openPlace, visiblePlace, withoutPaths } from "./open-places.ts";
import { noteColumns, typeOf, type FileNotes } from "./notes.ts";
import { mayNameSystem, servedNames } from "./spaces.ts";
import { platform, FileStore } from "./store.ts";
import type { KeptContent } from "./transfer/kept-content.ts";
import { IndexedWrites, type IndexKeeper } from "./search/keeper.ts";
import { FileVersions } from "./versions/service.ts";
import { KeptTreeWorks } from "./versions/work.ts";
import { fileVisibility, type FileVisibility, ALL_VISIBLE } from "./visible.ts";
import { FileWorkJournal } from "./work-journal.ts";
import { FileWorks } from "./work.ts";

type RightsOfEveryone = Pick<Principal, "grants" | "data" | "paths">;

interface Dependencies {
  readonly stores: Stores;
  readonly objects: Objects;
  readonly runtime: Runtime;
  readonly controllers: Controllers;
  /** Absent: tenants have no quota. */
  readonly room?: TenantRoom;
  /** Rights that every user of a tenant has. Absent: `isOpenToAll` is always false. */
  readonly everyone?: (tenant: string) => Promise<RightsOfEveryone>;
  /** Other paths under which files run. Absent: a file runs only under its own path. */
  readonly runNames?: RunNames;
  /** Absent: contents are not searched. */
  readonly keeper?: IndexKeeper;
}

/** Files of a tenant: content in the blob store, metadata as objects of `/filesystem`. */
export class FileService implements FileSource {
  readonly archives: FileArchives;
  readonly #with: Dependencies;
  readonly #store: FileStore;
  readonly #journal: FileWorkJournal;
  readonly #works: FileWorks;
  readonly #hiding: HidingGuard;
  readonly #contents: FileContents;
  readonly #carrying: Carrying;
  readonly #rights: WriteRights;
  readonly #indexed: IndexedWrites;
  readonly #visibility: (principal: Principal) => Promise<FileVisibility>;
  readonly versions: FileVersions;

  constructor(dependencies: Dependencies) {
    const { stores, objects, runtime, keeper } = dependencies;
    this.#with = dependencies;
    const nowMs = (): number => runtime.clock.nowMs();
    const store = (this.#store = new FileStore({ stores, objects, nowMs }));
    const journal = (this.#journal = new FileWorkJournal(dependencies));
    const hiding = (this.#hiding = new HidingGuard(store, dependencies.runNames));
    const visibilityOf = (this.#visibility = (principal) => fileVisibility(principal, { objects, nowMs }));
    const parts = { stores, runtime, store, journal, hiding, visibilityOf, keeper };
    this.#works = new FileWorks({ ...parts, kept: new KeptTreeWorks(parts) });
    this.#indexed = new IndexedWrites(store, keeper);
    this.#rights = new WriteRights(runtime.clock, visibilityOf);
    this.#carrying = new Carrying({ ...parts, works: this.#works });
    this.versions = new FileVersions({ ...parts, carrying: this.#carrying });
    this.archives = new FileArchives({ ...parts, ...dependencies });
    this.#contents = new FileContents({ ...parts, room: dependencies.room });
  }

  /**
   * Inserts or replaces a file, and makes the folders above it. The old content is deleted when nothing refers to it
   * any more. Without `content`, an existing file keeps its content and a new one is empty. `AppError("conflict")` if
   * there is a folder at the place, or a file in place of a folder above. `AppError("denied")` if a new file would hide
   * a system file. Returns warnings: reasons why the file will not run or be served.
   */
  async write(
    principal: Principal,
    name: FileName,
    content?: Content,
    notes: FileNotes = {},
  ): Promise<readonly string[]> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    const columns = noteColumns(notes);
    const before = await this.#store.find(principal, place);
    const ftype = notes.ftype === undefined && before ? before.ftype : typeOf(place, notes.ftype);
    const row = { ...placeColumns(place), ...columns, ftype };
    const written = content ?? (before ? undefined : { text: "" });
    await this.#rights.requireWriting(principal, place, { before, row, given: { ...notes, content: written } });
    await this.#requireRoomFor(principal, place, before);
    const warnings = await this.#hiding.warnings(principal, place);
    await this.#store.makeFoldersAbove(principal, place);
    const kept = written && (await this.#contents.keep(principal, written));
    const own = kept && {
      ...kept.held,
      size: kept.size,
      owner: principal.user,
      modified: this.#with.runtime.clock.nowMs(),
    };
    kept?.use();
    await this.#indexed.insert(principal, { place, before, row: { ...row, ...own }, isContent: kept !== undefined });
    if (before?.content && kept) await this.#store.unmark(principal, [before.content]);
    // Repeat this: a folder may have been removed meanwhile. A removal spares entries written after it began.
    await this.#store.makeFoldersAbove(principal, place);
    return warnings;
  }

  /**
   * Stores the bytes of a file for a later `write` at that place, and checks before it reads them that the principal may
   * write there. The caller releases what it does not write. No temporary copy is made.
   */
  async takeIn(principal: Principal, name: FileName, bytes: AsyncIterable<Uint8Array>): Promise<KeptContent> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    await this.#rights.requireSomeWriting(principal);
    await this.#requireRoomFor(principal, place, await this.#store.find(principal, place));
    return this.#contents.keepBytes(principal, bytes);
  }

  /** Throws if a file cannot be at the place: a folder is there, or the file would hide a system file. */
  async #requireRoomFor(principal: Principal, place: Place, before: FileEntry | undefined): Promise<void> {
    if (before && !before.content) throw new AppError("conflict", `${place.fullname} is a folder.`);
    if (!before && !mayNameSystem(principal)) await this.#hiding.requireNothingHidden(principal, [place]);
  }

  /** Makes the folder and those above it. An existing one gets the notes. `AppError("conflict")` for a file. */
  async makeFolder(principal: Principal, name: FileName, notes: FileNotes = {}): Promise<void> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    const columns = noteColumns(notes);
    const before = await this.#store.find(principal, place);
    const row = { ...(before ? placeColumns(place) : this.#store.folderRow(principal, place)), ...columns };
    await this.#rights.requireWriting(principal, place, { before, row, given: notes });
    await this.#store.makeFoldersAbove(principal, place);
    await this.#store.makeFolders(principal, [place]);
    if (Object.keys(columns).length > 0) await this.#store.insert(principal, [{ ...placeColumns(place), ...columns }]);
    await this.#store.makeFoldersAbove(principal, place);
  }

  /** Sets attributes or tags of a file or folder. */
  async note(principal: Principal, name: FileName, notes: Omit<FileNotes, "ftype">): Promise<void> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    const row = noteColumns(notes);
    const edits = Object.entries(row).map(([column, value]) => ({ column, operation: "set", value }) as const);
    if (edits.length === 0) throw new AppError("invalid", "There is nothing to set: neither attr nor tags.");
    const before = await this.#seen(principal, place);
    if (!before) throw notFound(place);
    await this.#rights.requireWriting(principal, place, { before, row, given: notes });
    const ref = refOf(principal, place);
    if (!(await this.#with.objects.unrestricted.update(platform(principal), ref, edits))) throw notFound(place);
  }

  /** Changes the tags of a file, given the id of its object. Returns false if there is no such file. */
  async retag(principal: Principal, id: string, edits: readonly Edit[]): Promise<boolean> {
    requirePermission(principal, "files:write");
    refuseOtherColumns(edits);
    const { class: path } = refOf(principal, { space: "user", fullname: "/" });
    const [row] = await this.#with.objects.unrestricted.get(platform(principal), [{ id, class: path }]);
    if (row) openPlace(principal, entryOf(row));
    return this.#with.objects.unrestricted.update(platform(principal), { id, class: path }, edits);
  }

  /** Removes a file or folder with all below it. `AppError("deadline")`: the work continues in the background. */
  async remove(principal: Principal, name: FileName): Promise<void> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    const { entries, take } = await this.#store.toTake(principal, [place]);
    const visibility = await this.#visibility(principal);
    const [entry] = entries;
    if (entry ? !visibility.shown(entry) : !(await this.#store.holdsAny(principal, place))) throw notFound(place);
    if (entry?.content) {
      visibility.requireWriting(place, { before: entry, columns: [] });
      return this.#indexed.take(principal, { entries, take });
    }
    await this.#carrying.run(principal, { kind: "remove", place });
  }

  /** Gives a file or folder the path `path`. `AppError("conflict")` if something is there. */
  async rename(principal: Principal, name: FileName, path: string): Promise<void> {
    requirePermission(principal, "files:write");
    const [from, to] = [placeBelowRoot(name), placeBelowRoot({ ...name, path })];
    await this.#carrying.move(principal, openPlace(principal, from), openPlace(principal, to));
  }

  /** Moves into a folder, which is made if missing. `AppError("conflict")` if it has an entry of that name. */
  async move(principal: Principal, name: FileName, folder: string): Promise<void> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    await this.#carrying.move(principal, place, openPlace(principal, placeInto(place, folder)));
  }

  /** Copies into a folder, which is made if missing. Replaces files of the same name and merges folders. */
  async copy(principal: Principal, name: FileName, folder: string): Promise<void> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    await this.#carrying.copy(principal, place, openPlace(principal, placeInto(place, folder)));
  }

  async exists(principal: Principal, name: FileName): Promise<boolean> {
    requirePermission(principal, "files:read");
    const place = visiblePlace(principal, placeOf(name));
    return place.fullname === "/" || (await this.#seen(principal, place)) !== undefined;
  }

  /** The entry of a file or folder, as far as the principal may see it. `AppError("not_found")` if there is none. */
  async about(principal: Principal, name: FileName): Promise<FileEntry> {
    requirePermission(principal, "files:read");
    const place = visiblePlace(principal, placeBelowRoot(name));
    const entry = await this.#seen(principal, place);
    if (!entry) throw notFound(place);
    return entry;
  }

  /** Entries of a folder, page by page, in no order. `AppError("not_found")` if there is no such folder. */
  async *list(principal: Principal, name: FileName, signal?: AbortSignal): AsyncGenerator<readonly FileEntry[]> {
    requirePermission(principal, "files:read");
    const place = visiblePlace(principal, placeOf(name));
    const visibility = await this.#visibility(principal);
    const folder = place.fullname === "/" ? undefined : await this.#seen(principal, place);
    if (folder?.content) throw new AppError("invalid", `${place.fullname} is a file, not a folder.`);
    let isEmpty = true;
    for await (const page of this.#store.in(principal, place, signal)) {
      const shown = page.flatMap((entry) => visibility.shown(entry) ?? []);
      isEmpty &&= shown.length === 0;
      yield shown.filter(({ fullname }) => pathVisible(principal, fullname));
    }
    if (isEmpty && !folder && place.fullname !== "/") throw notFound(place);
  }

  /** Opens a file in that space only. */
  async open(principal: Principal, path: string, space: Space): Promise<OpenedFile> {
    requirePermission(principal, "files:read");
    return this.#contents.open(principal, [{ path, space }]);
  }

  /**
   * Opens a file to serve it, or to let a rule parse it. Looks in the users' space, then in the system's space. If
   * `name` has the system's space, looks only there. The principal's open paths apply to both spaces.
   */
  async openServed(principal: Principal, name: FileName): Promise<OpenedFile> {
    requireOneOf(principal, ["files:read", "rules:write"]);
    openPlace(principal, placeBelowRoot(name));
    return this.#contents.open(withoutPaths(principal), servedNames(name));
  }

  /** True if every user may read that path, and no rule restricts files for the group of all users. */
  async isOpenToAll(principal: Principal, fullname: string): Promise<boolean> {
    requirePermission(principal, "files:read");
    const anybody = anybodyOf(principal, await this.#with.everyone?.(principal.tenant));
    return anybody && pathAllowed(anybody, fullname) ? (await this.#visibility(anybody)) === ALL_VISIBLE : false;
  }

  /** Reads a file. `AppError("invalid")` if it is no text, `too_large` beyond `FILE_TEXT_MAX_BYTES`, `not_found`. */
  async read(principal: Principal, path: string, space: Space = "user"): Promise<TextFile> {
    requirePermission(principal, "files:read");
    return this.#contents.read(principal, [{ path, space }]);
  }

  /** Reads a script or program: the first of these names that is a file. Same errors as `read`. */
  async readFirst(principal: Principal, names: readonly FileName[]): Promise<TextFile> {
    requirePermission(principal, "files:read");
    return this.#contents.read(principal, names);
  }

  maintain(tenant: string): Promise<void> {
    return this.#works.maintain(tenant);
  }

  /** Resolves when all copies, moves and removals that run on this controller now have ended or paused. */
  settled(): Promise<void> {
    return this.#journal.inFlight.settled();
  }

  /** Pauses the running work. Another controller, or this one after its next start, continues it. */
  close(): Promise<void> {
    return this.#journal.inFlight.close();
  }

  /** The entry at `place`; `undefined` also if the principal may not see it. */
  async #seen(principal: Principal, place: Place): Promise<FileEntry | undefined> {
    const entry = await this.#store.find(principal, place);
    return entry && (await this.#visibility(principal)).shown(entry);
  }
}

/** The place that an entry gets in a folder of its space. */
function placeInto({ space, fullname }: Place, folder: string): Place {
  return placeIn(placeOf({ space, path: folder }), nameOf(fullname));
}

/** The user with just the rights that every user has. */
function anybodyOf(
  { tenant, ospace, user, traceparent }: Principal,
  rights: RightsOfEveryone | undefined,
): Principal | undefined {
  return rights && { tenant, ospace, user, groups: [], traceparent, ...rights };
}

function refuseOtherColumns(edits: readonly Edit[]): void {
  const other = edits.find(({ column }) => column !== TAGS_COLUMN);
  if (!other) return;
  throw new AppError("unsupported", `The column ${other.column} of files is kept by the platform, not by MQL.`);
}
