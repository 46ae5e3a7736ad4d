import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Row } from "../../../../common/value.ts";
import { admin, objects, search, useSearch, rows, ruled } from "../../../../test/helpers/mql/search-world.ts";

useSearch();

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
    await objects.unrestricted.insert(admin, "/matrix/file", files.map(rowOf));
    const [first] = await objects.unrestricted.insert(admin, "/matrix/ent/box", [{ host: "inner" }]);
    await objects.unrestricted.insert(admin, "/matrix/ent/box", [
      { host: "outer", contain: [first ?? "", "box:web-1"] },
    ]);
  });

  afterAll(async () => {
    await objects.unrestricted.remove(admin, [{ id: "box:inner" }, { id: "box:outer" }]);
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
