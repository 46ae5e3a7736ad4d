import { AppError } from "../../../../common/errors.ts";
import type { Expected, Revised } from "../../../../common/revisions.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import type { InCommit } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { Content, FileContents } from "../contents.ts";
import { placeColumns, type FileEntry, type HeldContent } from "../entries.ts";
import type { HidingGuard } from "../hiding.ts";
import type { Place } from "../names.ts";
import { notFound, refuseCircle } from "../open-places.ts";
import { noteColumns, typeOf, type FileNotes } from "../notes.ts";
import { mayNameSystem } from "../spaces.ts";
import { rowAt, type FileStore } from "../store.ts";
import type { FileVisibility } from "../visible.ts";
import type { FileWorkJournal } from "../work-journal.ts";
import { requireWork } from "../work-rights.ts";
import type { WriteRights } from "../write-rights.ts";
import type { ChangeRequest, FileChange, Plan } from "./change-request.ts";
import type { FileChanges } from "./changes.ts";
import { quietPlaces, requireExpectedFile, revisionOfFile } from "./expected.ts";
import { KeptContent } from "./kept-content.ts";

interface EditDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly store: FileStore;
  readonly journal: FileWorkJournal;
  readonly changes: FileChanges;
  readonly contents: FileContents;
  readonly hiding: HidingGuard;
  readonly rights: WriteRights;
  readonly visibilityOf: (principal: Principal) => Promise<FileVisibility>;
}

export interface Conditional {
  /** The state that the caller expects; any if absent. */
  readonly expected?: Expected | undefined;
}

export interface FileWriting extends Conditional {
  /** True: the search includes the file, if it is new. */
  readonly isSearched?: boolean;
  /** Records for the commit of the write, if it is one commit. */
  readonly inCommit?: InCommit | undefined;
  readonly content?: Content | undefined;
  readonly notes?: FileNotes;
}

interface PlannedWrite extends FileWriting {
  readonly place: Place;
  readonly notes: FileNotes;
  /** The content, when it is stored. */
  readonly kept?: KeptContent | undefined;
}

type FileWithContent = FileEntry & { readonly content: HeldContent };

/**
 * Changes of single files and folders, on the state that the caller expects. The service has checked the permission and
 * the paths.
 */
export class FileEdits {
  readonly #with: EditDependencies;

  constructor(dependencies: EditDependencies) {
    this.#with = dependencies;
  }

