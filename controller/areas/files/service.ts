import { createReadStream } from "node:fs";
import { withinTime } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import {
  FILE_ATTR_MAX_BYTES,
  FILE_TAGS_MAX,
  FILE_TEXT_MAX_BYTES,
  FILE_WORK_ANSWER_MS,
} from "../../../common/limits.ts";
import { isInside } from "../../../common/paths.ts";
import type { Row } from "../../../common/value.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { Controllers } from "../../store/journal/index.ts";
import { TAGS_COLUMN, type Edit, type Objects, type TenantRoom } from "../objects/index.ts";
import { pathVisible, requireOneOf, requirePath, requirePermission, type Principal } from "../permissions/index.ts";
import type { FileSource, OpenFile } from "../rules/index.ts";
import { keepInRoom } from "../tenants/index.ts";
import { placeColumns, refOf, type FileEntry, type HeldContent } from "./entries.ts";
import {
  extensionOf,
  nameOf,
  placeBelowRoot,
  placeIn,
  placeOf,
  type FileName,
  type Place,
  type Space,
} from "./names.ts";
import { KnownTexts } from "./known-texts.ts";
import { FileStore } from "./store.ts";
import { FileWorkJournal, type OpenFileWork } from "./work-journal.ts";
import { FileWorks } from "./work.ts";

/** A file's content comes from a text or from an uploaded part. */
export type Content = { readonly text: string } | { readonly file: string };

/** What is said of a file or folder besides its content. What is absent stays as it is. */
export interface FileNotes {
  /** The file's type; the extension of its name when absent. */
  readonly ftype?: string | undefined;
  /** JSON text of an object; empty: none. */
  readonly attr?: string | undefined;
  readonly tags?: readonly string[] | undefined;
}

/** A file as scripts read it. */
export interface TextFile {
  readonly text: string;
  /** SHA-256 of the content: the same digest is the same text. */
  readonly digest: string;
}

const MARK_BYTES = 12;

interface Dependencies {
  readonly stores: Stores;
  readonly objects: Objects;
  readonly runtime: Runtime;
  readonly controllers: Controllers;
  /** Absent: no tenant has a quota. */
  readonly room?: TenantRoom;
}

/** Files of a tenant: content in the blob store, metadata as objects of `/filesystem`. */
export class FileService implements FileSource {
  readonly #with: Dependencies;
  readonly #store: FileStore;
  readonly #journal: FileWorkJournal;
  readonly #works: FileWorks;
  readonly #texts = new KnownTexts();

  constructor(dependencies: Dependencies) {
    const { stores, objects, runtime } = dependencies;
    this.#with = dependencies;
    this.#store = new FileStore({ stores, objects, nowMs: () => runtime.clock.nowMs() });
    this.#journal = new FileWorkJournal(dependencies);
    this.#works = new FileWorks({ journal: this.#journal, store: this.#store, runtime });
  }

