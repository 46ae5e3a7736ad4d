import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AppError } from "../../../../common/errors.ts";
import { fileController, NO_TRAIL, type FileController } from "../../../../test/helpers/areas/files.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { Mortality, mortalStores } from "../../../../test/helpers/engines/mortal.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import { tagRuntime } from "../../../../test/helpers/objects/tags.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { BlobStore } from "../../../store/blobs.ts";
import type { Stores } from "../../../store/engine.ts";
import { encodeJson } from "../../../store/format.ts";
import type { KvStore } from "../../../store/kv.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { ObjectService } from "../../objects/index.ts";
import { visibleObjects } from "../../query/index.ts";
import { filesArea } from "../area.ts";
import { FileService } from "../service.ts";
import { revisionOfFile } from "./expected.ts";

/** An upload or a move whose controller dies leaves no mark of a content that no file names. */

const admin = testPrincipal();
const ARRIVING = "files/arriving/";
const user = (path: string) => ({ path, space: "user" as const });

let engine: TestEngine;
let one: FileController;
beforeAll(async () => {
  engine = await openTestEngine();
  one = fileController(engine);
});
afterAll(async () => {
  await one[Symbol.asyncDispose]();
  await engine.close();
});

async function keysUnder(prefix: string): Promise<readonly string[]> {
  const { kv } = await engine.tenant("matrix");
  const keys: string[] = [];
  for await (const { key } of entriesUnder(kv, prefix)) keys.push(key);
  return keys;
}

/** True if a mark keeps the content. */
async function isKept(text: string): Promise<boolean> {
  const { blobs } = await engine.tenant("matrix");
  await blobs.sweep(0);
  return (await blobs.stat(createHash("sha256").update(text).digest("hex"))) !== undefined;
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(Buffer.from(text));
}

async function upload(files: FileService, path: string, text: string): Promise<void> {
  const content = await files.takeIn(admin, user(path), { bytes: bytesOf(text), announcedBytes: 0 });
  try {
    await files.save(admin, user(path), { content });
  } finally {
    await content.release();
  }
}

const textOf = async (path: string) => (await one.files.read(admin, path)).text;

/** A controller that dies at writes of its `mortality`. Bytes arrive uncounted: each write after them is counted. */
async function dyingFiles(mortality: () => Mortality) {
  const { keys, data } = mortalStores(engine, mortality);
  const runtime = tagRuntime();
  const objects = new ObjectService({ visible: visibleObjects, stores: data, runtime });
  for (const definition of filesArea(one.files, one.search, NO_TRAIL).classes ?? [])
    objects.registerSystemClass(definition);
  await objects.catalog(admin);
  const stores: Stores = {
    system: () => engine.system(),
    tenant: async (name) => {
      const store = await keys.tenant(name);
      const mortal = mortality().mortal(store.blobs);
      const blobs: BlobStore = new Proxy(mortal, {
        get: (_, member) =>
          member === "put" ? store.blobs.put.bind(store.blobs) : (Reflect.get(mortal, member) as unknown),
      });
      return { ...store, blobs };
    },
  };
  const files = () => new FileService({ stores, objects, runtime, controllers: { own: "dying", has: () => true } });
  return { files, close: () => objects.close() };
}

/** See `Mortality`: with 2, every state comes once. On the cluster, each simulated life of a controller takes a second. */
const WRITES_BETWEEN = onCluster ? 3 : 2;

test.each(["an upload", "a move on a revision"])(
  "whatever write the controller of %s dies at, only the content that a file names stays",
  async (kind) => {
    let mortality = new Mortality(Infinity, false);
    const dying = await dyingFiles(() => mortality);
    const heir = fileController(engine, { own: "heir", gone: new Set(["dying"]) });
    const ends = new Set<boolean>();
    for (let life = 0; ; life++) {
      const [path, to] = [`/die/${kind}/${String(life)}`, `/died/${kind}/${String(life)}`];
      const [before, after] = [`${path} before`, `${path} after`];
      await one.files.write(admin, user(path), { text: before });
      const revision = revisionOfFile(await one.files.about(admin, user(path)));
      mortality = new Mortality(Math.floor(life / 2) * WRITES_BETWEEN, life % 2 === 1);
      const files = dying.files();
      const call =
        kind === "an upload"
          ? upload(files, path, after)
          : files.rename(admin, user(path), to, { revisions: [revision], isAbsent: false });
      call.catch(() => undefined);
      if (!(await Promise.race([call.then(() => false), mortality.died.then(() => true)]))) break;
      await heir.files.maintain("matrix");
      expect([await keysUnder(ARRIVING), await keysUnder("files/pending/")], path).toEqual([[], []]);
      const isMoved = await one.files.exists(admin, user(to));
      const found = await textOf(isMoved ? to : path);
      expect([before, after]).toContain(found);
      expect([await isKept(before), await isKept(after)], path).toEqual([found === before, found === after]);
      expect(await one.files.exists(admin, user(path))).toBe(!isMoved);
      ends.add(isMoved || found === after);
      await heir.files.remove(admin, user(isMoved ? to : path));
      expect([await isKept(before), await isKept(after)], path).toEqual([false, false]);
      await mortality.bury();
    }
    expect([...ends].sort()).toEqual([false, true]);
    await heir[Symbol.asyncDispose]();
    await dying.close();
  },
);

