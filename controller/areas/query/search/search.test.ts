import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Row } from "../../../../common/value.ts";
import { bundle } from "../../../../test/helpers/programs/bundle.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { ThreadScripts } from "../../../scripting/index.ts";
import type { AuditEntry } from "../../audit/index.ts";
import { ObjectService } from "../../objects/index.ts";
import type { DataRule, Principal } from "../../permissions/index.ts";
import { QueryService } from "../index.ts";
import { SearchService } from "./index.ts";

const admin = testPrincipal();
const HOUR_MS = 3_600_000;
const NOON_MS = Date.UTC(2024, 1, 28, 12);
const runtime = testRuntime(realClock);
const audited: AuditEntry[] = [];

let engine: TestEngine;
let objects: ObjectService;
let search: SearchService;
let scripts: ThreadScripts;

/** Classes that are searched by themselves: box, rack, log, doc; not: vault. */
const CLASSES = `create class /matrix/ent/box (host varchar "Host", note text, size int, seen timestamp, config map<varchar,varchar>, free map, keys(host), index(host, size, seen, tags)) with autosearch=true;
  create class /matrix/ent/box/rack (slots int) with autosearch=true;
  create class /matrix/vault (host varchar, note text, keys(host));
  create class /matrix/log (line varchar, level varchar, index(level)) with kind='record', autosearch=true;
  create class /matrix/file (name varchar, fullname varchar, parent varchar, ftype varchar, keys(fullname), index(parent));
  create edge type contain;
  create class /matrix/doc (name varchar, state varchar, keys(name), index(state)) with version=true, autosearch=true`;

const BOXES: readonly Row[] = [
  {
    host: "web-1",
    note: "Disk full: ERROR on /dev/sda1",
    size: 10,
    seen: NOON_MS,
    tags: ["red", "blue"],
    config: { os: "linux" },
    free: { n: 5 },
  },
  { host: "web-2", note: "all quiet", size: 20, seen: NOON_MS - HOUR_MS, tags: ["red"], free: { n: "5" } },
  { host: "db-1", note: "磁盘空间不足 on disk two", size: 30, seen: NOON_MS - 48 * HOUR_MS },
];

beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ stores: engine, runtime });
  const audit = {
    ready: () => Promise.resolve(),
    record(entry: AuditEntry) {
      audited.push(entry);
      return Promise.resolve();
    },
  };
  const file = await bundle("controller/script-worker.ts", `search-${process.pid}.mjs`);
  scripts = new ThreadScripts({ ...testRuntime(realClock), file, languages: ["lua"], functions: () => [] });
  search = new SearchService({ objects, runtime, audit, engine: () => scripts });
  await new QueryService({ objects, runtime }).rows(admin, CLASSES);
  await objects.insert(admin, "/matrix/ent/box", BOXES);
  await objects.insert(admin, "/matrix/ent/box/rack", [{ host: "rack-1", note: "ERROR in slot", size: 5, slots: 4 }]);
  await objects.insert(admin, "/matrix/vault", [{ host: "hidden", note: "ERROR nobody searches" }]);
  const lines = ["ERROR disk one", "fine", "ERROR kernel"].map((line, at) => ({
    values: { line, level: at === 1 ? "info" : "error" },
    timeMs: NOON_MS + at * HOUR_MS,
    identity: `s/${at}`,
  }));
  await objects.ingest(admin, "/matrix/log", lines);
  for (const [at, state] of ["draft", "ERROR", "done"].entries())
    await objects.insert(admin, "/matrix/doc", [{ name: "plan", state }], { atMs: NOON_MS + at * HOUR_MS });
});

afterAll(async () => {
  await scripts.close();
  await objects.close();
  await engine.close();
});

async function rows(text: string, principal: Principal = admin): Promise<readonly Row[]> {
  const found: Row[] = [];
  const result = await search.search(principal, text);
  for await (const page of result.rows) found.push(...page);
  return found;
}

/** One field of every row, sorted. */
async function values(text: string, field = "host", principal = admin): Promise<readonly unknown[]> {
  return (await rows(text, principal)).map((row) => row[field]).sort();
}

function ruled(...data: DataRule[]): Principal {
  return { ...admin, user: "ruled", grants: ["*:read"], data };
}

