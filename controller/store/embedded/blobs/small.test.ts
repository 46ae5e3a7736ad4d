import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { BLOB_ROW_MAX_BYTES } from "../../../../common/limits.ts";
import { storeFolder } from "../../../../test/helpers/runs/folders.ts";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { nodeFiles } from "../../../files.ts";
import type { BlobStore } from "../../blobs.ts";
import { Environment } from "../environment/environment.ts";
import { EmbeddedBlobStore } from "./blobs.ts";
import { Contents } from "./contents.ts";

let folder: string;
let env: Environment;
let blobs: BlobStore;
let nowMs = 1;

const random = seededRandom(1);
const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs, after: () => () => undefined };

beforeEach(async () => {
  folder = await storeFolder("odp-small-");
  env = new Environment(join(folder, "lmdb"), clock);
  blobs = await EmbeddedBlobStore.open({
    ...{ env, folder: join(folder, "blobs"), files: nodeFiles, runtime: { clock, random } },
  });
});

afterEach(() => env.close());

async function textOf(digest: string, range = {}): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of blobs.read(digest, range)) parts.push(part);
  return Buffer.concat(parts).toString();
}

const files = async (): Promise<readonly string[]> => (await readdir(join(folder, "blobs", "contents"))).toSorted();

test("a content up to the bound has no file, and is read in any part", async () => {
  const text = "small".repeat(BLOB_ROW_MAX_BYTES).slice(0, BLOB_ROW_MAX_BYTES);
  const { digest, size } = await blobs.put([Buffer.from(text.slice(0, 9)), Buffer.from(text.slice(9))], "o");
  expect(await blobs.stat(digest)).toEqual({ digest, size });
  expect(await files()).toEqual([]);
  expect(await textOf(digest)).toBe(text);
  expect(await textOf(digest, { start: 5, end: 10 })).toBe("small");
  expect(await textOf(digest, { start: size - 1, end: size + 9 })).toBe(text.at(-1));
  expect(await textOf(digest, { start: size })).toBe("");
  const nothing = await blobs.put([], "o");
  expect(await textOf(nothing.digest)).toBe("");
});

test("a content beyond the bound has a file, and the source is told when its write ends or fails", async () => {
  let ended = 0;
  function* source(): Iterable<Uint8Array> {
    try {
      for (let at = 0; at <= BLOB_ROW_MAX_BYTES; at += 1_024) yield Buffer.alloc(1_024, "x");
    } finally {
      ended += 1;
    }
  }
  const { digest, size } = await blobs.put(source(), "o");
  expect([size, await textOf(digest)]).toEqual([BLOB_ROW_MAX_BYTES + 1_024, "x".repeat(BLOB_ROW_MAX_BYTES + 1_024)]);
  expect(await files()).toEqual([digest.slice(0, 2)]);
  const refused = blobs.put(source(), "o", () => Promise.reject(new Error("no room")));
  await expect(refused).rejects.toThrow("no room");
  expect(ended).toBe(2);
});

test("pieces whose memory the source uses again are copied", async () => {
  const piece = Buffer.alloc(4);
  function* source(): Iterable<Uint8Array> {
    for (const text of ["abcd", "efgh"]) yield piece.fill(text);
  }
  expect(await textOf((await blobs.put(source(), "o")).digest)).toBe("abcdefgh");
});

test("a refused small content has no mark, and a sweep leaves nothing of an unmarked one", async () => {
  const refused = blobs.put([Buffer.from("a")], "o", () => Promise.reject(new Error("no room")));
  await expect(refused).rejects.toThrow("no room");
  expect([...env.tables.marks.getKeys({})]).toEqual([]);
  const { digest } = await blobs.put([Buffer.from("b")], "o");
  nowMs += 10;
  expect(await blobs.sweep(5)).toBe(0);
  await blobs.unmark(digest, "o");
  expect(await blobs.sweep(5)).toBe(1);
  expect(await blobs.stat(digest)).toBeUndefined();
  expect([...env.tables.smallContents.getKeys({})]).toEqual([]);
  await expect(blobs.mark(digest, "p")).rejects.toMatchObject({ code: "not_found" });
});

test("a small content that an earlier version stored in a file is read, marked, put again and swept", async () => {
  await mkdir(join(folder, "blobs", "contents"), { recursive: true });
  const earlier = new Contents({ folder: join(folder, "blobs", "contents"), files: nodeFiles, random });
  const { digest } = await earlier.put([Buffer.from("old")], (_, finish) => finish());
  expect(await textOf(digest)).toBe("old");
  await blobs.mark(digest, "p");
  await blobs.put([Buffer.from("old")], "o");
  expect(await textOf(digest)).toBe("old");
  for (const owner of ["p", "o"]) await blobs.unmark(digest, owner);
  nowMs += 10;
  expect(await blobs.sweep(5)).toBe(1);
  expect([await blobs.stat(digest), await earlier.stat(digest)]).toEqual([undefined, undefined]);
});

test("a damaged small content is told, never served, and mended by the next put", async () => {
  const content = Buffer.from("precious");
  const { digest } = await blobs.put([content], "o");
  const key = Buffer.from(digest);
  const [row] = env.tables.smallContents.rows({});
  await env.write(() => env.tables.smallContents.put(key, row!.value, false));
  await expect(textOf(digest)).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("damaged"),
  });
  await blobs.put([content], "o");
  expect(await textOf(digest)).toBe("precious");
});