  /** See `FileService.save`. */
  async save(
    principal: Principal,
    place: Place,
    { content, notes = {}, expected, inCommit, isSearched = false }: FileWriting,
  ): Promise<Revised> {
    const { store, hiding, contents } = this.#with;
    const planned = { place, content, notes, expected, isSearched };
    // A content that has arrived was checked before. Another one would be stored for nothing.
    const { before } =
      content instanceof KeptContent
        ? { before: undefined }
        : await this.#writeOf(principal, planned, await store.find(principal, place));
    const warnings = await hiding.warnings(principal, place);
    const written = content ?? (before ? undefined : { text: "" });
    const kept = written && (await contents.keep(principal, written));
    try {
      const revision = await this.#change(principal, [place], {
        expected,
        plan: async ([now]) => {
          const { change } = await this.#writeOf(principal, { ...planned, kept }, now);
          await store.makeFoldersAbove(principal, place);
          return [change];
        },
        kept,
        inCommit,
      });
      // Repeat this: a folder may have been removed meanwhile. A removal spares entries written after it began.
      await store.makeFoldersAbove(principal, place);
      return { revision, warnings };
    } finally {
      if (kept !== content) await kept?.release();
    }
  }

  /** Throws if a file cannot be written at the place, as far as that is known without its content. */
  async requireWritable(principal: Principal, place: Place, expected: Expected | undefined): Promise<void> {
    const { store, rights, visibilityOf } = this.#with;
    await rights.requireSomeWriting(principal);
    const entry = await store.find(principal, place);
    await this.#requireRoomFor(principal, place, entry);
    requireExpectedFile(expected, place, { entry, visibility: await visibilityOf(principal) });
  }

  /** See `FileService.makeFolder`. */
  async makeFolder(principal: Principal, place: Place, { expected, ...notes }: FileNotes & Conditional) {
    const { store, rights, visibilityOf } = this.#with;
    const columns = noteColumns(notes);
    const plan: Plan = async ([before]) => {
      const row = { ...(before ? placeColumns(place) : store.folderRow(principal, place)), ...columns };
      await rights.requireWriting(principal, place, { before, row, given: notes });
      if (before?.content) throw new AppError("conflict", `${before.fullname} is a file, and nothing lies in a file.`);
      requireExpectedFile(expected, place, { entry: before, visibility: await visibilityOf(principal) });
      return [{ place, row, isWhole: before === undefined }];
    };
    const before = await store.find(principal, place);
    await plan([before]);
    await store.makeFoldersAbove(principal, place);
    const isSame = before !== undefined && Object.keys(columns).length === 0;
    const revision = isSame ? revisionOfFile(before) : await this.#change(principal, [place], { expected, plan });
    await store.makeFoldersAbove(principal, place);
    return revision;
  }

  /** See `FileService.note`. */
  async note(principal: Principal, place: Place, { expected, ...notes }: FileNotes & Conditional): Promise<string> {
    const { rights, visibilityOf } = this.#with;
    const row = noteColumns(notes);
    if (Object.keys(row).length === 0) throw new AppError("invalid", "There is nothing to set: neither attr nor tags.");
    const plan: Plan = async ([entry]) => {
      const visibility = await visibilityOf(principal);
      const before = entry && visibility.shown(entry);
      requireExpectedFile(expected, place, { entry: before, visibility });
      if (!before) throw notFound(place);
      await rights.requireWriting(principal, place, { before, row, given: notes });
      return [{ place, row, isWhole: false }];
    };
    return this.#change(principal, [place], { expected, plan });
  }

  /** Removes a file; false, and nothing is done, if it is a folder, or not there and not expected. */
  async removeFile(principal: Principal, place: Place, expected: Expected | undefined): Promise<boolean> {
    const { store, visibilityOf } = this.#with;
    const visibility = await visibilityOf(principal);
    const plan: Plan = async ([now]) => {
      const entry = now && visibility.shown(now);
      requireExpectedFile(expected, place, { entry, visibility });
      if (!now || !entry) throw notFound(place);
      if (!now.content)
        throw expected ? noRevisions(place) : new AppError("conflict", `${place.fullname} is a folder.`);
      visibility.requireWriting(place, { before: now, columns: [] });
      return [{ place, removed: now }];
    };
    const entry = await store.find(principal, place);
    if (expected) await plan([entry]);
    if (!entry?.content || !visibility.shown(entry)) return false;
    await this.#change(principal, [place], { expected, plan });
    return true;
  }

  /**
   * Moves a file that must be as expected, in one change of both places. `isAbsent` is expected of the new place.
   * Returns the new revision.
   */
  async moveFile(principal: Principal, place: Place, { to, expected }: Moving): Promise<string> {
    const { store, hiding, contents, visibilityOf } = this.#with;
    refuseCircle(place, to);
    const visibility = await visibilityOf(principal);
    const required = (entries: readonly (FileEntry | undefined)[]): FileWithContent =>
      requireMovable(principal, { place, to, expected, visibility, entries });
    const { content } = required(await store.get(principal, [place, to]));
    if (!mayNameSystem(principal)) await hiding.requireNothingHidden(principal, [to]);
    await store.makeFoldersAbove(principal, to);
    const kept = await contents.markAnew(principal, content);
    try {
      const revision = await this.#change(principal, [place, to], {
        expected,
        plan: async (entries) => {
          const removed = required(entries);
          if (removed.content.digest !== content.digest)
            throw new AppError("conflict", `${place.fullname} is being written: try again.`);
          return [
            { place: to, row: rowAt(to, removed, kept.held), isWhole: true },
            { place, removed, isMoved: true },
          ];
        },
        kept,
      });
      await store.makeFoldersAbove(principal, to);
      return revision;
    } finally {
      await kept.release();
    }
  }

  /** The change that writes a file over the entry. Throws if it may not be made. */
  async #writeOf(
    principal: Principal,
    { place, content, notes, kept, expected, isSearched = false }: PlannedWrite,
    before: FileEntry | undefined,
  ): Promise<{ readonly change: FileChange; readonly before: FileEntry | undefined }> {
    const { rights, runtime, visibilityOf } = this.#with;
    const ftype = notes.ftype === undefined && before ? before.ftype : typeOf(place, notes.ftype);
    const row = { ...placeColumns(place), ...noteColumns(notes), ftype };
    const written = kept ?? content ?? (before ? undefined : { text: "" });
    await rights.requireWriting(principal, place, { before, row, given: { ...notes, content: written } });
    await this.#requireRoomFor(principal, place, before);
    requireExpectedFile(expected, place, { entry: before, visibility: await visibilityOf(principal) });
    const modified = runtime.clock.nowMs();
    const own = kept && { ...kept.held, size: kept.size, owner: principal.user, modified };
    const searched = isSearched && !before && { indexed: true };
    const change = {
      place,
      row: { ...row, ...own, ...searched },
      isWhole: kept !== undefined,
      replaced: kept && before?.content,
    };
    return { change, before };
  }

  /** Throws if a file cannot be at the place: a folder is there, or the file would hide a system file. */
  async #requireRoomFor(principal: Principal, place: Place, before: FileEntry | undefined): Promise<void> {
    if (before && !before.content) throw new AppError("conflict", `${place.fullname} is a folder.`);
    if (!before && !mayNameSystem(principal)) await this.#with.hiding.requireNothingHidden(principal, [place]);
  }

  /** A condition is checked only while no copy, move or removal concerns the places. */
  #change(
    principal: Principal,
    places: readonly Place[],
    { expected, ...request }: Omit<ChangeRequest, "places" | "condition"> & Conditional,
  ): Promise<string> {
    const condition = expected && (() => quietPlaces(this.#with, principal.tenant, places));
    return this.#with.changes.make(principal, { ...request, places, condition });
  }
}

interface Moving extends Conditional {
  readonly to: Place;
}

interface Movable extends Moving {
  readonly place: Place;
  readonly visibility: FileVisibility;
  /** The entries at `place` and at `to`. */
  readonly entries: readonly (FileEntry | undefined)[];
}

/** The file at `place`, if the principal may move it and it is as expected. */
function requireMovable(
  { user }: Principal,
  { place, to, expected, visibility, entries: [now, there] }: Movable,
): FileWithContent {
  const entry = now && visibility.shown(now);
  const { revisions = "*", isAbsent = false } = expected ?? {};
  requireExpectedFile({ revisions, isAbsent: false }, place, { entry, visibility });
  requireExpectedFile(isAbsent ? { isAbsent } : undefined, to, { entry: there, visibility });
  if (there) throw new AppError("conflict", `${to.fullname} is there already.`);
  if (!now?.content) throw noRevisions(place);
  const { space, fullname: from } = place;
  requireWork({ kind: "move", space, from, to: to.fullname, user }, visibility, now);
  return { ...now, content: now.content };
}

function noRevisions({ fullname }: Place): AppError {
  return new AppError("unsupported", `${fullname} is a folder: conditions of its removal or move are not checked.`);
}
