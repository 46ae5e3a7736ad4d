import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { uploadFolder } from "../../../../test/helpers/runs/archives.ts";
import { rawZip } from "../../../../test/helpers/runs/raw-zip.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { TIMES } from "../../../../test/helpers/time/times.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { FILE_EXCERPT_MAX_CHARACTERS } from "../../../../common/limits.ts";
import { tagRuntime } from "../../../../test/helpers/objects/tags.ts";
import { QueryService } from "../../query/index.ts";
import type { DataRule, Principal } from "../../permissions/index.ts";
import { CONTENT_CLASS, PASSAGE_CLASS } from "./classes.ts";
import { ContentStore } from "./store.ts";

const admin = testPrincipal();
const neighbour = testPrincipal("administrator", "second");
const FILES = "/matrix/filesystem";

let engine: TestEngine;
let one: FileController;
let uploads: Awaited<ReturnType<typeof uploadFolder>>;
beforeAll(async () => {
  uploads = await uploadFolder();
  engine = await openTestEngine();
  one = fileController(engine);
});
afterAll(async () => {
  await one[Symbol.asyncDispose]();
  await engine.close();
  await uploads.remove();
});

/** Each test has its own folder. */
let folders = 0;
let at: string;
beforeEach(() => {
  at = `/s${folders++}`;
});

const fileOf = async (bytes: Buffer): Promise<string> => (await uploads.upload("", bytes)).path;
const place = (name = "") => one.user(at + name);
const write = (name: string, text: string, as = admin) => one.files.write(as, place(name), { text });
const index = (name = "", as = admin) => one.search.index(as, place(name));
const search = (query: string, as: Principal = admin, name = "") => one.search.search(as, place(name), { query });

/** Paths below the folder of the test and positions, in the order of the answer. */
async function found(query: string, as: Principal = admin, name = ""): Promise<readonly string[]> {
  await one.search.settled();
  const { rows } = await search(query, as, name);
  return rows.map(({ path, position }) => `${path.slice(at.length)}:${position}`);
}

async function statuses(name = ""): Promise<Readonly<Record<string, string>>> {
  const all: Record<string, string> = {};
  for await (const page of one.files.list(admin, place(name))) {
    const told = await one.search.statuses(admin, page);
    for (const [i, { fullname }] of page.entries()) all[fullname.slice(at.length)] = told[i] ?? "";
  }
  return all;
}

async function stored(digest: string): Promise<{ readonly passages: number; readonly contents: number }> {
  const count = async (path: string): Promise<number> => {
    let rows = 0;
    for await (const page of one.objects.unrestricted.read(admin, { class: `/matrix${path}`, subtree: false }))
      rows += page.filter(({ values }) => values["digest"] === digest).length;
    return rows;
  };
  return { passages: await count(PASSAGE_CLASS.path), contents: await count(CONTENT_CLASS.path) };
}

const digestOf = async (name: string) => (await one.files.open(admin, at + name, "user")).digest;

async function open(): Promise<number> {
  const { kv } = await engine.tenant("matrix");
  const keys: string[] = [];
  for await (const { key } of entriesUnder(kv, "files/index/")) keys.push(key);
  return keys.length;
}

