import { AppError } from "../../../common/errors.ts";
import { newStamp, type Expected, type Revised } from "../../../common/revisions.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { Controllers } from "../../store/journal/index.ts";
import { TAGS_COLUMN, type Edit, type Objects, type TenantRoom } from "../objects/index.ts";
import { pathAllowed, requireOneOf, requirePermission, type Principal } from "../permissions/index.ts";
import type { FileSource } from "../rules/index.ts";
import { FileArchives } from "./archive/service.ts";
import { STAMP_COLUMN } from "./classes.ts";
import { entryOf, refOf, type FileEntry } from "./entries.ts";
import { HidingGuard, type RunNames } from "./hiding.ts";
import { Recovering } from "./history/recovering.ts";
import { FileHistory } from "./history/service.ts";
import { HistoryStore, type HistoryBounds } from "./history/store.ts";
import { nameOf, placeBelowRoot, placeIn, placeOf, type FileName, type Place, type Space } from "./names.ts";
import { Carrying } from "./carrying.ts";
import { WriteRights } from "./write-rights.ts";
import { FileContents, type Content, type OpenedFile, type TextFile } from "./contents.ts";
import { notFound, openPlace, visiblePlace, withoutPaths } from "./open-places.ts";
import type { FileNotes } from "./notes.ts";
import { servedNames } from "./spaces.ts";
import { platform, FileStore } from "./store.ts";
import { Arrivals } from "./transfer/arrivals.ts";
import { FileChanges } from "./transfer/changes.ts";
import { FileEdits, type Conditional, type FileWriting } from "./transfer/edits.ts";
import { revisionOfFile } from "./transfer/expected.ts";
import { FolderListing, type FilePage, type PageOfFolder } from "./transfer/listing.ts";
import type { KeptContent } from "./transfer/kept-content.ts";
import type { IndexKeeper } from "./search/keeper.ts";
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
  /** Bounds of the contents that are kept of replaced and removed files. Absent: none are kept. */
  readonly history?: HistoryBounds | undefined;
  /** Absent: histories are not swept. */
  readonly ospaceOf?: (tenant: string) => Promise<string>;
}

/** Files of a tenant: content in the blob store, metadata as objects of `/filesystem`. */
export class FileService implements FileSource {
  readonly archives: FileArchives;
  readonly #with: Dependencies;
  readonly #store: FileStore;
  readonly #changes: FileChanges;
  readonly #journal: FileWorkJournal;
  readonly #works: FileWorks;
  readonly #arrivals: Arrivals;
  readonly #contents: FileContents;
  readonly #carrying: Carrying;
  readonly #listing: FolderListing;
  readonly #edits: FileEdits;
  readonly #visibility: (principal: Principal) => Promise<FileVisibility>;
  readonly versions: FileVersions;
  readonly history: FileHistory;

