import { expect, test } from "vitest";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import {
  FILE_SEARCH_FILES_MAX,
  FILE_SEARCH_FIRST_PASSAGES,
  FILE_SEARCH_FOLDER_ENTRIES_MAX,
  FILE_SEARCH_PASSAGES_MAX,
  FILE_SEARCH_ROWS_MAX,
} from "../../../../common/limits.ts";
import type { Principal } from "../../permissions/index.ts";
import { entryOf, type FileEntry } from "../entries.ts";
import { parentOf, type Place } from "../names.ts";
import { ALL_VISIBLE } from "../visible.ts";
import { Finding } from "./finding.ts";
import type { StoredPassage } from "./store.ts";
import { WantedParts } from "./wanted.ts";

/** Searches among more passages than one search looks at, over files and passages in memory. */

const admin = testPrincipal();
const PAGE = 64;

interface Content {
  readonly path: string;
  /** Texts of its passages. */
  readonly texts: readonly string[];
  /** Number of its files. The others have longer paths. Absent: 1. */
  readonly files?: number;
}

async function* paged<T>(all: readonly T[]): AsyncGenerator<readonly T[]> {
  for (let from = 0; from < all.length; from += PAGE) yield await Promise.resolve(all.slice(from, from + PAGE));
}

function fileOf(path: string, digest: string): FileEntry & { readonly digest: string } {
  const values = { space: "user", fullname: path, digest, mark: "file/m", indexed: true };
  return { ...entryOf({ id: path, values, vtimeMs: 0, ctimeMs: 0 }), digest };
}

function filesOf({ path, files = 1 }: Content) {
  return Array.from({ length: files }, (_, at) => fileOf(at === 0 ? path : `${path}.${at}`, path));
}

/** Searches the word `disk`. The digest of a content is the path of its first file. */
function searching(contents: readonly Content[]) {
  const files = new Map(contents.map((content) => [content.path, filesOf(content)]));
  const passages = contents.flatMap(({ path, texts }) =>
    texts.map((text, at): StoredPassage => ({ digest: path, position: at + 1, unit: "line", text })),
  );
  let examined = 0;
  const counted = async function* (some: readonly StoredPassage[]): AsyncGenerator<readonly StoredPassage[]> {
    for await (const page of paged(some)) {
      examined += page.length;
      yield page;
    }
  };
  const finding = new Finding({
    contents: {
      passages: () => counted(passages),
      passagesOf: (_, digests) => counted(passages.filter(({ digest }) => digests.includes(digest))),
      filesOf: (_, digests) => paged(digests.flatMap((digest) => files.get(digest) ?? [])),
    },
    files: {
      find: (_, { fullname }) => Promise.resolve(files.get(fullname)?.[0]),
      in: (_, { fullname }) => paged([...files.values()].flat().filter((file) => parentOf(file.fullname) === fullname)),
    },
    runtime: testRuntime(),
  });
  return async (fullname: string, principal: Principal = admin) => {
    examined = 0;
    const folder: Place = { space: "user", fullname };
    const wanted = new WantedParts("disk");
    const found = await finding.find({ principal, folder, wanted, visibility: ALL_VISIBLE, signal: undefined });
    return { ...found, examined, paths: found.rows.map(({ path }) => path) };
  };
}

const many = (folder: string, count: number): readonly Content[] =>
  Array.from({ length: count }, (_, at) => ({ path: `${folder}/f${at}.txt`, texts: ["disk"] }));
const NOT_ALL = [expect.stringContaining("Not all passages")];

test("a search ends when its answer is full, and says that there are more passages", async () => {
  const search = searching(many("/all", FILE_SEARCH_PASSAGES_MAX));
  const { rows, warnings, examined } = await search("/");
  expect(rows).toHaveLength(FILE_SEARCH_ROWS_MAX);
  expect(warnings).toEqual(NOT_ALL);
  expect(examined).toBeLessThanOrEqual(FILE_SEARCH_FIRST_PASSAGES + PAGE);
});

test("a search that looked at all passages has no warning", async () => {
  const search = searching(many("/all", FILE_SEARCH_FIRST_PASSAGES));
  expect((await search("/")).warnings).toEqual([]);
});

test("a small folder and a file are searched whole, however common the word is elsewhere", async () => {
  const search = searching([
    ...many("/other", FILE_SEARCH_PASSAGES_MAX),
    { path: "/small/sub/a.txt", texts: ["disk", "other"] },
  ]);
  // The folder /small/sub has no row of its own.
  for (const folder of ["/small/sub", "/small/sub/a.txt"]) {
    const { paths, warnings, examined } = await search(folder);
    expect(paths, folder).toEqual(["/small/sub/a.txt"]);
    expect(warnings, folder).toEqual([]);
    expect(examined, folder).toBeLessThanOrEqual(FILE_SEARCH_FIRST_PASSAGES + 2 * PAGE);
  }
});

test("a user of few paths finds the files on them, however common the word is elsewhere", async () => {
  const search = searching([...many("/other", FILE_SEARCH_PASSAGES_MAX), ...many("/mine", 2)]);
  const { paths, warnings } = await search("/", { ...admin, paths: ["/mine"] });
  expect([paths, warnings]).toEqual([["/mine/f0.txt", "/mine/f1.txt"], []]);
});

test("a large folder is searched by the words, up to the bound, and a hidden number is not told", async () => {
  const size = FILE_SEARCH_FOLDER_ENTRIES_MAX + 1;
  const before = many("/other", FILE_SEARCH_PASSAGES_MAX - size);
  const reached = await searching([...before, ...many("/large", size)])("/large");
  expect([reached.rows.length, reached.warnings]).toEqual([FILE_SEARCH_ROWS_MAX, []]);
  const beyond = await searching([...many("/other", FILE_SEARCH_PASSAGES_MAX), ...many("/large", size)])("/large");
  expect([beyond.rows, beyond.warnings]).toEqual([[], NOT_ALL]);
  expect(beyond.warnings.join()).not.toMatch(/\d/);
});

test("the best rows of all contents come first, with three of each content at most", async () => {
  const better = "disk disk disk";
  const search = searching([
    ...Array.from({ length: 40 }, (_, at) => ({ path: `/a/${at}`, texts: [better, "disk", "disk", "disk"] })),
    ...Array.from({ length: 60 }, (_, at) => ({ path: `/b/${at}`, texts: ["disk disk", "disk"] })),
  ]);
  const { rows, paths } = await search("/");
  expect(rows.map(({ score }) => score)).toEqual([...Array(40).fill(0.75), ...Array(60).fill(0.667)]);
  expect(new Set(paths).size).toBe(100);
  const few = await searching([{ path: "/a", texts: ["disk", better, "disk", "disk disk"] }])("/");
  expect(few.rows.map(({ position }) => position)).toEqual([2, 4, 1]);
});

test("a search ends after a bounded number of files, and answers what it found until then", async () => {
  const contents = [{ path: "/other", texts: ["disk"], files: FILE_SEARCH_FILES_MAX - 1 }, ...many("/a", 2)];
  const beyond = await searching(contents)("/");
  expect([beyond.paths.filter((path) => path.startsWith("/a/")), beyond.warnings]).toEqual([["/a/f0.txt"], NOT_ALL]);
  const most = await searching(contents.slice(0, 2))("/");
  expect([most.paths[0], most.warnings]).toEqual(["/a/f0.txt", []]);
});