describe("an indexed folder", () => {
  test("is searched by words, phrases and beginnings, with line, excerpt and score", async () => {
    await write("/notes.txt", "first line\nthe Disk is full on web-1\nlast disk line");
    await write("/deep/er/other.md", "nothing of the kind");
    expect(await found("disk")).toEqual([]);
    expect(await index()).toMatchObject({ indexed: 2, unindexed: 0 });
    const { rows, warnings } = await search("DISK full");
    expect(warnings).toEqual([]);
    expect(rows).toEqual([
      { path: `${at}/notes.txt`, name: "notes.txt", position: 2, excerpt: "the Disk is full on web-1", score: 0.583 },
    ]);
    expect(await found("web-1")).toEqual(["/notes.txt:2"]);
    expect(await found('"is full"')).toEqual(["/notes.txt:2"]);
    expect(await found('"full is"')).toEqual([]);
    expect(await found("nothi*")).toEqual(["/deep/er/other.md:1"]);
    expect(await found("disk kind")).toEqual([]);
    expect(await statuses()).toEqual({ "/notes.txt": "indexed", "/deep": "" });
    await expect(search("…")).rejects.toMatchObject({ code: "invalid" });
    await expect(search("")).rejects.toMatchObject({ code: "invalid" });
  });

  test("finds what a pull or an import has written, and nothing that it replaced or removed", async () => {
    await write("/a.txt", "formerword");
    await index();
    await one.files.versions.push(admin, place(), "v1");
    await write("/a.txt", "laterword");
    await write("/b.txt", "laterword");
    await index("/b.txt");
    expect(await found("laterword")).toEqual(["/a.txt:1", "/b.txt:1"]);
    await one.files.versions.pull(admin, place(), "v1");
    expect(await found("formerword")).toEqual(["/a.txt:1"]);
    expect(await found("laterword")).toEqual([]);
    const path = await fileOf(rawZip([{ name: `${at.slice(1)}/a.txt`, content: "zippedword" }]));
    await one.files.archives.import(admin, { path }, { space: "user" });
    expect(await found("zippedword")).toEqual(["/a.txt:1"]);
    expect(await found("formerword")).toEqual([]);
  });

  test("is searched only below the path that is named, and only in its space", async () => {
    await write("/a/x.txt", "needleword");
    await write("/ab/x.txt", "needleword");
    await one.files.write(admin, { path: `${at}/a/sys.txt`, space: "system" }, { text: "needleword" });
    await index();
    await one.search.index(admin, { path: at, space: "system" });
    expect(await found("needleword", admin, "/a")).toEqual(["/a/x.txt:1"]);
    expect(await found("needleword", admin, "/ab/x.txt")).toEqual(["/ab/x.txt:1"]);
    const system = await one.search.search(admin, { path: "/", space: "system" }, { query: "needleword" });
    expect(system.rows.map(({ path }) => path)).toEqual([`${at}/a/sys.txt`]);
    await expect(search("needleword", admin, "/none")).rejects.toMatchObject({ code: "not_found" });
  });

  test("is searched for Chinese words, in UTF-8 and in GB18030", async () => {
    await write("/utf8.txt", "第一行\n磁盘空间不足，请清理日志");
    const bytes = Buffer.from([0xb4, 0xc5, 0xc5, 0xcc, 0xbf, 0xd5, 0xbc, 0xe4, 0x0a]);
    await one.files.write(admin, place("/gbk.txt"), { file: await fileOf(bytes) });
    await index();
    expect(await found("磁盘空间")).toEqual(["/gbk.txt:1", "/utf8.txt:2"]);
    expect(await found("空间不足")).toEqual(["/utf8.txt:2"]);
    expect(await found("盘间")).toEqual([]);
    expect(await found("足")).toEqual(["/utf8.txt:2"]);
  });

  test("finds words around the cuts of a long line, and its excerpt is short and without marks", async () => {
    const words = Array.from({ length: 2_000 }, (_, number) => `word${number}`);
    await write("/long.txt", `${words.join(" ")}\n${"字".repeat(3_000)}末尾\n<b>afterwards</b>`);
    await index();
    for (const number of [0, 199, 200, 777, 1_500, 1_999])
      expect(await found(`word${number}`), `${number}`).toEqual(["/long.txt:1"]);
    expect(await found("字末尾")).toEqual(["/long.txt:2"]);
    const [row] = (await search("word777")).rows;
    expect(row?.excerpt).toContain("word777");
    expect(row?.excerpt.length).toBeLessThanOrEqual(FILE_EXCERPT_MAX_CHARACTERS);
    expect((await search("afterwards")).rows[0]?.excerpt).toBe("<b>afterwards</b>");
  });

  test("is kept as objects that only administrators without rules on files see by MQL and search", async () => {
    await write("/a.txt", "line one\nmqlword");
    await index();
    const digest = await digestOf("/a.txt");
    const query = new QueryService({ objects: one.objects, runtime: tagRuntime() });
    const rowsOf = (path: string, as: Principal) =>
      query.rows(as, `select * from /matrix/system/${path} where digest = '${digest}'`);
    const passage = { number: 0, position: 1, unit: "line", text: "line one\nmqlword" };
    expect(await rowsOf("filepassage", admin)).toMatchObject([passage]);
    expect(await rowsOf("filecontent", admin)).toMatchObject([{ state: "indexed", passages: 1, extractor: 1 }]);
    const others = [
      { ...admin, paths: [at] },
      {
        ...admin,
        data: [
          { class: "/", access: "write" as const },
          { class: FILES, access: "read" as const, hidden: ["digest"] },
        ],
      },
    ];
    for (const other of others)
      for (const path of ["filepassage", "filecontent"]) expect(await rowsOf(path, other)).toEqual([]);
  });

  test("orders by occurrences", async () => {
    await write("/few.txt", "apple");
    await write("/many.txt", "apple apple apple");
    await index();
    expect(await found("apple")).toEqual(["/many.txt:1", "/few.txt:1"]);
  });
});

