import { afterAll, beforeAll, expect, test } from "vitest";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { BLOB_ROW_MAX_BYTES, FILE_CONTENTS_IN_MEMORY_MAX } from "../../../../common/limits.ts";
import type { Stores } from "../../../store/engine.ts";
import type { FileService } from "../service.ts";

/** The writes of the stores that a change of a file takes. */

const admin = testPrincipal();
const user = (path: string) => ({ path, space: "user" as const });

let engine: TestEngine;
let one: FileController;
let writes: string[] = [];
beforeAll(async () => {
  engine = await openTestEngine();
  one = fileController(counting(engine));
  await one.files.makeFolder(admin, user("/in"));
});
afterAll(async () => {
  await one[Symbol.asyncDispose]();
  await engine.close();
});

function counting(stores: Stores): Stores {
  const noted = <G extends readonly unknown[], T>(name: string, write: (...given: G) => T) => {
    return (...given: G): T => {
      writes.push(name);
      return write(...given);
    };
  };
  const tenant: Stores["tenant"] = async (name) => {
    const { kv, objects, blobs, scrub } = await stores.tenant(name);
    const watched = <T extends object>(target: T, names: readonly string[]): T =>
      new Proxy(target, {
        get: (_, member) => {
          const found: unknown = Reflect.get(target, member);
          if (typeof found !== "function") return found;
          const call = (...given: unknown[]): unknown => Reflect.apply(found, target, given);
          return names.includes(String(member)) ? noted(String(member), call) : call;
        },
      });
    return {
      kv: wrappedKv(kv, { txn: noted("txn", (request) => kv.txn(request)) }),
      objects: watched(objects, ["change", "append"]),
      blobs: watched(blobs, ["put", "mark", "unmark"]),
      scrub,
    };
  };
  return { system: () => stores.system(), tenant };
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(Buffer.from(text));
}

const taken = (files: FileService, path: string, text: string) =>
  files.takeIn(admin, user(path), { bytes: bytesOf(text), announcedBytes: 0 });

async function upload(path: string, text: string): Promise<readonly string[]> {
  writes = [];
  const content = await taken(one.files, path, text);
  await one.files.save(admin, user(path), { content });
  await content.release();
  expect((await one.files.read(admin, path)).text).toBe(text);
  return writes;
}

test.skipIf(onCluster)(
  "a new small file is one commit, and a large or replaced one has a content of its own before",
  async () => {
    expect(await upload("/in/small", "small")).toEqual(["change"]);
    expect(await upload("/in/large", "x".repeat(BLOB_ROW_MAX_BYTES + 1))).toContain("put");
    expect(await upload("/in/small", "again")).toContain("put");
  },
);

test("a content in memory that no file takes is gone, and the next ones beyond the bound are stored", async () => {
  writes = [];
  const held = [];
  for (let at = 0; at <= FILE_CONTENTS_IN_MEMORY_MAX; at++)
    held.push(await taken(one.files, "/in/held", `held ${String(at)}`));
  const puts = writes.filter((name) => name === "put").length;
  expect(puts).toBeGreaterThanOrEqual(onCluster ? held.length : 1);
  for (const content of held) await content.release();
  expect(await one.files.exists(admin, user("/in/held"))).toBe(false);
  if (!onCluster) expect(await upload("/in/after", "after")).toEqual(["change"]);
});
