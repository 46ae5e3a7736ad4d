import { afterAll, beforeAll, expect, test } from "vitest";
import { keysUnder } from "../../../../test/helpers/engines/keys.ts";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import { mortalFiles, type MortalFiles } from "../../../../test/helpers/areas/mortal-files.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { Mortality } from "../../../../test/helpers/engines/mortal.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { TIMES } from "../../../../test/helpers/time/times.ts";
import type { FileService } from "../service.ts";

/** Work with kept trees whose controller dies at any write is finished by another, or was never begun. */

const admin = testPrincipal();
const OLD = { "/1": "one", "/a/2": "two", "/same": "same" };
const NEW = { "/1": "one, changed", "/a/2/now": "a folder", "/same": "same" };
type Tree = Readonly<Record<string, string>>;

let engine: TestEngine;
let heir: FileController;
let mortal: MortalFiles;
beforeAll(async () => {
  engine = await openTestEngine();
  heir = fileController(engine, { own: "heir", gone: new Set(["dying"]) });
  mortal = await mortalFiles(engine, heir);
});
afterAll(async () => {
  await heir[Symbol.asyncDispose]();
  await mortal[Symbol.asyncDispose]();
  await engine.close();
});

async function put(at: string, tree: Tree): Promise<void> {
  if (await heir.files.exists(admin, heir.user(at))) await heir.files.remove(admin, heir.user(at));
  for (const [path, text] of Object.entries(tree))
    await heir.files.write(admin, heir.user(at + path), { text: `${text} in ${at}` });
}

/** Files of the tree and their texts, read after a sweep of unused contents. */
async function treeAt(at: string): Promise<Tree> {
  await (await engine.tenant("matrix")).blobs.sweep(0);
  const files = (await heir.tree(admin, at)).filter((path) => !path.endsWith("/"));
  const found: [string, string][] = [];
  for (const path of files)
    found.push([path.slice(at.length), (await heir.files.read(admin, path)).text.replace(` in ${at}`, "")]);
  return Object.fromEntries(found);
}

interface Kind {
  /** Makes what the work needs. */
  readonly prepare: (at: string) => Promise<unknown>;
  readonly work: (files: FileService, at: string) => Promise<unknown>;
  /** The version of the tree afterwards, if the work was done, and if it was not begun. */
  readonly done: Tree | undefined;
  readonly former: Tree | undefined;
}

const versions = (files: FileService = heir.files) => files.versions;
const KINDS: Readonly<Record<string, Kind>> = {
  "first push": {
    prepare: (at) => put(at, NEW),
    work: (files, at) => versions(files).push(admin, heir.user(at), "v"),
    done: NEW,
    former: undefined,
  },
  "second push": {
    prepare: async (at) => {
      await put(at, OLD);
      await versions().push(admin, heir.user(at), "v");
      await put(at, NEW);
    },
    work: (files, at) => versions(files).push(admin, heir.user(at), "v"),
    done: NEW,
    former: OLD,
  },
  deletion: {
    prepare: async (at) => {
      await put(at, OLD);
      await versions().push(admin, heir.user(at), "v");
    },
    work: (files, at) => versions(files).remove(admin, heir.user(at), "v"),
    done: undefined,
    former: OLD,
  },
};

/** On the cluster, each simulated life of a controller takes seconds. */
const WRITES_BETWEEN = onCluster ? 15 : TIMES > 1 ? 1 : 5;

/** Begins the work in a controller that dies at the given write. Returns true if it died before the work ended. */
async function dies(life: number, work: (files: FileService) => Promise<unknown>): Promise<boolean> {
  const mortality = new Mortality(Math.floor(life / 2) * WRITES_BETWEEN, life % 2 === 1);
  const isDead = await mortal.dies(mortality, work);
  if (isDead) expect(await keysUnder(engine, "files/open/"), `${life}`).toEqual([]);
  return isDead;
}

/** Content of the version, as a pull into an empty place shows it; `undefined`: there is no version. */
async function versionAt(at: string): Promise<Tree | undefined> {
  await heir.files.remove(admin, heir.user(at));
  await (await engine.tenant("matrix")).blobs.sweep(0);
  try {
    await versions().pull(admin, heir.user(at), "v");
  } catch (error) {
    expect(error).toMatchObject({ code: "not_found" });
    return undefined;
  }
  return treeAt(at);
}

/** Fails if one of these contents is still stored, or a list of a tree. */
async function expectNothingLeft(at: string, digests: readonly string[]): Promise<void> {
  const { blobs } = await engine.tenant("matrix");
  if (await heir.files.exists(admin, heir.user(at))) await heir.files.remove(admin, heir.user(at));
  await blobs.sweep(0);
  for (const digest of digests) expect(await blobs.stat(digest), at).toBeUndefined();
  for (const stream of mortal.streams) expect((await blobs.readStream(stream, 0, 1)).size, `${at} ${stream}`).toBe(0);
  mortal.streams.clear();
  expect(await keysUnder(engine, "files/versions/"), at).toEqual([]);
  expect(await keysUnder(engine, "files/version-counts/"), at).toEqual([]);
}

async function digestsAt(at: string): Promise<readonly string[]> {
  const files = (await heir.tree(admin, at)).filter((path) => !path.endsWith("/"));
  return Promise.all(files.map(async (path) => (await heir.files.read(admin, path)).digest));
}

test.each(Object.keys(KINDS))("a %s leaves the old version or the new one, and no content behind", async (name) => {
  const kind = KINDS[name] as Kind;
  let done = 0;
  for (let life = 0; ; life++) {
    const at = `/${name.replace(" ", "")}${life}`;
    await kind.prepare(at);
    const before = await digestsAt(at);
    const isDead = await dies(life, (files) => kind.work(files, at));
    const kept = await versionAt(at);
    const isDone = JSON.stringify(kept) === JSON.stringify(kind.done);
    expect(kept, `${life}`).toEqual(isDone ? kind.done : kind.former);
    if (isDone) done += 1;
    if (kept) await versions().remove(admin, heir.user(at), "v");
    await expectNothingLeft(at, before);
    if (!isDead) break;
  }
  expect(done).toBeGreaterThan(8 / WRITES_BETWEEN);
});

test("a pull is finished: the tree is the old one, if it was not begun, or the version", async () => {
  let done = 0;
  for (let life = 0; ; life++) {
    const at = `/pull${life}`;
    await put(at, OLD);
    await versions().push(admin, heir.user(at), "v");
    await put(at, NEW);
    const before = await digestsAt(at);
    const isDead = await dies(life, (files) => versions(files).pull(admin, heir.user(at), "v"));
    const tree = await treeAt(at);
    const isDone = JSON.stringify(tree) === JSON.stringify(OLD);
    expect(tree, `${life}`).toEqual(isDone ? OLD : NEW);
    if (isDone) done += 1;
    await versions().remove(admin, heir.user(at), "v");
    await expectNothingLeft(at, before);
    if (!isDead) break;
  }
  expect(done).toBeGreaterThan(8 / WRITES_BETWEEN);
});