describe("an indexed file", () => {
  test("is found by its present content only, after every write", async () => {
    await write("/a.txt", "formerword");
    await index("/a.txt");
    const former = await digestOf("/a.txt");
    await write("/a.txt", "presentword");
    // Before the new content is indexed, the old one is not found any more.
    expect((await search("formerword")).rows).toEqual([]);
    expect(await found("presentword")).toEqual(["/a.txt:1"]);
    expect(await found("formerword")).toEqual([]);
    expect(await stored(former)).toEqual({ passages: 0, contents: 0 });
    expect(await open()).toBe(0);
  });

  test("is not found after its removal, and is found at its new path after a move", async () => {
    await write("/d/a.txt", "wandering");
    await write("/d/b.txt", "staying");
    await index("/d");
    const [moved, removed] = [await digestOf("/d/a.txt"), await digestOf("/d/b.txt")];
    await one.files.rename(admin, place("/d/a.txt"), `${at}/e/c.txt`);
    expect(await found("wandering")).toEqual(["/e/c.txt:1"]);
    await one.files.rename(admin, place("/e"), `${at}/f`);
    expect(await found("wandering")).toEqual(["/f/c.txt:1"]);
    await one.files.remove(admin, place("/d"));
    expect(await found("staying")).toEqual([]);
    expect(await stored(removed)).toEqual({ passages: 0, contents: 0 });
    expect(await stored(moved)).toEqual({ passages: 1, contents: 1 });
    await one.files.remove(admin, place("/f"));
    await one.search.settled();
    expect(await stored(moved)).toEqual({ passages: 0, contents: 0 });
  });

  test("is found in its copy, which keeps the passages when the first file goes", async () => {
    await write("/a.txt", "copiedword");
    await index("/a.txt");
    await one.files.copy(admin, place("/a.txt"), `${at}/copies`);
    expect(await found("copiedword")).toEqual(["/a.txt:1", "/copies/a.txt:1"]);
    await one.files.remove(admin, place("/a.txt"));
    expect(await found("copiedword")).toEqual(["/copies/a.txt:1"]);
    await write("/copies/a.txt", "rewritten");
    expect(await found("rewritten")).toEqual(["/copies/a.txt:1"]);
  });

  test("that is replaced by a copy of a file that is not searched is found by its new content", async () => {
    await write("/in/a.txt", "oldword");
    await index("/in");
    await write("/a.txt", "newword");
    await one.files.copy(admin, place("/a.txt"), `${at}/in`);
    expect(await found("newword")).toEqual(["/in/a.txt:1"]);
    expect(await found("oldword")).toEqual([]);
  });

  test("leaves one set of passages however often it is indexed", async () => {
    const times = TIMES > 1 ? 1_000 : 10;
    await write("/a.txt", `again ${"x ".repeat(3_000)}`);
    for (let time = 0; time < times; time++) await index("/a.txt");
    expect(await stored(await digestOf("/a.txt"))).toEqual({ passages: 4, contents: 1 });
    for (let time = 0; time < times / 10; time++) await write("/a.txt", `again ${time}`);
    expect(await found("again")).toEqual(["/a.txt:1"]);
    expect(await stored(await digestOf("/a.txt"))).toEqual({ passages: 1, contents: 1 });
    let passages = 0;
    for await (const page of one.objects.unrestricted.read(admin, {
      class: "/matrix/system/filepassage",
      subtree: false,
    }))
      passages += page.filter(({ values }) => String(values["text"]).startsWith("again")).length;
    expect(passages).toBe(1);
  });

  test("whose later extraction has fewer passages keeps none of the others", async () => {
    const contents = new ContentStore(one.objects);
    const text = { digest: "0".repeat(64), state: "indexed", reason: "", unit: "line" } as const;
    const passages = [1, 2, 3].map((position) => ({ position, text: "fewer" }));
    for (const count of [3, 1]) {
      await contents.keep(admin, [{ ...text, passages: passages.slice(0, count) }]);
      expect(await stored(text.digest)).toEqual({ passages: count, contents: 1 });
    }
  });

  test("goes out of the search by index=false, and is not indexed again", async () => {
    await write("/a.txt", "excluded");
    await index("/a.txt");
    expect(await one.search.written(admin, place("/a.txt"), false)).toEqual([]);
    expect(await found("excluded")).toEqual([]);
    expect(await stored(await digestOf("/a.txt"))).toEqual({ passages: 0, contents: 0 });
    await write("/a.txt", "excluded again");
    expect(await found("excluded")).toEqual([]);
    expect(await one.search.written(admin, place(), false)).toEqual([expect.stringContaining("index=false")]);
  });

  test("whose text cannot be read is named with its reason, and holds up no other", async () => {
    await one.files.write(admin, place("/bad.bin"), { file: await fileOf(Buffer.from([1, 2, 0, 3])) });
    await write("/good.txt", "goodword");
    const { indexed, unindexed, named } = await index();
    expect([indexed, unindexed, named.length]).toEqual([1, 1, 1]);
    expect(named[0]).toBe(`${at}/bad.bin: The content is neither a text nor docx, xlsx or pdf.`);
    expect(await statuses()).toEqual({
      "/bad.bin": "unindexed: The content is neither a text nor docx, xlsx or pdf.",
      "/good.txt": "indexed",
    });
    expect(await found("goodword")).toEqual(["/good.txt:1"]);
    await write("/bad.bin", "now a goodword");
    expect(await found("goodword")).toEqual(["/bad.bin:1", "/good.txt:1"]);
  });

  test("whose content is missing in the store is named, and holds up no other", async () => {
    await write("/lost.txt", "lostword");
    await write("/good.txt", "keptword");
    const [row] = await one.objects.unrestricted.get(admin, [{ id: `filesystem:user:${at}/lost.txt`, class: FILES }]);
    const { digest, mark } = row?.values ?? {};
    const { blobs } = await engine.tenant("matrix");
    await blobs.unmark(String(digest), String(mark));
    await blobs.sweep(0);
    expect(await index()).toEqual({
      indexed: 1,
      unindexed: 1,
      named: [`${at}/lost.txt: There is no content ${String(digest)}.`],
    });
    expect(await found("keptword")).toEqual(["/good.txt:1"]);
  });

  test("that is removed while it is indexed leaves nothing", async () => {
    for (let round = 0; round < 5; round++) {
      await write("/gone.txt", `gone ${round}`);
      const digest = await digestOf("/gone.txt");
      await Promise.all([index().catch(() => undefined), one.files.remove(admin, place("/gone.txt"))]);
      expect(await one.files.exists(admin, place("/gone.txt"))).toBe(false);
      await one.search.settled();
      expect(await stored(digest)).toEqual({ passages: 0, contents: 0 });
    }
  });
});

