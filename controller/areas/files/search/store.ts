import { mapLimited } from "../../../../common/concurrency.ts";
import {
  FILE_PASSAGES_AT_ONCE,
  FILE_PASSAGES_READ_AT_ONCE,
  FILE_PASSAGE_WRITES_AT_ONCE,
} from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import type { ObjectRef, ObjectRow, Pushdown, Unrestricted } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { FILE_CLASS } from "../classes.ts";
import { entryOf, refOf, type FileEntry } from "../entries.ts";
import type { Place } from "../names.ts";
import { platform } from "../store.ts";
import { CONTENT_CLASS, PASSAGE_CLASS } from "./classes.ts";
import { EXTRACTOR_VERSION, type Extracted } from "./extract/extract.ts";

/** State of the text of a content. */
export interface ContentState {
  readonly state: "indexing" | "indexed" | "unindexed";
  /** Empty if the whole content is found. */
  readonly reason: string;
  readonly passages: number;
  /** False if an earlier version of the extraction made the passages. */
  readonly isCurrent: boolean;
}

/** Text of a content, or the reason why it has none. */
export interface ContentText extends Pick<Extracted, "unit" | "passages"> {
  readonly digest: string;
  readonly state: "indexed" | "unindexed";
  readonly reason: string;
}

/** A file whose content is searched. */
export interface SearchedFile extends FileEntry {
  readonly digest: string;
}

export interface StoredPassage {
  readonly digest: string;
  readonly position: number;
  readonly unit: Extracted["unit"];
  readonly text: string;
}

type Objects = Unrestricted<"get" | "read" | "insert" | "update" | "remove" | "writeTimes">;

/**
 * Storage of the texts of contents. Passages have ids made of the digest and a number, so indexing a content again
 * writes the same objects. The object of the content is written before its passages and knows their number, so all of
 * them are found for a removal. Checks no rights.
 */
export class ContentStore {
  readonly #objects: Objects;

  constructor(objects: Objects) {
    this.#objects = objects;
  }

  /** States in the order of `digests`; `undefined` for a content that was never indexed. */
  async states(principal: Principal, digests: readonly string[]): Promise<readonly (ContentState | undefined)[]> {
    const refs = digests.map((digest) => contentRef(principal, digest));
    const rows = await this.#get(principal, refs);
    return rows.map((row) => row && stateOf(row));
  }

  /** Replaces the passages of these contents. A repetition writes the same. */
  async keep(principal: Principal, texts: readonly ContentText[]): Promise<void> {
    if (texts.length === 0) return;
    const before = await this.states(
      principal,
      texts.map(({ digest }) => digest),
    );
    const most = texts.map(({ passages }, at) => Math.max(passages.length, before[at]?.passages ?? 0));
    await this.#note(
      principal,
      texts.map(({ digest }, at) => ({ digest, state: "indexing", reason: "", passages: most[at] ?? 0 })),
    );
    const rows = texts.flatMap(({ digest, unit, passages }) =>
      passages.map((passage, number) => ({ digest, number, unit, ...passage })),
    );
    const path = principal.ospace + PASSAGE_CLASS.path;
    await inParallel(rows, (some) => this.#objects.unrestricted.insert(platform(principal), path, some));
    const former = texts.flatMap(({ digest, passages }, at) =>
      passageRefs(principal, digest, passages.length, most[at] ?? 0),
    );
    await inParallel(former, (some) => this.#objects.unrestricted.remove(platform(principal), some));
    await this.#note(
      principal,
      texts.map(({ digest, state, reason, passages }) => ({ digest, state, reason, passages: passages.length })),
    );
  }

