import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import type { Expected } from "../../../../common/revisions.ts";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import { mortalFiles } from "../../../../test/helpers/areas/mortal-files.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { Mortality } from "../../../../test/helpers/engines/mortal.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import { BLOB_ROW_MAX_BYTES } from "../../../../common/limits.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { BlobStore } from "../../../store/blobs.ts";
import type { Stores } from "../../../store/engine.ts";
import type { KvStore } from "../../../store/kv.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import type { FileService } from "../service.ts";
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

async function upload(files: FileService, path: string, text: string, expected?: Expected): Promise<void> {
  const content = await files.takeIn(admin, user(path), { bytes: bytesOf(text), announcedBytes: 0 });
  try {
    await files.save(admin, user(path), { content, expected });
  } finally {
    await content.release();
  }
}

const textOf = async (path: string) => (await one.files.read(admin, path)).text;

/** See `Mortality`: with 2, every state comes once. On the cluster, each simulated life of a controller takes a second. */
const WRITES_BETWEEN = onCluster ? 3 : 2;

/** Work on a file at `path` with the content "… before", and the number of its ends: made or not. */
interface Kind {
  readonly work: (files: FileService, path: string, revision: string) => Promise<unknown>;
  readonly ends: readonly boolean[];
}

/** Longer than a content that is stored in the commit of its file. */
const LARGE = "x".repeat(BLOB_ROW_MAX_BYTES + 1);

const KINDS: Readonly<Record<string, Kind>> = {
  "an upload": { work: (files, path) => upload(files, path, `${path} after`), ends: [false, true] },
  "an upload that is refused": {
    work: (files, path) =>
      upload(files, path, `${path} after`, { revisions: ["other"], isAbsent: false }).catch((error: unknown) =>
        expect(error).toMatchObject({ code: "stale" }),
      ),
    ends: [false],
  },
  "a move on a revision": {
    work: (files, path, revision) =>
      files.rename(admin, user(path), `${path} moved`, { revisions: [revision], isAbsent: false }),
    ends: [false, true],
  },
};

test.each(Object.keys(KINDS))(
  "whatever write the controller of %s dies at, only the content that a file names stays",
  async (name) => {
    const kind = KINDS[name] as Kind;
    await using heir = fileController(engine, { own: "heir", gone: new Set(["dying"]) });
    await using mortal = await mortalFiles(engine, heir);
    const ends = new Set<boolean>();
    for (let life = 0, isDead = true; isDead; life++) {
      const path = `/die/${name}/${String(life)}`;
      const [to, before, after] = [`${path} moved`, `${path} before`, `${path} after`];
      await one.files.write(admin, user(path), { text: before });
      const revision = revisionOfFile(await one.files.about(admin, user(path)));
      const mortality = new Mortality(Math.floor(life / 2) * WRITES_BETWEEN, life % 2 === 1);
      isDead = await mortal.dies(mortality, (files) => kind.work(files, path, revision));
      expect([await keysUnder(ARRIVING), await keysUnder("files/pending/")], path).toEqual([[], []]);
      const isMoved = await one.files.exists(admin, user(to));
      const found = await textOf(isMoved ? to : path);
      expect([before, after]).toContain(found);
      expect([await isKept(before), await isKept(after)], path).toEqual([found === before, found === after]);
      expect(await one.files.exists(admin, user(path))).toBe(!isMoved);
      ends.add(isMoved || found === after);
      await heir.files.remove(admin, user(isMoved ? to : path));
      expect([await isKept(before), await isKept(after)], path).toEqual([false, false]);
    }
    expect([...ends].sort()).toEqual(kind.ends);
  },
);

test.each([
  ["small", "new", [false, true]],
  ["large", LARGE, [false, true]],
])(
  "whatever write the controller of an upload of a new %s file dies at, it has its content or is not there",
  async (size, text, ends) => {
    await using heir = fileController(engine, { own: "heir", gone: new Set(["dying"]) });
    await using mortal = await mortalFiles(engine, heir);
    const found = new Set<boolean>();
    for (let life = 0, isDead = true; isDead; life++) {
      const [path, content] = [`/new-${size}-${String(life)}`, `${text} ${String(life)}`];
      const mortality = new Mortality(Math.floor(life / 2) * WRITES_BETWEEN, life % 2 === 1);
      isDead = await mortal.dies(mortality, (files) => upload(files, path, content));
      expect([await keysUnder(ARRIVING), await keysUnder("files/pending/")], path).toEqual([[], []]);
      const isThere = await one.files.exists(admin, user(path));
      expect(await isKept(content), path).toBe(isThere);
      if (isThere) expect(await textOf(path)).toBe(content);
      found.add(isThere);
    }
    expect([...found].sort()).toEqual(ends);
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

test("maintenance leaves a content that is being saved, and releases it when its own controller could not", async () => {
  let isFailing = true;
  const tenant: Stores["tenant"] = async (name) => {
    const store = await engine.tenant(name);
    const unmark: BlobStore["unmark"] = (...given) =>
      isFailing ? Promise.reject(new AppError("unavailable", "on purpose")) : store.blobs.unmark(...given);
    return { ...store, blobs: new Mortality(Infinity, false).mortal(store.blobs, { unmark }) };
  };
  await using own = fileController({ system: () => engine.system(), tenant }, { own: "own" });
  const text = LARGE.replace("x", "left");
  const content = await own.files.takeIn(admin, user("/left"), { bytes: bytesOf(text), announcedBytes: 0 });
  await own.files.maintain("matrix");
  await expect(content.release()).rejects.toMatchObject({ code: "unavailable" });
  expect([await isKept(text), await keysUnder(ARRIVING)]).toEqual([true, [expect.any(String)]]);
  isFailing = false;
  await own.files.maintain("matrix");
  expect([await isKept(text), await keysUnder(ARRIVING)]).toEqual([false, []]);
});

test("a content that cannot be marked leaves no record", async () => {
  await one.files.write(admin, user("/lost-content"), { text: "lost content" });
  const { content } = await one.files.about(admin, user("/lost-content"));
  const { blobs } = await engine.tenant("matrix");
  await blobs.unmark(content?.digest ?? "", content?.mark ?? "");
  expect(await isKept("lost content")).toBe(false);
  const revision = revisionOfFile(await one.files.about(admin, user("/lost-content")));
  const moved = one.files.rename(admin, user("/lost-content"), "/to", { revisions: [revision], isAbsent: false });
  await expect(moved).rejects.toMatchObject({ code: "not_found" });
  expect(await keysUnder(ARRIVING)).toEqual([]);
});