describe("a user of few rights", () => {
  const few = (...paths: readonly string[]): Principal => ({
    ...admin,
    user: "few",
    paths: paths.map((path) => at + path),
  });
  const ruled = (...data: readonly DataRule[]): Principal => ({
    ...few(""),
    data: [{ class: "/", access: "write" }, ...data],
  });

  beforeEach(async () => {
    await write("/open/a.txt", "rightsword");
    await write("/closed/b.txt", "rightsword");
    await index();
  });

  test("finds only files on open paths", async () => {
    expect(await found("rightsword", few("/open"))).toEqual(["/open/a.txt:1"]);
    await expect(search("rightsword", few("/open"), "/closed")).rejects.toMatchObject({ code: "denied" });
    await expect(one.search.search(few("/open"), { path: "/", space: "system" }, { query: "x" })).rejects.toMatchObject(
      { code: "denied" },
    );
  });

  test("finds nothing that rules on files hide, by rows or by digest", async () => {
    const rows = ruled({ class: FILES, access: "write", where: `fullname = '${at}/open/a.txt' or ftype = 'dir'` });
    expect(await found("rightsword", rows)).toEqual(["/open/a.txt:1"]);
    expect(await found("rightsword", ruled({ class: FILES, access: "write", hidden: ["digest"] }))).toEqual([]);
    const nameless = ruled({ class: FILES, access: "write", hidden: ["fullname"] });
    await expect(found("rightsword", nameless)).rejects.toMatchObject({ code: "not_found" });
  });

  test("indexes only what it may read and write", async () => {
    await write("/new/mine.txt", "mineword");
    await write("/new/theirs.txt", "mineword");
    const rows = ruled({ class: FILES, access: "write", where: `fullname != '${at}/new/theirs.txt'` });
    expect(await index("/new", rows)).toMatchObject({ indexed: 1 });
    expect(await found("mineword")).toEqual(["/new/mine.txt:1"]);
    const reader = ruled({ class: FILES, access: "read" });
    await expect(index("/new/theirs.txt", reader)).rejects.toMatchObject({ code: "denied" });
    await expect(index("/closed", few("/open"))).rejects.toMatchObject({ code: "denied" });
    await expect(index("", { ...admin, grants: ["files:read"] })).rejects.toMatchObject({ code: "denied" });
    await expect(search("x", { ...admin, grants: [] })).rejects.toMatchObject({ code: "denied" });
  });

  test("of the neighbour tenant finds nothing", async () => {
    const { rows } = await one.search.search(neighbour, { path: "/", space: "user" }, { query: "rightsword" });
    expect(rows).toEqual([]);
  });
});