describe("what is found", () => {
  test("words in any case, phrases, beginnings, middles, and scripts without spaces", async () => {
    expect(await values("#/matrix/ent/box/: | error")).toEqual(["rack-1", "web-1"]);
    expect(await values("#/matrix/ent/box/: | error disk")).toEqual(["web-1"]);
    expect(await values("#/matrix/ent/box: | disk")).toEqual(["db-1", "web-1"]);
    expect(await values("#/matrix/ent/box: | 'disk full'")).toEqual(["web-1"]);
    expect(await values("#/matrix/ent/box: | 'full disk'")).toEqual([]);
    expect(await values("#/matrix/ent/box: | web-2")).toEqual(["web-2"]);
    expect(await values("#/matrix/ent/box: | qui*")).toEqual(["web-2"]);
    expect(await values("#/matrix/ent/box: | *uie*")).toEqual(["web-2"]);
    expect(await values("#/matrix/ent/box: | 空间")).toEqual(["db-1"]);
    expect(await values("#/matrix/ent/box: | 足")).toEqual(["db-1"]);
    expect(await values("#/matrix/ent/box: | *盘空* two")).toEqual(["db-1"]);
    expect(await values("#/matrix/ent/box: | 间空")).toEqual([]);
  });

  test("alternatives, of words, of conditions and mixed, each object once", async () => {
    expect(await values("#/matrix/ent/box/: | error;disk;quiet")).toEqual(["db-1", "rack-1", "web-1", "web-2"]);
    expect(await values("#/matrix/ent/box/: | host=web-1;host=db-1")).toEqual(["db-1", "web-1"]);
    expect(await values("#/matrix/ent/box/: | error;host=web-1;size>=20 | size<30")).toEqual([
      "rack-1",
      "web-1",
      "web-2",
    ]);
    expect(await values("#/matrix/ent/box/: | disk size>10;quiet")).toEqual(["db-1", "web-2"]);
  });

  test("conditions on fields, elements, members and wildcards", async () => {
    expect(await values("#/matrix/ent/box: | tags=blue")).toEqual(["web-1"]);
    expect(await values("#/matrix/ent/box: | tags!=blue")).toEqual(["web-2"]);
    expect(await values("#/matrix/ent/box: | host=web* | size>10")).toEqual(["web-2"]);
    expect(await values("#/matrix/ent/box: | host='web*'")).toEqual([]);
    expect(await values("#/matrix/ent/box: | host!=web*")).toEqual(["db-1"]);
    expect(await values("#/matrix/ent/box: | config.os=linux")).toEqual(["web-1"]);
    expect(await values("#/matrix/ent/box: | free.n=5")).toEqual(["web-1", "web-2"]);
    expect(await values("#/matrix/ent/box: | seen>=2024-02-28 11:30 | seen <= 2024-02-28 12:00:00")).toEqual(["web-1"]);
    expect(await values("#/matrix/ent/box/: | id=box:web-1; id=rack:rack-1")).toEqual(["rack-1", "web-1"]);
    expect(await values("#/matrix/ent/box/: | class=/matrix/ent/box/rack")).toEqual(["rack-1"]);
  });

  test("fields are found in any case and answered as they are defined, but for those that are hidden", async () => {
    expect(await values("#/matrix/ent/box: | SIZE>10 | Tags=red")).toEqual(["web-2"]);
    expect(await rows("#/matrix/ent/box: | ID=box:web-1 | sort SIZE | uniq Host | print HOST, Size as s")).toEqual([
      { host: "web-1", s: 10 },
    ]);
    expect(await rows("#/matrix/ent/box: | web-1 | group HOST")).toEqual([{ host: "web-1", count: 1 }]);
    const veiled = ruled({ class: "/", access: "read", hidden: ["size"] });
    for (const part of ["SIZE>10", "sort SIZE", "print SIZE", "uniq SIZE", "group SIZE"]) {
      await expect(rows(`#/matrix/ent/box: | ${part}`, veiled), part).rejects.toMatchObject({ code: "not_found" });
    }
  });

  test("a class alone, with its subclasses, or all that are searched by themselves", async () => {
    expect(await values("#/matrix/ent/box")).toEqual(["db-1", "web-1", "web-2"]);
    expect(await values("#/matrix/ent/box/")).toHaveLength(4);
    expect(await values("# error", "class")).toEqual([
      "/matrix/ent/box",
      "/matrix/ent/box/rack",
      "/matrix/log",
      "/matrix/log",
    ]);
    expect(await values("error | top 2", "id")).toHaveLength(2);
    expect(await values("#/matrix/vault: | error")).toEqual(["hidden"]);
  });

  test("a row of a class that lacks a field does not match; a field that no class has is an error, and so is a value that fits none", async () => {
    expect(await values("#/matrix/ent/box/: | slots=4")).toEqual(["rack-1"]);
    expect(await values("#/matrix/ent/box/: | slots!=5")).toEqual(["rack-1"]);
    await expect(rows("#/matrix/ent/box: | slots=4")).rejects.toMatchObject({
      code: "not_found",
      details: { line: 1, column: 21 },
    });
    await expect(rows("#/matrix/ent/box/: | x\n| print host, nothing")).rejects.toMatchObject({
      code: "not_found",
      details: { line: 2, column: 15 },
    });
    await expect(rows("#/matrix/ent/box: | size=many")).rejects.toMatchObject({
      code: "invalid",
      details: { line: 1, column: 21 },
    });
    await expect(rows("#/matrix/ent/box: | x | size=1 ; --")).rejects.toMatchObject({
      code: "invalid",
      details: { line: 1, column: 34 },
    });
    await expect(rows("#/matrix/nowhere: | x")).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("what is made of it", () => {
  test("sort, top, print with other names", async () => {
    expect(await rows("#/matrix/ent/box/: | sort by size desc | top 2 | print host, size as s")).toEqual([
      { host: "db-1", s: 30 },
      { host: "web-2", s: 20 },
    ]);
    expect(await rows("#/matrix/ent/box/: | print host as h | sort h | top 1")).toEqual([{ h: "db-1" }]);
    const [row] = await rows("#/matrix/ent/box: | host=web-1");
    expect(row).toMatchObject({
      id: "box:web-1",
      class: "/matrix/ent/box",
      host: "web-1",
      tags: ["blue", "red"],
      seen: NOON_MS,
    });
  });

  test("uniq keeps the first of each combination, by the order asked for; group counts", async () => {
    expect(await rows("#/matrix/log: | uniq level | sort vtime desc | print level, line")).toEqual([
      { level: "error", line: "ERROR kernel" },
      { level: "info", line: "fine" },
    ]);
    expect(await values("#/matrix/log: | uniq level", "level")).toEqual(["error", "info"]);
    expect(await rows("#/matrix/log: | group level | sort count desc")).toEqual([
      { level: "error", count: 2 },
      { level: "info", count: 1 },
    ]);
    expect(await rows("#/matrix/log: | group level | sort level | top 1 | print count as n")).toEqual([{ n: 2 }]);
    expect(await rows("#/matrix/log: | group level | sort count | print level")).toEqual([
      { level: "info" },
      { level: "error" },
    ]);
    await expect(rows("#/matrix/log: | group level | print line")).rejects.toMatchObject({ code: "invalid" });
  });

  test("meta describes the rows; with debug> it tells how they were found, and not the row condition", async () => {
    const meta = async (text: string, principal = admin) =>
      JSON.parse(JSON.stringify((await search.search(principal, text)).meta)) as Row;
    expect(await meta("#/matrix/ent/box: | print host")).toEqual({
      type: "select",
      rootclass: "/matrix/ent/box",
      columns: { "/matrix/ent/box": [{ name: "host", title: "Host", type: "varchar" }] },
      classes: { "/matrix/ent/box": { name: "/matrix/ent/box", alias: "", remedy: "" } },
    });
    expect(await meta("# error")).toMatchObject({
      rootclass: "/matrix",
      columns: { "/matrix/log": expect.anything() as unknown },
    });
    const { plan } = await meta(
      "debug>#/matrix/ent/box/: | disk | host=web-1 | sort size | top 3",
      ruled({ class: "/", access: "read", where: "size = 10" }),
    );
    expect(plan).toEqual([
      "index host = web-1 and words disk in 2 classes of /matrix/ent/box",
      "filter host = 'web-1'",
      "filter by the row condition of the principal",
      "filter by words: disk",
      "keep the first 3 by size",
      "limit 3",
    ]);
  });
});

describe("times", () => {
  test("a span is of the latest write, or of the field that is named", async () => {
    expect(await values("#/matrix/ent/box: | nearest 1 hour")).toHaveLength(3);
    expect(await values("#/matrix/ent/box: | window 2024-02-28 11:30 to 2024-02-28 12:30 for seen")).toEqual(["web-1"]);
    expect(await values("#/matrix/ent/box: | window 2024-02-28 11:30 to 2024-02-28 12:30")).toEqual([]);
    expect(await values("#/matrix/ent/box: | at 2024-02-28 11:30 | within 30minutes for seen")).toEqual([
      "web-1",
      "web-2",
    ]);
    expect(await values("#/matrix/log: | at 2024-02-28 13:00 within 30 min", "line")).toEqual(["fine"]);
    expect(await values("#/matrix/log: | window 2024-02-28 to 2024-02-28 | level=error", "line")).toEqual([
      "ERROR disk one",
      "ERROR kernel",
    ]);
  });

  test("without # earlier versions are found, too, each by what it was", async () => {
    expect(await values("#/matrix/doc: | state=ERROR", "state")).toEqual([]);
    expect(await rows("/matrix/doc: | state=ERROR | print id, state, vtime")).toEqual([
      { id: "doc:plan", state: "ERROR", vtime: NOON_MS + HOUR_MS },
    ]);
    expect(await rows("/matrix/doc: | sort vtime | print state")).toEqual([
      { state: "draft" },
      { state: "ERROR" },
      { state: "done" },
    ]);
    expect(await rows("/matrix/doc: | window 2024-02-28 12:30 to 2024-02-28 13:30 | print state")).toEqual([
      { state: "ERROR" },
    ]);
    expect(await values("error | class=/matrix/doc", "state")).toEqual(["ERROR"]);
  });

  test("what was removed is there as it was, and with at", async () => {
    await objects.insert(admin, "/matrix/doc", [{ name: "old", state: "stale" }], { atMs: NOON_MS });
    await objects.remove(admin, [{ id: "doc:old" }]);
    expect(await values("#/matrix/doc: | stale", "id")).toEqual([]);
    expect(await rows("/matrix/doc: | stale | print id, state, ctime")).toEqual([
      { id: "doc:old", state: "stale", ctime: NOON_MS },
    ]);
    expect(await values("/matrix/doc: | id=doc:old", "state")).toEqual(["stale"]);
    expect(await values("/matrix/doc: | id=doc:plan | state=stale", "state")).toEqual([]);
    expect(await values("/matrix/doc: | window 2024-02-28 12:30 to 2024-02-28 13:30", "state")).toEqual(["ERROR"]);
    expect(await values("/matrix/doc: | at 2024-02-28 12:30", "state")).toEqual(["draft", "stale"]);
    await objects.remove(admin, [{ id: "doc:old" }], { withVersions: true });
  });

  test("at alone shows the state of that time, for classes that keep versions", async () => {
    expect(await rows("/matrix/doc: | at 2024-02-28 13:30 | print state")).toEqual([{ state: "ERROR" }]);
    expect(await rows("at 2024-02-28 12:30 | print state")).toEqual([{ state: "draft" }]);
    await expect(rows("/matrix/ent/box: | at 2024-02-28 13:30")).rejects.toMatchObject({ code: "invalid" });
    await expect(rows("/matrix/doc: | at 2024-02-28 13:30 for ctime")).rejects.toMatchObject({ code: "invalid" });
  });
});

describe("rights", () => {
  test("classes, rows and columns that its principal may not see do not exist for a search", async () => {
    const bob = ruled(
      { class: "/", access: "none" },
      { class: "/matrix/ent", access: "read", where: "size < 20", hidden: ["note"] },
    );
    expect(await values("# web", "host", bob)).toEqual(["web-1"]);
    expect(await values("# error", "host", bob)).toEqual([]);
    expect(await values("#/matrix/ent/box/", "host", bob)).toEqual(["rack-1", "web-1"]);
    await expect(rows("#/matrix/ent/box: | note=x", bob)).rejects.toMatchObject({ code: "not_found" });
    await expect(rows("#/matrix/log: | error", bob)).rejects.toMatchObject({ code: "not_found" });
    await expect(rows("# error", ruled())).rejects.toMatchObject({ code: "not_found" });
  });

  test("delete needs the right to write, takes what is found, and leaves an entry of it", async () => {
    await objects.insert(
      admin,
      "/matrix/ent/box/rack",
      ["old-1", "old-2", "old-3"].map((host) => ({ host, note: "obsolete" })),
    );
    await expect(
      rows("#/matrix/ent/box/: | obsolete | delete", ruled({ class: "/", access: "read" })),
    ).rejects.toMatchObject({ code: "denied" });
    expect(audited.at(-1)).toMatchObject({ action: "search delete /matrix/ent/box", outcome: "denied", user: "ruled" });
    expect(await rows("#/matrix/ent/box/: | obsolete | top 1 | delete")).toEqual([{ count: 1 }]);
    expect((await search.search(admin, "/matrix/ent/box/: | obsolete | delete")).meta).toMatchObject({
      type: "delete",
      rootclass: "/matrix/ent/box",
    });
    expect(audited.at(-1)).toMatchObject({
      action: "search delete /matrix/ent/box",
      outcome: "ok",
      permission: "objects:write",
    });
    expect(await values("#/matrix/ent/box/")).toEqual(["db-1", "rack-1", "web-1", "web-2"]);
  });

  test("delete goes with nothing that changes only how hits look, nor with another time", async () => {
    for (const text of ["sort host", "print host", "uniq host", "group host", "at 2024-02-28 13:30"]) {
      await expect(rows(`/matrix/doc: | ${text.replace("host", "name")} | delete`), text).rejects.toMatchObject({
        code: "invalid",
      });
    }
    expect(await values("#/matrix/doc", "state")).toEqual(["done"]);
  });
});

describe("calls", () => {
  const files: readonly (readonly [string, string])[] = [
    ["/a", "dir"],
    ["/a/b", "dir"],
    ["/a/b/c", "file"],
    ["/a/d", "file"],
    ["/e", "file"],
  ];

  beforeAll(async () => {
    const rowOf = ([fullname, ftype]: readonly [string, string]): Row => {
      const at = fullname.lastIndexOf("/");
      return { fullname, ftype, name: fullname.slice(at + 1), parent: at === 0 ? "/" : fullname.slice(0, at) };
    };
    await objects.insert(admin, "/matrix/file", files.map(rowOf));
    const [first] = await objects.insert(admin, "/matrix/ent/box", [{ host: "inner" }]);
    await objects.insert(admin, "/matrix/ent/box", [{ host: "outer", contain: [first ?? "", "box:web-1"] }]);
  });

  afterAll(async () => {
    await objects.remove(admin, [{ id: "box:inner" }, { id: "box:outer" }]);
  });

  test("tree puts hits under each other by parent and fullname", async () => {
    const leaf = (name: string, fullname: string) =>
      expect.objectContaining({ name, fullname, children: [] }) as unknown;
    const [row] = await rows('#/matrix/file: | sort fullname | call tree {"fields":["name"]}');
    const b = expect.objectContaining({
      id: "file:/a/b",
      class: "/matrix/file",
      children: [leaf("c", "/a/b/c")],
    }) as unknown;
    expect(row?.tree).toEqual([
      expect.objectContaining({ name: "a", children: [b, leaf("d", "/a/d")] }),
      leaf("e", "/e"),
    ]);
    expect(
      await rows('#/matrix/file: | sort fullname | call tree {"parent":"/a","ftype":"file","fields":["name","ftype"]}'),
    ).toEqual([{ tree: [leaf("d", "/a/d")] }]);
    await expect(rows("#/matrix/ent/box: | call tree")).rejects.toMatchObject({ code: "not_found" });
  });

  test("graph answers the hits and the edges between them", async () => {
    const node = (host: string) => ({ id: `box:${host}`, class: "/matrix/ent/box", host });
    expect(await rows("#/matrix/ent/box: | host=outer;host=inner | sort host | print host | call graph")).toEqual([
      {
        graph: {
          nodes: [node("inner"), node("outer")],
          edges: [{ id: "box:outer contain box:inner", class: "contain", source: "box:outer", target: "box:inner" }],
          paths: [],
          pathtags: [],
        },
      },
    ]);
    const [none] = await rows('#/matrix/ent/box: | host=outer;host=inner | call graph {"type":"other"}');
    expect(none).toMatchObject({ graph: { edges: [] } });
  });

  test("show no row, no column and no edge that is hidden from the caller", async () => {
    const few = ruled({ class: "/matrix", access: "read", where: "host!='inner'", hidden: ["note"] });
    const text = "#/matrix/ent/box: | host=outer;host=inner | call graph";
    expect(await rows(text, few)).toEqual([
      { graph: { nodes: [{ id: "box:outer", class: "/matrix/ent/box" }], edges: [], paths: [], pathtags: [] } },
    ]);
    const files = ruled({ class: "/matrix/file", access: "read", where: "ftype!='file'", hidden: ["name"] });
    expect(await rows("#/matrix/file: | call tree", files)).toMatchObject([
      { tree: [{ fullname: "/a", children: [{ fullname: "/a/b", children: [] }] }] },
    ]);
    expect(JSON.stringify(await rows("#/matrix/file: | call tree", files))).not.toContain('"name"');
    await expect(rows('#/matrix/file: | call tree {"fields":["name"]}', files)).rejects.toMatchObject({
      code: "not_found",
    });
    await expect(rows(text, { ...few, grants: [] })).rejects.toMatchObject({ code: "denied" });
  });

  test.each(["user {}", "User", "__proto__", "me {}"])("%s is refused by its name", async (written) => {
    const name = (written.split(" ")[0] ?? "").toLowerCase();
    await expect(rows(`#/matrix/ent/box: | call ${written}`)).rejects.toMatchObject({
      code: "unsupported",
      message: `[Exec] No search calls ${name}: there are tree and graph.`,
      details: { construct: `call ${name}` },
    });
  });
});

describe("fields in lua", () => {
  const BOXES_BY_HOST = "#/matrix/ent/box: | sort host | print host, size";
  const lua = (text: string): string => `lua x=<lua>${text}</lua>`;

  test("are what the text returns of each row, and stand in the description of the answer", async () => {
    const text = `${BOXES_BY_HOST} | ${lua('if OBJECT.size > 10 then return OBJECT.host .. "!" end')}`;
    expect(await rows(text)).toEqual([
      { host: "db-1", size: 30, x: "db-1!" },
      { host: "web-1", size: 10 },
      { host: "web-2", size: 20, x: "web-2!" },
    ]);
    const { meta } = await search.search(admin, text);
    expect(meta.columns[meta.rootclass]?.map(({ name }) => name)).toEqual(["host", "size", "x"]);
  });

  test("know no column and no row that is hidden from the caller, and leave nothing for the next row", async () => {
    const principal = ruled({ class: "/matrix", access: "read", where: "host!='db-1'", hidden: ["note"] });
    const text = `#/matrix/ent/box: | sort host | ${lua("seen = (seen or 0) + 1 return tostring(OBJECT.note) .. seen")}`;
    expect((await rows(text, principal)).map(({ x }) => x)).toEqual(["nil1", "nil1"]);
  });

  test.each([
    ["return (", { code: "syntax" }],
    ["return OBJECT.none.deeper", { code: "invalid" }],
    ["while true do end", { code: "too_large" }],
    ["return os or io or require", undefined],
  ])("%s", async (text, error) => {
    const answer = rows(`${BOXES_BY_HOST} | top 1 | ${lua(text)}`);
    if (error === undefined) expect(await answer).toEqual([{ host: "db-1", size: 30 }]);
    else await expect(answer).rejects.toMatchObject(error);
  });

  test("do not go with what has no rows of its own", async () => {
    for (const other of ["delete", "group host", "call tree {}"])
      await expect(rows(`#/matrix/ent/box: | ${other} | ${lua("return 1")}`)).rejects.toMatchObject({
        code: "invalid",
      });
  });
});

test("a search that nobody waits for any more ends; what is not offered is refused by name", async () => {
  const controller = new AbortController();
  const { rows: pages } = await search.search(admin, "# error", { signal: controller.signal });
  controller.abort();
  await expect(pages[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "cancelled" });
  const bare = new SearchService({ objects, runtime });
  await expect(bare.search(admin, "lua x=<lua>return 1</lua>")).rejects.toMatchObject({ code: "unsupported" });
});
