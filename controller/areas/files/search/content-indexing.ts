import { isAppError } from "../../../../common/errors.ts";
import { FILE_INDEX_PART_PASSAGES, FILE_INDEX_READS_MAX } from "../../../../common/limits.ts";
import type { Attempt } from "../../../store/journal/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { FileEntry } from "../entries.ts";
import type { Place } from "../names.ts";
import type { FileStore } from "../store.ts";
import { Unreadable, type Extractions } from "./extractions.ts";
import { searchedFile, type ContentState, type ContentStore, type ContentText, type SearchedFile } from "./store.ts";

interface Dependencies {
  readonly files: Pick<FileStore, "get">;
  readonly contents: Pick<ContentStore, "states" | "keep">;
  readonly extractions: Pick<Extractions, "extract">;
  readonly signal: AbortSignal;
  /** True: contents that could not be read before are tried again. */
  readonly isRetrying: boolean;
  /** Called for each file whose content is stored. The reason is empty if the whole content is found. */
  readonly indexed: (file: FileEntry, reason: string) => void;
}

/** Files whose contents are stored together. */
export interface IndexPart {
  readonly files: readonly SearchedFile[];
  /** Texts of those contents that were not indexed. */
  readonly texts: readonly ContentText[];
  /** Reason why the content, or a part of it, is not found, by digest. */
  readonly reasons: ReadonlyMap<string, string>;
}

interface PartOptions extends Pick<Attempt, "isLast"> {
  /** True: contents that are indexed are indexed again. */
  readonly isForced?: boolean;
}

/** Indexes contents of files: extracts texts one after another, and stores several of them together. */
export class ContentIndexing {
  readonly #platform: Principal;
  readonly #with: Dependencies;

  constructor(platform: Principal, dependencies: Dependencies) {
    this.#platform = platform;
    this.#with = dependencies;
  }

  /** The files at these places that are searched now. */
  async searched(places: readonly Place[]): Promise<readonly SearchedFile[]> {
    const entries = await this.#with.files.get(this.#platform, places);
    return entries.flatMap((entry) => (entry && searchedFile(entry)) ?? []);
  }

  /** Extracts the texts of these files. A part ends when it has `FILE_INDEX_PART_PASSAGES`. */
  async *parts(files: readonly SearchedFile[], { isLast, isForced = false }: PartOptions): AsyncGenerator<IndexPart> {
    const byDigest = filesByDigest(files);
    const states = isForced ? [] : await this.#with.contents.states(this.#platform, [...byDigest.keys()]);
    let part = new Part();
    for (const [at, same] of [...byDigest.values()].entries()) {
      const known = this.#known(states[at]);
      part.add(same, known ?? (await this.#text(same[0], isLast)));
      if (part.passages < FILE_INDEX_PART_PASSAGES) continue;
      yield part;
      part = new Part();
    }
    if (part.files.length > 0) yield part;
  }

  /**
   * Stores the texts of a part. A file whose content was replaced meanwhile is indexed again. Returns the digests of
   * contents that files lost meanwhile.
   */
  async keep({ files, texts, reasons }: IndexPart, attempt: Pick<Attempt, "isLast">): Promise<ReadonlySet<string>> {
    await this.#with.contents.keep(this.#platform, texts);
    for (const file of files) this.#with.indexed(file, reasons.get(file.digest) ?? "");
    const lost = new Set<string>();
    let indexed = files;
    for (let read = 1; ; read++) {
      const present = new Map((await this.searched(indexed)).map((file) => [file.id, file]));
      const changed = indexed.filter(({ id, digest }) => present.get(id)?.digest !== digest);
      for (const { digest } of changed) lost.add(digest);
      indexed = changed.flatMap(({ id }) => present.get(id) ?? []);
      if (indexed.length === 0 || read >= FILE_INDEX_READS_MAX) return lost;
      for await (const part of this.parts(indexed, attempt)) await this.#with.contents.keep(this.#platform, part.texts);
    }
  }

  /** Indexes the content that the file had when it was read, even if it is indexed. */
  async again(file: SearchedFile, { isLast }: Pick<Attempt, "isLast">): Promise<void> {
    for await (const { texts, reasons } of this.parts([file], { isLast, isForced: true })) {
      await this.#with.contents.keep(this.#platform, texts);
      this.#with.indexed(file, reasons.get(file.digest) ?? "");
    }
  }

  #known(state: ContentState | undefined): ContentState | undefined {
    const isKnown = state?.state === "indexed" || (state?.state === "unindexed" && !this.#with.isRetrying);
    return isKnown && state.isCurrent ? state : undefined;
  }

  async #text({ digest, size }: SearchedFile, isLast: boolean): Promise<ContentText> {
    const { tenant } = this.#platform;
    const { extractions, signal } = this.#with;
    try {
      const found = await extractions.extract({ tenant, digest, size, signal });
      if (found instanceof Unreadable) return unreadable(digest, found.reason);
      const { passages, unit, note = "" } = found;
      return { digest, state: "indexed", reason: note, passages, unit };
    } catch (error) {
      // A damaged content fails like a store that is not available. It must not hold up other files forever.
      if (!isLast || signal.aborted || !isAppError(error, "unavailable")) throw error;
      return unreadable(digest, new Unreadable(error.message).reason);
    }
  }
}

class Part implements IndexPart {
  readonly files: SearchedFile[] = [];
  readonly texts: ContentText[] = [];
  readonly reasons = new Map<string, string>();
  passages = 0;

  /** Adds files of one content. */
  add([first, ...others]: SameFiles, content: ContentState | ContentText): void {
    this.files.push(first, ...others);
    this.reasons.set(first.digest, content.reason);
    if (!("digest" in content)) return;
    this.texts.push(content);
    this.passages += content.passages.length;
  }
}

type SameFiles = [SearchedFile, ...SearchedFile[]];

function filesByDigest(files: readonly SearchedFile[]): ReadonlyMap<string, SameFiles> {
  const byDigest = new Map<string, SameFiles>();
  for (const file of files) {
    const same = byDigest.get(file.digest);
    if (same) same.push(file);
    else byDigest.set(file.digest, [file]);
  }
  return byDigest;
}

function unreadable(digest: string, reason: string): ContentText {
  return { digest, state: "unindexed", reason, passages: [], unit: "line" };
}
