import { afterAll, beforeAll, expect, test } from "vitest";
import { keysUnder } from "../../../../test/helpers/engines/keys.ts";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import { mortalFiles, type MortalFiles } from "../../../../test/helpers/areas/mortal-files.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { Mortality } from "../../../../test/helpers/engines/mortal.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { TIMES } from "../../../../test/helpers/time/times.ts";
import type { FileService } from "../service.ts";

/** A controller that dies at any write of a change loses no content, and leaves none that nothing names. */

const admin = testPrincipal();
const history = { ageMs: 3_600_000, maxBytes: 1_000_000 };
/** On the cluster, each simulated life of a controller takes seconds. */
const WRITES_BETWEEN = onCluster ? 15 : TIMES > 1 ? 1 : 5;

let engine: TestEngine;
let heir: FileController;
let mortal: MortalFiles;
beforeAll(async () => {
  engine = await openTestEngine();
  heir = fileController(engine, { own: "heir", gone: new Set(["dying"]), history });
  mortal = await mortalFiles(engine, heir, history);
});
afterAll(async () => {
  await heir[Symbol.asyncDispose]();
  await mortal[Symbol.asyncDispose]();
  await engine.close();
});

const place = (path: string) => heir.user(path);
const removalAt = async (at: string) =>
  (await heir.files.history.trash(admin, place(at), { limit: 1 })).former[0]?.key ?? "";

interface Kind {
  readonly prepare?: (at: string) => Promise<unknown>;
  readonly work: (files: FileService, at: string) => Promise<unknown>;
}

/** Each begins with a tree of the files `/f/1` and `/f/a/2`, and a file `/g/f/1` with another content. */
const KINDS: Readonly<Record<string, Kind>> = {
  write: { work: (files, at) => files.write(admin, place(`${at}/f/1`), { text: `new ${at}` }) },
  removal: { work: (files, at) => files.remove(admin, place(`${at}/f/1`)) },
  "removal of a folder": { work: (files, at) => files.remove(admin, place(`${at}/f`)) },
  copy: { work: (files, at) => files.copy(admin, place(`${at}/f`), `${at}/g`) },
  "restore of a folder": {
    prepare: (at) => heir.files.remove(admin, place(`${at}/f`)),
    work: async (files, at) => files.history.restore(admin, place(`${at}/f`), await removalAt(at)),
  },
};

/** Contents of files and former contents, read after a sweep of unused ones. Throws if one is lost. */
async function contentsAt(at: string, paths: readonly string[]): Promise<readonly string[]> {
  const { blobs } = await engine.tenant("matrix");
  await blobs.sweep(0);
  const digests = new Set<string>();
  for (const path of paths) {
    const found = await heir.files.history.list(admin, place(at + path)).catch(() => []);
    for (const { entry } of found) digests.add(entry.content?.digest ?? "");
    if (await heir.files.exists(admin, place(at + path))) digests.add((await heir.files.read(admin, at + path)).digest);
  }
  for (const digest of digests) expect(await blobs.stat(digest), at).toBeDefined();
  return [...digests];
}

test.each(Object.keys(KINDS))(
  "a %s loses no content, and leaves none behind, at whatever write it ends",
  async (name) => {
    const kind = KINDS[name] as Kind;
    for (let life = 0; ; life++) {
      const at = `/${name.replaceAll(" ", "")}${life}`;
      const paths = ["/f/1", "/f/a/2", "/g/f/1"];
      for (const path of paths) await heir.files.write(admin, place(at + path), { text: at + path });
      const before = await contentsAt(at, paths);
      await kind.prepare?.(at);
      const mortality = new Mortality(Math.floor(life / 2) * WRITES_BETWEEN, life % 2 === 1);
      const isDead = await mortal.dies(mortality, (files) => kind.work(files, at));
      expect(await keysUnder(engine, "files/open/"), at).toEqual([]);
      const after = await contentsAt(at, paths);
      expect(after, at).toEqual(expect.arrayContaining([...before]));
      await heir.files.remove(admin, place(at));
      await using sweeper = fileController(engine, { own: "sweeper" });
      await sweeper.files.history.sweep("matrix", admin.ospace);
      const { blobs } = await engine.tenant("matrix");
      await blobs.sweep(0);
      for (const digest of after) expect(await blobs.stat(digest), at).toBeUndefined();
      if (!isDead) break;
    }
  },
);
