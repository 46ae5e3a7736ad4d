import { FILE_PASSAGES_AT_ONCE, FILE_PASSAGES_READ_AT_ONCE } from "../../../../common/limits.ts";
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

  /** Replaces the passages of a content. A repetition writes the same. */
  async keep(principal: Principal, digest: string, { passages, unit, note = "" }: Extracted): Promise<void> {
    const [before] = await this.states(principal, [digest]);
    const most = Math.max(passages.length, before?.passages ?? 0);
    await this.#note(principal, { digest, state: "indexing", reason: "", passages: most });
    for (let from = 0; from < passages.length; from += FILE_PASSAGES_AT_ONCE) {
      const rows = passages
        .slice(from, from + FILE_PASSAGES_AT_ONCE)
        .map((passage, at) => ({ digest, number: from + at, unit, ...passage }));
      await this.#objects.unrestricted.insert(platform(principal), principal.ospace + PASSAGE_CLASS.path, rows);
    }
    await this.#removePassages(principal, digest, passages.length, most);
    await this.#note(principal, { digest, state: "indexed", reason: note, passages: passages.length });
  }

  /** Notes that a content has no text that can be found, and removes what an earlier extraction found. */
  async refuse(principal: Principal, digest: string, reason: string): Promise<void> {
    const [before] = await this.states(principal, [digest]);
    await this.#removePassages(principal, digest, 0, before?.passages ?? 0);
    await this.#note(principal, { digest, state: "unindexed", reason, passages: 0 });
  }

  /**
   * Reads the objects of a content, and returns a function that removes them. It spares what is written after this
   * call. `undefined` if there are none.
   */
  async toRemove(principal: Principal, digest: string): Promise<(() => Promise<void>) | undefined> {
    const [state] = await this.states(principal, [digest]);
    if (!state) return undefined;
    const refs = [...passageRefs(principal, digest, 0, state.passages), contentRef(principal, digest)];
    const parts: { readonly refs: readonly ObjectRef[]; readonly times: readonly number[] }[] = [];
    for (let from = 0; from < refs.length; from += FILE_PASSAGES_AT_ONCE) {
      const some = refs.slice(from, from + FILE_PASSAGES_AT_ONCE);
      parts.push({ refs: some, times: await this.#objects.unrestricted.writeTimes(platform(principal), some) });
    }
    return async () => {
      for (const part of parts) await this.#removeAt(principal, part.refs, part.times);
    };
  }

  /** Searched files that have one of these contents now, page by page. */
  async *filesOf(
    principal: Principal,
    digests: readonly string[],
    signal?: AbortSignal,
  ): AsyncGenerator<readonly (FileEntry & { readonly digest: string })[]> {
    const where: readonly Pushdown[] = [{ kind: "equals", column: "digest", values: digests }];
    const request = { class: principal.ospace + FILE_CLASS.path, subtree: false, where, ...(signal && { signal }) };
    for await (const rows of this.#objects.unrestricted.read(platform(principal), request))
      yield rows.map(entryOf).flatMap((entry) => {
        const digest = entry.content?.digest;
        return digest !== undefined && entry.indexed && digests.includes(digest) ? [{ ...entry, digest }] : [];
      });
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

  async #note(principal: Principal, row: Row): Promise<void> {
    const path = principal.ospace + CONTENT_CLASS.path;
    await this.#objects.unrestricted.insert(platform(principal), path, [{ ...row, extractor: EXTRACTOR_VERSION }]);
  }

  async #removePassages(principal: Principal, digest: string, from: number, to: number): Promise<void> {
    for (let at = from; at < to; at += FILE_PASSAGES_AT_ONCE) {
      const refs = passageRefs(principal, digest, at, Math.min(to, at + FILE_PASSAGES_AT_ONCE));
      await this.#objects.unrestricted.remove(platform(principal), refs);
    }
  }

  async #removeAt(principal: Principal, refs: readonly ObjectRef[], times: readonly number[]): Promise<void> {
    for (const writeUs of new Set(times)) {
      const some = refs.filter((_, at) => times[at] === writeUs);
      await this.#objects.unrestricted.remove(platform(principal), some, { writeUs });
    }
  }
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