  /**
   * Reads the objects of a content, and returns a function that removes them. It spares what is written after this
   * call. `undefined` if there are none.
   */
  async toRemove(principal: Principal, digest: string): Promise<(() => Promise<void>) | undefined> {
    const [state] = await this.states(principal, [digest]);
    if (!state) return undefined;
    const refs = [...passageRefs(principal, digest, 0, state.passages), contentRef(principal, digest)];
    const timed = await inParallel(refs, async (some) => {
      const times = await this.#objects.unrestricted.writeTimes(platform(principal), some);
      return some.map((ref, at) => ({ ref, writeUs: times[at] ?? 0 }));
    });
    return async () => {
      await inParallel(timed.flat(), (some) => this.#removeAt(principal, some));
    };
  }

  /** Searched files that have one of these contents now, page by page. */
  async *filesOf(
    principal: Principal,
    digests: readonly string[],
    signal?: AbortSignal,
  ): AsyncGenerator<readonly SearchedFile[]> {
    const where: readonly Pushdown[] = [{ kind: "equals", column: "digest", values: digests }];
    const request = { class: principal.ospace + FILE_CLASS.path, subtree: false, where, ...(signal && { signal }) };
    for await (const rows of this.#objects.unrestricted.read(platform(principal), request))
      yield rows.flatMap((row) => searchedFile(entryOf(row)) ?? []).filter(({ digest }) => digests.includes(digest));
  }

  /** Passages that may have all the words, page by page. The caller tests them. */
  async *passages(
    principal: Principal,
    where: readonly Pushdown[],
    signal?: AbortSignal,
  ): AsyncGenerator<readonly StoredPassage[]> {
    const request = { class: principal.ospace + PASSAGE_CLASS.path, subtree: false, where, ...(signal && { signal }) };
    for await (const rows of this.#objects.unrestricted.read(platform(principal), request)) yield rows.map(passageOf);
  }

  /** The passages of these contents, page by page. */
  async *passagesOf(
    principal: Principal,
    digests: readonly string[],
    signal?: AbortSignal,
  ): AsyncGenerator<readonly StoredPassage[]> {
    const states = await this.states(principal, digests);
    for (const [at, digest] of digests.entries()) {
      const passages = states[at]?.passages ?? 0;
      for (let from = 0; from < passages; from += FILE_PASSAGES_READ_AT_ONCE) {
        signal?.throwIfAborted();
        const refs = passageRefs(principal, digest, from, Math.min(passages, from + FILE_PASSAGES_READ_AT_ONCE));
        const rows = await this.#get(principal, refs);
        yield rows.flatMap((row) => (row ? [passageOf(row)] : []));
      }
    }
  }

  /** Includes a file in the search, or takes it out. Returns false if there is no such file. */
  include(principal: Principal, place: Place, isIncluded: boolean): Promise<boolean> {
    const edit = { column: "indexed", operation: "set", value: isIncluded } as const;
    return this.#objects.unrestricted.update(platform(principal), refOf(principal, place), [edit]);
  }

  #get(principal: Principal, refs: readonly ObjectRef[]): Promise<readonly (ObjectRow | undefined)[]> {
    return this.#objects.unrestricted.get(platform(principal), refs);
  }

  async #note(principal: Principal, rows: readonly Row[]): Promise<void> {
    const path = principal.ospace + CONTENT_CLASS.path;
    const current = rows.map((row) => ({ ...row, extractor: EXTRACTOR_VERSION }));
    await this.#objects.unrestricted.insert(platform(principal), path, current);
  }

  async #removeAt(principal: Principal, timed: readonly TimedRef[]): Promise<void> {
    for (const writeUs of new Set(timed.map((one) => one.writeUs))) {
      const refs = timed.flatMap((one) => (one.writeUs === writeUs ? one.ref : []));
      await this.#objects.unrestricted.remove(platform(principal), refs, { writeUs });
    }
  }
}

interface TimedRef {
  readonly ref: ObjectRef;
  readonly writeUs: number;
}

/**
 * Writes `FILE_PASSAGES_AT_ONCE` items at once, because one write must not take the thread for long, and several such
 * writes in parallel, because they share a flush. Resolves or fails when none is running any more.
 */
async function inParallel<T, R>(items: readonly T[], write: (some: readonly T[]) => Promise<R>): Promise<readonly R[]> {
  const parts: (readonly T[])[] = [];
  for (let from = 0; from < items.length; from += FILE_PASSAGES_AT_ONCE)
    parts.push(items.slice(from, from + FILE_PASSAGES_AT_ONCE));
  const failures: unknown[] = [];
  const written = await mapLimited(parts, FILE_PASSAGE_WRITES_AT_ONCE, async (some) => {
    if (failures.length > 0) return undefined;
    return write(some).catch((error: unknown) => void failures.push(error));
  });
  if (failures.length > 0) throw failures[0];
  return written.flatMap((one) => one ?? []);
}

/** The file with its digest if its content is searched. */
export function searchedFile(entry: FileEntry): SearchedFile | undefined {
  const { content, indexed } = entry;
  return content && indexed ? { ...entry, digest: content.digest } : undefined;
}

function contentRef({ ospace }: Principal, digest: string): ObjectRef {
  return { id: `filecontent:${digest}`, class: ospace + CONTENT_CLASS.path };
}

function passageRefs({ ospace }: Principal, digest: string, from: number, to: number): readonly ObjectRef[] {
  const path = ospace + PASSAGE_CLASS.path;
  return Array.from({ length: Math.max(0, to - from) }, (_, at) => ({
    id: `filepassage:${digest}:${from + at}`,
    class: path,
  }));
}

function stateOf({ values: { state, reason, passages, extractor } }: ObjectRow): ContentState {
  return {
    state: state as ContentState["state"],
    reason: String(reason ?? ""),
    passages: Number(passages ?? 0),
    isCurrent: extractor === EXTRACTOR_VERSION,
  };
}

function passageOf({ values: { digest, position, unit, text } }: ObjectRow): StoredPassage {
  return {
    digest: String(digest),
    position: Number(position ?? 1),
    unit: unit === "page" ? "page" : "line",
    text: String(text ?? ""),
  };
}
