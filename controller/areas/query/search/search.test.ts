import { describe, expect, test } from "vitest";
import type { Row } from "../../../../common/value.ts";
import { SearchService } from "./index.ts";
import {
  admin,
  HOUR_MS,
  NOON_MS,
  runtime,
  audited,
  objects,
  search,
  useSearch,
  rows,
  ruled,
} from "../../../../test/helpers/mql/search-world.ts";

useSearch();

/** One field of every row, sorted. */
async function values(text: string, field = "host", principal = admin): Promise<readonly unknown[]> {
  return (await rows(text, principal)).map((row) => row[field]).sort();
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
    const { plan } = await meta("debug>#/matrix/ent/box/: | disk | host=web-1 | sort size | top 3", {
      ...ruled({ class: "/", access: "read", where: "size = 10" }),
      grants: ["objects:read"],
    });
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
    await objects.unrestricted.insert(admin, "/matrix/doc", [{ name: "old", state: "stale" }], { atMs: NOON_MS });
    await objects.unrestricted.remove(admin, [{ id: "doc:old" }]);
    expect(await values("#/matrix/doc: | stale", "id")).toEqual([]);
    expect(await rows("/matrix/doc: | stale | print id, state, ctime")).toEqual([
      { id: "doc:old", state: "stale", ctime: NOON_MS },
    ]);
    expect(await values("/matrix/doc: | id=doc:old", "state")).toEqual(["stale"]);
    expect(await values("/matrix/doc: | id=doc:plan | state=stale", "state")).toEqual([]);
    expect(await values("/matrix/doc: | window 2024-02-28 12:30 to 2024-02-28 13:30", "state")).toEqual(["ERROR"]);
    expect(await values("/matrix/doc: | at 2024-02-28 12:30", "state")).toEqual(["draft", "stale"]);
    await objects.unrestricted.remove(admin, [{ id: "doc:old" }], { withVersions: true });
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
    await objects.unrestricted.insert(
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

test("a search that nobody waits for any more ends; what is not offered is refused by name", async () => {
  const controller = new AbortController();
  const { rows: pages } = await search.search(admin, "# error", { signal: controller.signal });
  controller.abort();
  await expect(pages[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "cancelled" });
  const bare = new SearchService({ objects, runtime });
  await expect(bare.search(admin, "lua x=<lua>return 1</lua>")).rejects.toMatchObject({ code: "unsupported" });
});