  constructor(dependencies: Dependencies) {
    const { stores, objects, runtime, keeper } = dependencies;
    this.#with = dependencies;
    const nowMs = (): number => runtime.clock.nowMs();
    const kept = new HistoryStore({ ...dependencies, bounds: dependencies.history });
    const store = new FileStore({
      ...dependencies,
      history: kept,
      settle: (...given) => this.#changes.settle(...given),
    });
    const journal = (this.#journal = new FileWorkJournal(dependencies));
    const hiding = new HidingGuard(store, dependencies.runNames);
    const visibilityOf = (this.#visibility = (principal) => fileVisibility(principal, { objects, nowMs }));
    const parts = { stores, runtime, store, journal, hiding, visibilityOf, keeper };
    this.#store = store;
    this.#listing = new FolderListing(parts);
    this.#changes = new FileChanges(parts);
    const recovering = new Recovering({ ...parts, history: kept });
    this.#works = new FileWorks({ ...parts, recovering, kept: new KeptTreeWorks(parts) });
    this.#carrying = new Carrying({ ...parts, works: this.#works });
    this.versions = new FileVersions({ ...parts, carrying: this.#carrying });
    this.archives = new FileArchives({ ...parts, ...dependencies });
    const arrivals = (this.#arrivals = new Arrivals(dependencies));
    this.#contents = new FileContents({ ...parts, arrivals, room: dependencies.room });
    const rights = new WriteRights(runtime.clock, visibilityOf);
    const edits = { ...parts, rights, contents: this.#contents, changes: this.#changes };
    this.#edits = new FileEdits(edits);
    this.history = new FileHistory({ ...edits, history: kept, edits: this.#edits, carrying: this.#carrying });
  }

  /** As `save`, without a condition. Returns the warnings. */
  async write(principal: Principal, name: FileName, content?: Content, notes: FileNotes = {}): Promise<Warnings> {
    return (await this.save(principal, name, { content, notes })).warnings;
  }

  /**
   * Inserts or replaces a file, and makes the folders above it. Without `content`, an existing file keeps its content
   * and a new one is empty. `AppError("conflict")` for a folder there, or a file in place of a folder above. `denied` if
   * it would hide a system file, `stale` unless it is as expected. Warnings: why it will not run or be served.
   */
  async save(principal: Principal, name: FileName, writing: FileWriting): Promise<Revised> {
    requirePermission(principal, "files:write");
    return this.#edits.save(principal, openPlace(principal, placeBelowRoot(name)), writing);
  }

  /**
   * Stores the bytes of a file for a later `save` at that place. First checks that the principal may write there, and
   * that the tenant has room for the bytes that are announced. The caller releases what it does not save.
   */
  async takeIn(
    principal: Principal,
    name: FileName,
    { bytes, announcedBytes, expected }: Conditional & ArrivingContent,
  ): Promise<KeptContent> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    await this.#edits.requireWritable(principal, place, expected);
    await this.#contents.requireRoom(principal, announcedBytes);
    return this.#contents.keepBytes(principal, bytes);
  }

  /**
   * Makes the folder and those above it, and returns its revision. An existing one gets the notes.
   * `AppError("conflict")` for a file.
   */
  async makeFolder(principal: Principal, name: FileName, notes: FileNotes & Conditional = {}): Promise<string> {
    requirePermission(principal, "files:write");
    return this.#edits.makeFolder(principal, openPlace(principal, placeBelowRoot(name)), notes);
  }

  /** Sets attributes or tags of a file or folder. Returns its revision. */
  async note(principal: Principal, name: FileName, notes: Omit<FileNotes, "ftype"> & Conditional): Promise<string> {
    requirePermission(principal, "files:write");
    return this.#edits.note(principal, openPlace(principal, placeBelowRoot(name)), notes);
  }

  /** Changes the tags of a file, given the id of its object. Returns false if there is no such file. */
  async retag(principal: Principal, id: string, edits: readonly Edit[]): Promise<boolean> {
    requirePermission(principal, "files:write");
    refuseOtherColumns(edits);
    const { class: path } = refOf(principal, { space: "user", fullname: "/" });
    const [row] = await this.#with.objects.unrestricted.get(platform(principal), [{ id, class: path }]);
    if (row) openPlace(principal, entryOf(row));
    const stamp = {
      column: STAMP_COLUMN,
      operation: "set",
      value: JSON.stringify(newStamp(principal.user, this.#with.runtime)),
    } as const;
    return this.#with.objects.unrestricted.update(platform(principal), { id, class: path }, [...edits, stamp]);
  }

  /**
   * Removes a file or folder with all below it. `AppError("deadline")`: the work continues in the background. Only a
   * file can be expected in a state.
   */
  async remove(principal: Principal, name: FileName, expected?: Expected): Promise<void> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    if (await this.#edits.removeFile(principal, place, expected)) return;
    const entry = await this.#seen(principal, place);
    if (!entry && !(await this.#store.holdsAny(principal, place))) throw notFound(place);
    await this.#carrying.run(principal, { kind: "remove", place });
  }

  /**
   * Gives a file or folder the path `path`, and returns its new revision. `AppError("conflict")` if something is there.
   * `expected` is the state of a file: with `isAbsent`, of the new path.
   */
  async rename(principal: Principal, name: FileName, path: string, expected?: Expected): Promise<string> {
    requirePermission(principal, "files:write");
    const [from, to] = [placeBelowRoot(name), placeBelowRoot({ ...name, path })];
    return this.#move(principal, openPlace(principal, from), { to: openPlace(principal, to), expected });
  }

  /** As `rename`, into a folder, which is made if missing. `AppError("conflict")` if it has an entry of that name. */
  async move(principal: Principal, name: FileName, folder: string, expected?: Expected): Promise<string> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    const to = openPlace(principal, placeInto(place, folder));
    return this.#move(principal, place, { to, expected });
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

  /** Entries of a folder, in parts and in no order. `AppError("not_found")` if there is no such folder. */
  async *list(principal: Principal, name: FileName, signal?: AbortSignal): AsyncGenerator<readonly FileEntry[]> {
    requirePermission(principal, "files:read");
    yield* this.#listing.all(principal, visiblePlace(principal, placeOf(name)), signal);
  }

  /** One page of a folder, in the order of names. Errors as `list`. */
  async page(
    principal: Principal,
    name: FileName,
    page: PageOfFolder & { readonly signal?: AbortSignal | undefined },
  ): Promise<FilePage> {
    requirePermission(principal, "files:read");
    return this.#listing.page(principal, visiblePlace(principal, placeOf(name)), page);
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

  async maintain(tenant: string): Promise<void> {
    await this.#changes.finish(tenant);
    await this.#arrivals.maintain(tenant);
    await this.#works.maintain(tenant);
    const ospace = await this.#with.ospaceOf?.(tenant);
    if (ospace !== undefined) await this.history.sweep(tenant, ospace);
  }

  /** Resolves when all copies, moves and removals that run on this controller now have ended or paused. */
  settled(): Promise<void> {
    return this.#journal.inFlight.settled();
  }

  /** Pauses the running work. Another controller, or this one after its next start, continues it. */
  async close(): Promise<void> {
    await Promise.all([this.#journal.inFlight.close(), this.#arrivals.close()]);
  }

  /** The entry at `place`; `undefined` also if the principal may not see it. */
  async #seen(principal: Principal, place: Place): Promise<FileEntry | undefined> {
    const entry = await this.#store.find(principal, place);
    return entry && (await this.#visibility(principal)).shown(entry);
  }

  async #move(principal: Principal, place: Place, { to, expected }: Moving): Promise<string> {
    if (expected) return this.#edits.moveFile(principal, place, { to, expected });
    await this.#carrying.move(principal, place, to);
    const moved = await this.#store.find(principal, to);
    return moved ? revisionOfFile(moved) : "";
  }
}

type Warnings = Revised["warnings"];

interface ArrivingContent {
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Bytes that are to arrive at least; 0 if that is unknown. */
  readonly announcedBytes: number;
}

interface Moving extends Conditional {
  readonly to: Place;
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
