import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TAGGED_IDS_PER_CALL_MAX, TAGS_PER_CALL_MAX } from "../../../common/limits.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { tagController, type TagController } from "../../../test/helpers/objects/tags.ts";

const admin = testPrincipal();
const BOX = "/matrix/ent/box";
const DOOR = "/matrix/ent/door";
const MANY = onCluster ? 100 : TAGGED_IDS_PER_CALL_MAX;

let engine: TestEngine;
let one: TagController;
let two: TagController;
beforeAll(async () => {
  engine = await openTestEngine();
  one = tagController(engine);
  two = tagController(engine, { own: "two" });
  await one.query.rows(
    admin,
    `create class ${BOX} (host varchar, site varchar, keys(host)); create class ${DOOR} (host varchar, keys(host));
     `,
  );
});
afterAll(async () => {
  await one[Symbol.asyncDispose]();
  await two[Symbol.asyncDispose]();
  await engine.close();
});

async function boxes(...names: readonly string[]): Promise<readonly string[]> {
  await one.objects.unrestricted.insert(
    admin,
    BOX,
    names.map((host) => ({ host, site: "north" })),
  );
  return names.map((name) => `box:${name}`);
}

async function tagsOf(id: string): Promise<readonly unknown[]> {
  const [row] = await two.objects.unrestricted.get(admin, [{ id }]);
  return [...((row?.values["tags"] ?? []) as readonly string[])].sort();
}

async function idsOf(condition: string): Promise<readonly unknown[]> {
  return (await two.query.rows(admin, `select id from /matrix/ where ${condition} limit 10000`))
    .map(({ id }) => id)
    .sort();
}

describe("tags of objects", () => {
  test("are added by id, to objects of several classes, and to the tree of the domain", async () => {
    await boxes("a1", "a2");
    await one.objects.unrestricted.insert(admin, DOOR, [{ host: "a1" }]);
    await one.tags.addTo(admin, "adding", { ids: ["box:a1", "door:a1"], tags: ["os/linux/", "web"] });
    await two.tags.addTo(admin, "adding", { ids: ["box:a1"], tags: ["os/bsd", "web"] });
    expect(await tagsOf("box:a1")).toEqual(["os/bsd", "os/linux", "web"]);
    expect(await tagsOf("door:a1")).toEqual(["os/linux", "web"]);
    expect(await tagsOf("box:a2")).toEqual([]);
    const tree = await two.tags.tree(admin, "adding");
    expect(tree.nodes.map(({ name, nodes }) => [name, nodes.map((node) => node.name)])).toEqual([
      ["os", ["bsd", "linux"]],
      ["web", []],
    ]);
    await two.tags.takeFrom(admin, "adding", { ids: ["box:a1", "box:a2"], tags: ["os", "os/bsd"] });
    expect(await tagsOf("box:a1")).toEqual(["os/linux", "web"]);
  });

  test("that two controllers add at once are all there, and found by each branch", async () => {
    const ids = await boxes("b1", "b2");
    const names = Array.from({ length: 8 }, (_, n) => `n${n}`);
    await Promise.all(
      [one, two].flatMap((controller, at) =>
        names.map((name) => controller.tags.addTo(admin, "both", { ids, tags: [`both/c${at}/${name}`] })),
      ),
    );
    const all = [0, 1].flatMap((at) => names.map((name) => `both/c${at}/${name}`));
    for (const id of ids) expect(await tagsOf(id)).toEqual(all);
    await Promise.all(
      names.slice(1).map((name) => one.tags.takeFrom(admin, "both", { ids, tags: [`both/c0/${name}`] })),
    );
    for (const branch of ["both", "both/c0", "both/c1"])
      expect(await idsOf(`tags like '${branch}/*'`), branch).toEqual(ids);
    await one.tags.takeFrom(admin, "both", { ids, tags: ["both/c0/n0"] });
    expect(await idsOf("tags like 'both/c0/*'")).toEqual([]);
    expect(await idsOf("tags like 'both/*'")).toEqual(ids);
  });

  test("of many objects are added and taken by one call", async () => {
    const ids = await boxes(...Array.from({ length: MANY }, (_, n) => `many${n}`));
    await one.tags.addTo(admin, "many", { ids, tags: ["many/x"] });
    expect(await idsOf("tags = 'many/x'")).toHaveLength(ids.length);
    await one.tags.takeFrom(admin, "many", { ids, tags: ["many/x"] });
    expect(await one.tags.isUnused(admin, "many")).toBe(true);
  });
});