  /**
   * Inserts or replaces, and makes the folders above it; the old content stays until it has no reference. Without
   * `content` a file that is there keeps its own, and one that is not is empty. `AppError("conflict")` where a folder is,
   * or below a file.
   */
  async write(principal: Principal, name: FileName, content?: Content, notes: FileNotes = {}): Promise<void> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    const columns = noteColumns(notes);
    const before = await this.#store.find(principal, place);
    if (before && !before.content) throw new AppError("conflict", `${place.fullname} is a folder.`);
    await this.#store.makeFoldersAbove(principal, place);
    const held = content || !before ? await this.#keep(principal, content ?? { text: "" }) : {};
    const ftype = notes.ftype === undefined && before ? before.ftype : typeOf(place, notes.ftype);
    await this.#store.insert(principal, [{ ...placeColumns(place), ...columns, ftype, ...held }]);
    if (before?.content && "digest" in held) await this.#store.unmark(principal, [before.content]);
    // Again: a folder that was removed since then took only what it found.
    await this.#store.makeFoldersAbove(principal, place);
  }

  /** Makes the folder and those above it; one that is there stays, with these notes. `AppError("conflict")` where a file is. */
  async makeFolder(principal: Principal, name: FileName, notes: FileNotes = {}): Promise<void> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    const columns = noteColumns(notes);
    await this.#store.makeFoldersAbove(principal, place);
    await this.#store.makeFolders(principal, [place]);
    if (Object.keys(columns).length > 0) await this.#store.insert(principal, [{ ...placeColumns(place), ...columns }]);
    await this.#store.makeFoldersAbove(principal, place);
  }

  /** Sets attributes or tags of a file or folder. */
  async note(principal: Principal, name: FileName, notes: Omit<FileNotes, "ftype">): Promise<void> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    const edits = Object.entries(noteColumns(notes)).map(
      ([column, value]) => ({ column, operation: "set", value }) as const,
    );
    if (edits.length === 0) throw new AppError("invalid", "There is nothing to set: neither attr nor tags.");
    const found = await this.#with.objects.update(system(principal), refOf(principal, place), edits);
    if (!found) throw notFound(place);
  }

  /** Changes the tags of a file, by the id of its object; false when there is none. */
  async retag(principal: Principal, id: string, edits: readonly Edit[]): Promise<boolean> {
    requirePermission(principal, "files:write");
    const other = edits.find(({ column }) => column !== TAGS_COLUMN);
    if (other)
      throw new AppError("unsupported", `The column ${other.column} of files is kept by the platform, not by MQL.`);
    const { class: path } = refOf(principal, { space: "user", fullname: "/" });
    const [row] = await this.#with.objects.get(system(principal), [{ id, class: path }]);
    if (row) requirePath(principal, String(row.values["fullname"]));
    return this.#with.objects.update(system(principal), { id, class: path }, edits);
  }

  /** A file, or a folder with all below it. `AppError("deadline")`: it goes on. */
  async remove(principal: Principal, name: FileName): Promise<void> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    const { entries, take } = await this.#store.toTake(principal, [place]);
    if (entries[0]?.content) return take(entries);
    const isThere = entries.length > 0 || (await this.#holdsAny(principal, place));
    if (!isThere) throw notFound(place);
    await this.#carry(principal, { kind: "remove", place });
  }

  /** To a whole new path. `AppError("conflict")` where something is. */
  async rename(principal: Principal, name: FileName, path: string): Promise<void> {
    requirePermission(principal, "files:write");
    const [from, to] = [placeBelowRoot(name), placeBelowRoot({ ...name, path })];
    await this.#move(principal, openPlace(principal, from), openPlace(principal, to));
  }

  /** Into a folder, which is made if need be. `AppError("conflict")` where something of that name is. */
  async move(principal: Principal, name: FileName, folder: string): Promise<void> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    const to = placeIn(placeOf({ ...name, path: folder }), nameOf(place.fullname));
    await this.#move(principal, place, openPlace(principal, to));
  }

  /** Into a folder, which is made if need be; files of that name are replaced, folders get what they lack. */
  async copy(principal: Principal, name: FileName, folder: string): Promise<void> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    const to = openPlace(principal, placeIn(placeOf({ ...name, path: folder }), nameOf(place.fullname)));
    const [entry, there] = await this.#store.get(principal, [place, to]);
    if (!entry) throw notFound(place);
    refuseCircle(place, to);
    if (there && !there.content !== !entry.content)
      throw new AppError("conflict", `${to.fullname} is there already, and is a ${there.content ? "file" : "folder"}.`);
    await this.#carry(principal, { kind: "copy", place, to });
  }

  async exists(principal: Principal, name: FileName): Promise<boolean> {
    requirePermission(principal, "files:read");
    const place = visiblePlace(principal, placeOf(name));
    return place.fullname === "/" || (await this.#store.find(principal, place)) !== undefined;
  }

  /** What is kept of a file or folder. */
  async about(principal: Principal, name: FileName): Promise<FileEntry> {
    requirePermission(principal, "files:read");
    const place = visiblePlace(principal, placeBelowRoot(name));
    const entry = await this.#store.find(principal, place);
    if (!entry) throw notFound(place);
    return entry;
  }

  /** What lies in a folder, page by page, in no order. `AppError("not_found")` without such a folder. */
  async *list(principal: Principal, name: FileName, signal?: AbortSignal): AsyncGenerator<readonly FileEntry[]> {
    requirePermission(principal, "files:read");
    const place = visiblePlace(principal, placeOf(name));
    const folder = place.fullname === "/" ? undefined : await this.#store.find(principal, place);
    if (folder?.content) throw new AppError("invalid", `${place.fullname} is a file, not a folder.`);
    let isEmpty = true;
    for await (const page of this.#store.in(principal, place, signal)) {
      isEmpty = false;
      yield page.filter(({ fullname }) => pathVisible(principal, fullname));
    }
    if (isEmpty && !folder && place.fullname !== "/") throw notFound(place);
  }

  /** Also a part of parsing a file by a rule. */
  async open(principal: Principal, path: string, space: Space): Promise<OpenFile & Pick<FileEntry, "fullname">> {
    requireOneOf(principal, ["files:read", "rules:write"]);
    const place = openPlace(principal, placeBelowRoot({ path, space }));
    const entry = await this.#store.find(principal, place);
    if (!entry) throw new AppError("not_found", `There is no file ${path}.`);
    if (!entry.content) throw new AppError("invalid", `${place.fullname} is a folder, not a file.`);
    const { blobs } = await this.#with.stores.tenant(principal.tenant);
    const { digest } = entry.content;
    const { size, modifiedMs, fullname } = entry;
    return { digest, size, modifiedMs, fullname, bytes: blobs.read(digest) };
  }

  /** `AppError("invalid")` for what is no text, `too_large` beyond `FILE_TEXT_MAX_BYTES`, `not_found`. */
  async read(principal: Principal, path: string, space: Space = "user"): Promise<TextFile> {
    requirePermission(principal, "files:read");
    const file = await this.open(principal, path, space);
    if (file.size > FILE_TEXT_MAX_BYTES)
      throw new AppError("too_large", `${path} has more than ${FILE_TEXT_MAX_BYTES} bytes: download it.`);
    const { digest } = file;
    const known = this.#texts.get(principal.tenant, digest);
    if (known !== undefined) return { text: known, digest };
    const parts: Uint8Array[] = [];
    for await (const part of file.bytes) parts.push(part);
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(parts));
      this.#texts.keep(principal.tenant, digest, text);
      return { text, digest };
    } catch (error) {
      throw new AppError("invalid", `${path} is no text: download it.`, { cause: error });
    }
  }

  maintain(tenant: string): Promise<void> {
    return this.#works.maintain(tenant);
  }

  /** Resolves when nothing that is copied, moved or removed here now is so any more. */
  settled(): Promise<void> {
    return this.#journal.underWay.settled();
  }

  /** What is under way rests, to be taken by another controller or the next. */
  close(): Promise<void> {
    return this.#journal.underWay.close();
  }

  async #holdsAny(principal: Principal, folder: Place): Promise<boolean> {
    for await (const _ of this.#store.in(principal, folder)) return true;
    return false;
  }

  /** Content with a mark of its own, as columns of its file. */
  async #keep(principal: Principal, content: Content): Promise<HeldContent & Row> {
    const { stores, runtime } = this.#with;
    const { blobs } = await stores.tenant(principal.tenant);
    const bytes =
      "text" in content ? [Buffer.from(content.text)] : (createReadStream(content.file) as AsyncIterable<Uint8Array>);
    const mark = `file/${Buffer.from(runtime.random.bytes(MARK_BYTES)).toString("base64url")}`;
    const { digest, size } = await keepInRoom({ room: this.#with.room, tenant: principal.tenant }, bytes, (admitted) =>
      blobs.put(admitted, mark),
    );
    return { digest, mark, size, owner: principal.user, modified: runtime.clock.nowMs() };
  }

  async #move(principal: Principal, place: Place, to: Place): Promise<void> {
    const [entry, there] = await this.#store.get(principal, [place, to]);
    if (!entry) throw notFound(place);
    if (to.fullname === place.fullname) return;
    refuseCircle(place, to);
    if (there) throw new AppError("conflict", `${to.fullname} is there already.`);
    await this.#carry(principal, { kind: "move", place, to });
  }

  /** Noted before anything is done, so that another controller finishes what this one began. */
  async #carry(
    { tenant, ospace, user, traceparent }: Principal,
    {
      kind,
      place: { space, fullname: from },
      to,
    }: Pick<OpenFileWork, "kind"> & { readonly place: Place; readonly to?: Place },
  ): Promise<void> {
    const { clock, random } = this.#with.runtime;
    const startedMs = clock.nowMs();
    const id = ulidOf(startedMs, random.bytes(10));
    const target = to && { to: to.fullname };
    const work = { id, tenant, ospace, user, traceparent, kind, space, from, ...target, at: from, startedMs };
    this.#journal.underWay.hold(id);
    const begun = await this.#journal.beginAlone(work).catch((error: unknown) => {
      this.#journal.underWay.letGo(id);
      throw error;
    });
    const carried = this.#works.start(begun);
    // A caller that does not wait for the end gets no error.
    carried.catch(() => undefined);
    const over = await withinTime(clock, carried, FILE_WORK_ANSWER_MS);
    if (!over?.end) throw new AppError("deadline", `${from} is still being worked on, which goes on by itself.`);
    if (over.end.code) throw new AppError(over.end.code, over.end.message);
  }
}

