import { expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { FILE_INDEX_PART_PASSAGES, FILE_INDEX_READS_MAX } from "../../../../common/limits.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { entryOf } from "../entries.ts";
import { ContentIndexing, type IndexPart } from "./content-indexing.ts";
import type { Unreadable } from "./extractions.ts";
import type { Extracted } from "./extract/extract.ts";
import type { ContentState, SearchedFile } from "./store.ts";

/** Texts of contents before they are stored, over extractions that are given. */

type Found = Extracted | Unreadable | AppError;

const textOf = (passages: number): Extracted => ({
  unit: "line",
  passages: Array.from({ length: passages }, (_, at) => ({ position: at + 1, text: "disk" })),
});

function fileOf(digest: string, path = digest): SearchedFile {
  const values = { space: "user", fullname: `/${path}`, digest, mark: "file/m", indexed: true };
  return { ...entryOf({ id: path, values, vtimeMs: 0, ctimeMs: 0 }), digest };
}

interface World {
  readonly found?: Readonly<Record<string, Found>>;
  readonly states?: Readonly<Record<string, ContentState>>;
  readonly isRetrying?: boolean;
  /** Files at each read of them. */
  readonly reads?: readonly (readonly SearchedFile[])[];
}

function indexingOf({ found = {}, states = {}, isRetrying = true, reads = [] }: World) {
  const [extracted, kept, told]: [string[], string[], string[]] = [[], [], []];
  let read = 0;
  const indexing = new ContentIndexing(testPrincipal(), {
    files: { get: () => Promise.resolve(reads[read++] ?? []) },
    contents: {
      states: (_, digests) => Promise.resolve(digests.map((digest) => states[digest])),
      keep: (_, texts) => Promise.resolve(void kept.push(...texts.map(({ digest }) => digest))),
    },
    extractions: {
      extract: ({ digest }) => {
        extracted.push(digest);
        const one = found[digest];
        return one === undefined || one instanceof AppError
          ? Promise.reject(one ?? new RangeError())
          : Promise.resolve(one);
      },
    },
    signal: new AbortController().signal,
    isRetrying,
    indexed: ({ fullname }, reason) => told.push(`${fullname} ${reason}`),
  });
  return { indexing, extracted, kept, told, reads: () => read };
}

async function partsOf(
  found: Readonly<Record<string, Found>>,
  { isLast = false, files = Object.keys(found).map((digest) => fileOf(digest)) } = {},
) {
  const parts: IndexPart[] = [];
  for await (const part of indexingOf({ found }).indexing.parts(files, { isLast })) parts.push(part);
  return parts;
}

test("a content that cannot be read at any attempt is told after the last one, beside the others", async () => {
  const found = { bad: new AppError("unavailable", "It is damaged on the disk."), good: textOf(1) };
  await expect(partsOf(found)).rejects.toMatchObject({ code: "unavailable" });
  const [part] = await partsOf(found, { isLast: true });
  expect(part?.texts.map(({ digest, state, reason }) => [digest, state, reason])).toEqual([
    ["bad", "unindexed", "It is damaged on the disk."],
    ["good", "indexed", ""],
  ]);
  await expect(partsOf({ one: new AppError("limited", "full") }, { isLast: true })).rejects.toMatchObject({
    code: "limited",
  });
});

test("texts are stored in parts of a bounded number of passages, and files of one content together", async () => {
  const half = textOf(FILE_INDEX_PART_PASSAGES / 2);
  const files = [fileOf("a"), fileOf("b"), fileOf("c"), fileOf("a", "copy of a")];
  const parts = await partsOf({ a: half, b: half, c: textOf(1) }, { files });
  expect(parts.map((part) => part.files.map(({ fullname }) => fullname))).toEqual([["/a", "/copy of a", "/b"], ["/c"]]);
  expect(parts.map(({ texts }) => texts.length)).toEqual([2, 1]);
});

test("a content that is indexed is not read again, unless its passages are those of an earlier version", async () => {
  const known = { reason: "", passages: 1, isCurrent: true };
  const states: Readonly<Record<string, ContentState>> = {
    indexed: { ...known, state: "indexed" },
    old: { ...known, state: "indexed", isCurrent: false },
    begun: { ...known, state: "indexing" },
    bad: { ...known, state: "unindexed", reason: "It is no text." },
  };
  const digests = ["indexed", "old", "begun", "bad", "new"];
  const found = Object.fromEntries(digests.map((digest) => [digest, textOf(1)]));
  for (const [isRetrying, isForced, expected] of [
    [false, false, ["old", "begun", "new"]],
    [true, false, ["old", "begun", "bad", "new"]],
    [false, true, digests],
  ] as const) {
    const { indexing, extracted } = indexingOf({ found, states, isRetrying });
    const files = digests.map((digest) => fileOf(digest));
    const reasons = new Map<string, string>();
    for await (const part of indexing.parts(files, { isLast: true, isForced }))
      for (const reason of part.reasons) reasons.set(...reason);
    expect(extracted).toEqual(expected);
    expect(reasons.get("bad")).toBe(expected.some((digest) => digest === "bad") ? "" : "It is no text.");
  }
});

test("a file that is replaced while it is indexed is indexed again, and its former content is lost", async () => {
  const found = Object.fromEntries(["a", "b", "c", "d", "e"].map((digest) => [digest, textOf(1)]));
  const as = (digest: string) => fileOf(digest, "file");
  const part = { files: [as("a"), fileOf("b")], texts: [], reasons: new Map([["b", "It is cut."]]) };
  const once = indexingOf({ found, reads: [[as("c"), fileOf("b")], [as("c")]] });
  expect(await once.indexing.keep(part, { isLast: true })).toEqual(new Set(["a"]));
  expect([once.kept, once.told]).toEqual([["c"], ["/file ", "/b It is cut."]]);
  const removed = indexingOf({ found, reads: [[as("a")]] });
  expect(await removed.indexing.keep(part, { isLast: true })).toEqual(new Set(["b"]));
  const always = indexingOf({ found, reads: [[as("c"), fileOf("b")], [as("d")], [as("e")], [as("a")]] });
  expect(await always.indexing.keep(part, { isLast: true })).toEqual(new Set(["a", "c", "d"]));
  expect(always.reads()).toBe(FILE_INDEX_READS_MAX);
});
