import { afterAll, beforeAll, expect, test } from "vitest";
import { FileArchiveWorld } from "../../../../test/helpers/areas/file-archives.ts";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import { mortalFiles } from "../../../../test/helpers/areas/mortal-files.ts";
import { onCluster } from "../../../../test/helpers/engines/engine.ts";
import { Mortality } from "../../../../test/helpers/engines/mortal.ts";
import { rawZip } from "../../../../test/helpers/runs/raw-zip.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";

const admin = testPrincipal();

let world: FileArchiveWorld;
let one: FileController;
beforeAll(async () => {
  world = await FileArchiveWorld.open();
  ({ one } = world);
});
afterAll(() => world.close());

/** The folder of one life. */
let at: string;

async function unpack(entries: readonly { readonly name: string; readonly content: string }[], files = one.files) {
  return world.import(rawZip(entries.map((entry) => ({ ...entry, name: `${at}/${entry.name}` }))), { files });
}

const text = async (path: string) => (await one.files.read(admin, `/${at}/${path}`)).text;
const write = (path: string, content: string) => one.files.write(admin, one.user(`/${at}/${path}`), { text: content });
const tree = () => one.tree(admin, `/${at}`);

/** See `Mortality`: with 2, every state comes once. On the cluster, each simulated life of a controller takes a second. */
const WRITES_BETWEEN = onCluster ? 5 : 2;

test("whatever write its controller dies at, an import leaves whole files and no content without a file", async () => {
  const { engine } = world;
  const { blobs } = await engine.tenant("matrix");
  await using heir = fileController(engine, { own: "heir", gone: new Set(["dying"]) });
  await using mortal = await mortalFiles(engine, heir);
  let begun = 0;
  for (let life = 0; ; life++) {
    at = `die${life}`;
    await write("old", `old ${life}`);
    const entries = ["d/new", "old"].map((name) => ({ name, content: `new ${name} ${life}` }));
    const mortality = new Mortality(Math.floor(life / 2) * WRITES_BETWEEN, life % 2 === 1);
    if (!(await mortal.dies(mortality, (files) => unpack(entries, files)))) break;
    expect(await world.open(), at).toBe(0);
    await blobs.sweep(0);
    const digests = new Set<string>();
    for (const path of (await tree()).filter((found) => !found.endsWith("/"))) {
      const { text: found, digest } = await one.files.read(admin, path);
      const name = path.slice(at.length + 2);
      expect([`new ${name} ${life}`, `old ${life}`], at).toContain(found);
      if (found === `new old ${life}`) begun += 1;
      digests.add(digest);
    }
    await heir.files.remove(admin, one.user(at));
    await blobs.sweep(0);
    for (const digest of digests) expect(await blobs.stat(digest), at).toBeUndefined();
    for (const content of [`old ${life}`, ...entries.map((entry) => entry.content)])
      expect(await blobs.stat(await digestOf(content)), at).toBeUndefined();
    // A retry finishes.
    if (life % 4 === 0) {
      await unpack(entries);
      expect([await text("old"), await text("d/new")], at).toEqual([`new old ${life}`, `new d/new ${life}`]);
    }
  }
  expect(begun).toBeGreaterThan(0);
});

async function digestOf(content: string): Promise<string> {
  const bytes = await crypto.subtle.digest("SHA-256", Buffer.from(content));
  return Buffer.from(bytes).toString("hex");
}