/** Rights on files are permissions; the metadata is the platform's own. */
function system(principal: Principal): Principal {
  return { ...principal, data: [{ class: "/", access: "write" }] };
}

/** `AppError("denied")` where the path is closed to the principal. */
function openPlace(principal: Principal, place: Place): Place {
  requirePath(principal, place.fullname);
  return place;
}

/** Also a folder on the way to a path that is open. */
function visiblePlace(principal: Principal, place: Place): Place {
  return pathVisible(principal, place.fullname) ? place : openPlace(principal, place);
}

function notFound({ fullname }: Place): AppError {
  return new AppError("not_found", `There is no file or folder ${fullname}.`);
}

function refuseCircle({ fullname: from }: Place, { fullname: to }: Place): void {
  if (isInside(from, to)) throw new AppError("invalid", `${to} lies in ${from} itself, or is it.`);
}

/** Folders alone have the type `dir`. */
function typeOf({ fullname }: Place, given: string | undefined): string {
  const type = given?.trim().replace(/^\./, "").toLowerCase() ?? "";
  return type === "" ? extensionOf(fullname) : extensionOf(`x.${type}`);
}

function noteColumns({ attr, tags }: FileNotes): Row {
  return {
    ...(attr !== undefined && { attr: attrText(attr) }),
    ...(tags !== undefined && { [TAGS_COLUMN]: checkedTags(tags) }),
  };
}

/** Clients send an empty text, or the JSON text of one, for none. */
function attrText(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "" || trimmed === '""') return "";
  if (Buffer.byteLength(trimmed) > FILE_ATTR_MAX_BYTES)
    throw new AppError("too_large", `The attributes of a file have at most ${FILE_ATTR_MAX_BYTES} bytes.`);
  let value: unknown;
  try {
    value = JSON.parse(trimmed);
  } catch (error) {
    throw new AppError("syntax", "attr is no JSON text.", { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new AppError("invalid", "attr is to be the JSON text of an object.");
  return trimmed;
}

function checkedTags(tags: readonly string[]): string[] {
  const clean = [...new Set(tags.map((tag) => tag.trim()).filter((tag) => tag !== ""))];
  if (clean.length > FILE_TAGS_MAX) throw new AppError("too_large", `A file has at most ${FILE_TAGS_MAX} tags.`);
  return clean;
}
