import { expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { FILE_INDEX_PART_PASSAGES } from "../../../../common/limits.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { entryOf } from "../entries.ts";
import { ContentIndexing, type IndexPart } from "./content-indexing.ts";
import type { Unreadable } from "./extractions.ts";
import type { Extracted } from "./extract/extract.ts";
import type { SearchedFile } from "./store.ts";

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

async function partsOf(
  found: Readonly<Record<string, Found>>,
  { isLast = false, files = Object.keys(found).map((digest) => fileOf(digest)) } = {},
) {
  const indexing = new ContentIndexing(testPrincipal(), {
    files: { get: () => Promise.resolve([]) },
    contents: { states: (_, digests) => Promise.resolve(digests.map(() => undefined)), keep: () => Promise.resolve() },
    extractions: {
      extract: ({ digest }) => {
        const one = found[digest];
        return one === undefined || one instanceof AppError
          ? Promise.reject(one ?? new RangeError())
          : Promise.resolve(one);
      },
    },
    signal: new AbortController().signal,
    isRetrying: true,
    indexed: () => undefined,
  });
  const parts: IndexPart[] = [];
  for await (const part of indexing.parts(files, { isLast })) parts.push(part);
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
