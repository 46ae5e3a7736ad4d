import { afterAll, beforeAll, expect, test } from "vitest";
import { onCluster, openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { mortalFiles } from "../../../../test/helpers/areas/mortal-files.ts";
import { Mortality } from "../../../../test/helpers/engines/mortal.ts";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import type { FileService } from "../service.ts";
import type { FileSearchService } from "./service.ts";

/** Indexing that its controller leaves at any of its writes is completed by another one. */

const admin = testPrincipal();
/** See `Mortality`: with 2, every state comes once. On the cluster, each simulated life of a controller takes a second. */
const WRITES_BETWEEN = onCluster ? 3 : 2;

let engine: TestEngine;
let heir: FileController;
beforeAll(async () => {
  engine = await openTestEngine();
  heir = fileController(engine, { own: "heir", gone: new Set(["dying"]) });
});
afterAll(async () => {
  await heir[Symbol.asyncDispose]();
  await engine.close();
});

const user = (path: string) => ({ path, space: "user" as const });

async function found(folder: string, query: string): Promise<readonly string[]> {
  const { rows } = await heir.search.search(admin, user(folder), { query }).catch(() => ({ rows: [] }));
  return rows.map(({ path }) => path.slice(folder.length));
}

async function texts(): Promise<readonly string[]> {
  const all: string[] = [];
  const request = { class: "/matrix/system/filepassage", subtree: false };
  for await (const page of heir.objects.unrestricted.read(admin, request))
    all.push(...page.map(({ values }) => String(values["text"])));
  return all.sort();
}

async function open(): Promise<readonly string[]> {
  const { kv } = await engine.tenant("matrix");
  const keys: string[] = [];
  for (const prefix of ["files/open/", "files/index/"])
    for await (const { key } of entriesUnder(kv, prefix)) keys.push(key);
  return keys;
}

interface Act {
  readonly act: (files: FileService, search: FileSearchService, folder: string) => Promise<unknown>;
  /** The words that are found afterwards if the act happened, and otherwise. */
  readonly after: readonly string[];
  readonly otherwise: readonly string[];
}

const ACTS: Readonly<Record<string, Act>> = {
  "the request for a folder": {
    act: (_, search, folder) => search.index(admin, user(folder)),
    after: ["old", "more"],
    otherwise: [],
  },
  "a write": {
    act: (files, _, folder) => files.write(admin, user(`${folder}/a.txt`), { text: `new ${folder}` }),
    after: ["new", "more"],
    otherwise: ["old", "more"],
  },
  "a removal": {
    act: (files, _, folder) => files.remove(admin, user(`${folder}/a.txt`)),
    after: ["more"],
    otherwise: ["old", "more"],
  },
};

test.each(Object.keys(ACTS))("after %s at each write where its controller may die", async (name) => {
  const { act, after, otherwise } = ACTS[name] as Act;
  await using mortal = await mortalFiles(engine, heir);
  let done = 0;
  for (let life = 0; ; life++) {
    const folder = `/die/${life}`;
    await heir.files.write(admin, user(`${folder}/a.txt`), { text: `old ${folder}` });
    await heir.files.write(admin, user(`${folder}/d/b.txt`), { text: `more ${folder}` });
    if (otherwise.length > 0) await heir.search.index(admin, user(folder));
    const mortality = new Mortality(Math.floor(life / 2) * WRITES_BETWEEN, life % 2 === 1);
    const isDead = await mortal.dies(mortality, (files, search) =>
      act(files, search, folder).then(() => search.settled()),
    );
    if (!isDead) break;
    expect(await open(), `${life}`).toEqual([]);
    const words: string[] = [];
    for (const word of ["old", "new", "more"]) if ((await found(folder, word)).length > 0) words.push(word);
    const isDone = JSON.stringify(words) === JSON.stringify(after);
    expect(words, `${life}`).toEqual(isDone ? after : otherwise);
    expect(await texts(), `${life}`).toEqual(words.map((word) => `${word} ${folder}`).sort());
    if (isDone) done += 1;
    await heir.files.remove(admin, user(folder));
    await heir.search.settled();
  }
  expect(done).toBeGreaterThan(2 / WRITES_BETWEEN);
  await heir.files.remove(admin, user("/die"));
  await heir.search.settled();
});