/** A controller whose transactions are met by `meet` before or after they are made. */
function metController(meet: (make: () => ReturnType<KvStore["txn"]>) => ReturnType<KvStore["txn"]>): FileController {
  let isMet = false;
  const tenant: Stores["tenant"] = async (name) => {
    const store = await engine.tenant(name);
    const txn: KvStore["txn"] = (request) => {
      const isDecision = request.then.some(({ key, kind }) => kind === "delete" && key.startsWith(ARRIVING));
      if (!isDecision || isMet) return store.kv.txn(request);
      isMet = true;
      return meet(() => store.kv.txn(request));
    };
    return { ...store, objects: store.objects, blobs: store.blobs, kv: wrappedKv(store.kv, { txn }) };
  };
  return fileController({ system: () => engine.system(), tenant }, { own: "met" });
}

const codeOf = (error: AppError) => error.code;

test("a controller that was taken for dead decides nothing with the content that another one has released", async () => {
  await one.files.write(admin, user("/held"), { text: "before" });
  const heir = fileController(engine, { own: "heir", gone: new Set(["met"]) });
  await using met = metController(async (make) => {
    await heir.files.maintain("matrix");
    return make();
  });
  expect(await upload(met.files, "/held", "of the dead").catch(codeOf)).toBe("unknown_outcome");
  expect([await textOf("/held"), await isKept("before"), await isKept("of the dead")]).toEqual(["before", true, false]);
  expect(await keysUnder(ARRIVING)).toEqual([]);
  await heir[Symbol.asyncDispose]();
});

test("a change whose answer was lost, and that others followed, is made once", async () => {
  await one.files.write(admin, user("/lost"), { text: "lost before" });
  await using met = metController(async (make) => {
    await make();
    await one.files.note(admin, user("/lost"), { tags: ["next"] });
    return { ok: false, revision: 0 } as Awaited<ReturnType<KvStore["txn"]>>;
  });
  await upload(met.files, "/lost", "after");
  expect([await textOf("/lost"), await isKept("after"), await isKept("lost before")]).toEqual(["after", true, false]);
  expect((await one.files.about(admin, user("/lost"))).tags).toEqual(["next"]);
});

test("a content that others replaced before its writer knew that it was decided stays in the history", async () => {
  const history = { ageMs: 3_600_000, maxBytes: 1_048_576 };
  await using other = fileController(engine, { own: "other", history });
  await other.files.write(admin, user("/followed"), { text: "first" });
  await using met = metController(async (make) => {
    await make();
    await other.files.write(admin, user("/followed"), { text: "followed by others" });
    return { ok: false, revision: 0 } as Awaited<ReturnType<KvStore["txn"]>>;
  });
  expect(await upload(met.files, "/followed", "decided").catch(codeOf)).toBe("unknown_outcome");
  expect([await textOf("/followed"), await isKept("decided")]).toEqual(["followed by others", true]);
});

test("the mark of a content that its own controller could not release is removed by its maintenance", async () => {
  const { kv, blobs } = await engine.tenant("matrix");
  const { digest } = await blobs.put([Buffer.from("left")], "file/left");
  const record = { id: "left", tenant: "matrix", digest, mark: "file/left", owner: "one", attempt: 0 };
  await kv.put(`${ARRIVING}left`, encodeJson(record));
  expect(await isKept("left")).toBe(true);
  await one.files.maintain("matrix");
  expect([await isKept("left"), await keysUnder(ARRIVING)]).toEqual([false, []]);
});