describe("what is below a tag", () => {
  test("is found by an index, in MQL and by a search", async () => {
    await boxes("s1", "s2", "s3");
    await one.tags.addTo(admin, "search", { ids: ["box:s1"], tags: ["geo"] });
    await one.tags.addTo(admin, "search", { ids: ["box:s2"], tags: ["geo/eu/de"] });
    await one.tags.addTo(admin, "search", { ids: ["box:s3"], tags: ["geography/eu"] });
    const steps = async (condition: string) =>
      (await one.query.rows(admin, `explain select id from /matrix/ where ${condition}`)).map(({ work }) => work);
    expect(await idsOf("tags like 'geo/*'")).toEqual(["box:s2"]);
    expect(await idsOf("tags like 'geo/eu/%'")).toEqual(["box:s2"]);
    expect(await idsOf("tags = 'geo' or tags like 'geo/*'")).toEqual(["box:s1", "box:s2"]);
    expect(await idsOf("tags like 'geo/*/de'")).toEqual(["box:s2"]);
    expect((await steps("tags like 'geo/*'")).join()).toContain("index tags = geo/ in");
    expect((await steps("tags = 'geo' or tags like 'geo/*'")).join()).toContain("index tags = geo or geo/ in");
    expect((await steps("tags not like 'geo/*'")).join()).toContain("scan");
    expect((await steps("tags like 'geo*/*'")).join()).toContain("scan");
  });

  test("keeps a tag from being unused, whoever wrote it", async () => {
    await one.query.rows(admin, `insert into ${BOX} host='written', tags=['unused/by/hand']`);
    expect(await one.tags.isUnused(admin, "unused")).toBe(false);
    expect(await one.tags.isUnused(admin, "unused/by/hand")).toBe(false);
    expect(await one.tags.isUnused(admin, "unused/by/hands")).toBe(true);
    expect(await one.tags.isUnused(testPrincipal("viewer", "second"), "unused")).toBe(true);
  });
});

describe("what is refused", () => {
  test("changes nothing: ids that are not there, and too much at once", async () => {
    await boxes("r1");
    const adding = (ids: readonly string[], tags: readonly string[]) =>
      expect(one.tags.addTo(admin, "refused", { ids, tags })).rejects;
    await adding(["box:r1", "box:none"], ["x"]).toMatchObject({ code: "not_found", message: /box:none/ });
    await adding(["box:r1", "nothing"], ["x"]).toMatchObject({ code: "not_found" });
    await adding(["box:r1", "nothing:at all"], ["x"]).toMatchObject({ code: "not_found" });
    await adding(["box:r1"], ["x", "a//b"]).toMatchObject({ code: "invalid" });
    await adding(["box:r1"], []).toMatchObject({ code: "invalid" });
    await adding([], ["x"]).toMatchObject({ code: "invalid" });
    const many = (count: number) => Array.from({ length: count }, (_, n) => `n${n}`);
    await adding(["box:r1"], many(TAGS_PER_CALL_MAX + 1)).toMatchObject({ details: { limit: "TAGS_PER_CALL_MAX" } });
    await adding(many(TAGGED_IDS_PER_CALL_MAX + 1), ["x"]).toMatchObject({
      details: { limit: "TAGGED_IDS_PER_CALL_MAX" },
    });
    expect(await tagsOf("box:r1")).toEqual([]);
    expect((await one.tags.tree(admin, "refused")).nodes).toEqual([]);
  });

  test("is what the caller may not see or change", async () => {
    await one.objects.unrestricted.insert(admin, BOX, [
      { host: "north", site: "north" },
      { host: "south", site: "south" },
    ]);
    const tagging = (host: string) => ({ ids: [`box:${host}`], tags: ["ruled/x"] });
    const limited = (data: (typeof admin)["data"]) => ({ ...admin, user: "bob", data });
    const northern = limited([{ class: "/", access: "write", where: "site = 'north'" }]);
    await one.tags.addTo(northern, "ruled", tagging("north"));
    await expect(one.tags.addTo(northern, "ruled", tagging("south"))).rejects.toMatchObject({ code: "not_found" });
    const untagged = limited([{ class: "/", access: "write", where: "tags = 'ruled/x'" }]);
    await expect(one.tags.takeFrom(untagged, "ruled", tagging("north"))).rejects.toMatchObject({ code: "denied" });
    const blind = limited([{ class: "/", access: "write", hidden: ["tags"] }]);
    await expect(one.tags.addTo(blind, "ruled", tagging("south"))).rejects.toMatchObject({ code: "not_found" });
    const reader = limited([{ class: "/", access: "read" }]);
    await expect(one.tags.addTo(reader, "ruled", tagging("south"))).rejects.toMatchObject({ code: "denied" });
    expect(await tagsOf("box:north")).toEqual(["ruled/x"]);
    expect(await tagsOf("box:south")).toEqual([]);
  });

  test("is everything to a viewer, and to a neighbour what is not his", async () => {
    const [id = ""] = await boxes("seen");
    const viewer = testPrincipal("viewer");
    const denied = { code: "denied", details: { permission: "tags:write" } };
    await expect(async () => one.tags.addTo(viewer, "d", { ids: [id], tags: ["x"] })).rejects.toMatchObject(denied);
    await expect(async () => one.tags.takeFrom(viewer, "d", { ids: [id], tags: ["x"] })).rejects.toMatchObject(denied);
    const neighbour = testPrincipal("administrator", "second");
    await expect(one.tags.addTo(neighbour, "d", { ids: [id], tags: ["x"] })).rejects.toMatchObject({
      code: "not_found",
    });
    expect(await tagsOf(id)).toEqual([]);
  });
});
