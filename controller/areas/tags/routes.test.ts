import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { tagController, type TagController } from "../../../test/helpers/objects/tags.ts";
import type { Stores } from "../../store/engine.ts";
import { tagRoutes } from "./routes.ts";

let http: TestHttp;
let admin: string;
let controller: TagController;

beforeAll(async () => {
  // The engine starts together with the HTTP side, which needs the routes, so it is looked up at the first call.
  const stores: Stores = { system: () => http.engine.system(), tenant: (name) => http.engine.tenant(name) };
  controller = tagController(stores);
  http = await openTestHttp({ endpoints: tagRoutes(controller.tags) });
  admin = await http.signIn("admin");
});
afterAll(async () => {
  await controller[Symbol.asyncDispose]();
  await http[Symbol.asyncDispose]();
});

type Fields = Readonly<Record<string, string>>;

function multipart(fields: Fields): { readonly payload: string; readonly headers: Record<string, string> } {
  const parts = Object.entries(fields).map(
    ([name, value]) => `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  return {
    payload: `${parts.join("")}--B--\r\n`,
    headers: { "content-type": "multipart/form-data; boundary=B" },
  };
}

const DONE = { status: "ok", message: "" };
const send = (method: "POST" | "PUT", url: string, fields: Fields) =>
  http.call(admin, { method, url, ...multipart(fields) });
const tree = async (domain: string, query = "", as = admin) =>
  (await http.call(as, { url: `/tagdir/${domain}${query}` })).message;
const node = (domain: string, path: string, nodes: readonly object[] = []) => ({
  name: path.slice(path.lastIndexOf("/") + 1),
  path,
  domain,
  nodes,
});

test("a domain needs no making: before its first tag it is an empty tree", async () => {
  expect(await http.call(admin, { url: "/tagdir/fresh?system=false" })).toEqual({
    status: "ok",
    message: { name: "", nodes: [] },
  });
  expect(await tree("fresh", "?tagpath=a/b")).toEqual({ name: "", nodes: [] });
});

test("tags are added, moved, renamed in both spellings and deleted", async () => {
  expect(await send("POST", "/tagdir/life", { tagpath: "/os/linux/", system: "false" })).toEqual(DONE);
  expect(await send("POST", "/tagdir/life", { tagpath: "os/bsd" })).toEqual(DONE);
  const os = (...nodes: readonly object[]) => ({ name: "", nodes: [node("life", "os", nodes)] });
  expect(await tree("life")).toEqual(os(node("life", "os/bsd"), node("life", "os/linux")));
  expect(await tree("life", "?tagpath=os")).toEqual({
    name: "",
    nodes: [node("life", "os/bsd"), node("life", "os/linux")],
  });
  expect(await send("PUT", "/tagdir/life/rename", { tagpath: "os/bsd", topath: "os/unix" })).toEqual(DONE);
  expect(await send("PUT", "/tagdir/life", { tagpath: "os/linux", topath: "os/unix/linux" })).toEqual(DONE);
  expect(await tree("life")).toEqual(os(node("life", "os/unix", [node("life", "os/unix/linux")])));
  expect(await http.call(admin, { method: "DELETE", url: "/tagdir/life?tagpath=os/unix" })).toEqual(DONE);
  expect(await tree("life")).toEqual(os());
});

test.each([
  ["JSON", { payload: { tagpath: "forms/a", topath: "" } }],
  [
    "a url-encoded form",
    { payload: "tagpath=forms%2Fa", headers: { "content-type": "application/x-www-form-urlencoded" } },
  ],
  ["multipart", multipart({ tagpath: "forms/a" })],
])("a tag is added as %s", async (name, body) => {
  const domain = name.replaceAll(" ", "-");
  expect(await http.call(admin, { method: "POST", url: `/tagdir/${domain}`, ...body })).toMatchObject(DONE);
  expect(await tree(domain)).toEqual({ name: "", nodes: [node(domain, "forms", [node(domain, "forms/a")])] });
});

test("tags are added to objects and taken from them by ids, in all spellings", async () => {
  const principal = testPrincipal();
  await controller.query.rows(principal, "create class /matrix/ent/box (host varchar, keys(host))");
  await controller.query.rows(principal, "insert into /matrix/ent/box (host) values ('a')");
  await controller.query.rows(principal, "insert into /matrix/ent/box (host) values ('b')");
  const tagged = async () =>
    (await controller.query.rows(principal, "select id, tags from /matrix/ent/box order by id")).map(({ tags }) => [
      ...((tags ?? []) as readonly string[]),
    ]);
  const nodata = async (path: string) =>
    (await http.call(admin, { url: `/tagdir/box/nodata?tagpath=${encodeURIComponent(path)}` })).message;
  const form = { headers: { "content-type": "application/x-www-form-urlencoded" } };
  expect(await nodata("t")).toBe(true);
  const payload = "tag=t/x&tag=y&id=box:a&id=box:b&system=false";
  expect(await http.call(admin, { method: "PUT", url: "/box/addtags", payload, ...form })).toEqual(DONE);
  expect((await tagged()).map((tags) => tags.sort())).toEqual([
    ["t/x", "y"],
    ["t/x", "y"],
  ]);
  expect(await nodata("t")).toBe(false);
  expect(await tree("box")).toEqual({ name: "", nodes: [node("box", "t", [node("box", "t/x")]), node("box", "y")] });
  const one = "/box/deletetags?tag=t/x&id=box:a";
  expect(await http.call(admin, { method: "DELETE", url: one })).toEqual(DONE);
  const url = "/tagdir/box/deletetags";
  expect(await http.call(admin, { method: "PUT", url, ...multipart({ "tag[]": "t/x", id: "box:b" }) })).toEqual(DONE);
  expect(
    await http.call(admin, { method: "DELETE", url: "/box/deletetags", payload: "tag=y&id=box:a", ...form }),
  ).toEqual(DONE);
  expect(await tagged()).toEqual([[], ["y"]]);
  expect(await nodata("t")).toBe(true);
  expect(await send("PUT", "/tagdir/box", { tagpath: "y", topath: "z" })).toEqual(DONE);
  expect(await tagged()).toEqual([[], ["z"]]);
  expect(await send("PUT", "/box/addtags", { tag: "t" })).toMatchObject({ code: "invalid" });
  expect(await send("PUT", "/box/addtags", { tag: "t", id: "box:none" })).toMatchObject({ code: "not_found" });
});

test("what is missing or wrong is said by name", async () => {
  expect(await send("POST", "/tagdir/wrong", {})).toMatchObject({ code: "invalid", message: "tagpath is missing." });
  expect(await send("PUT", "/tagdir/wrong", { tagpath: "a" })).toMatchObject({ message: "topath is missing." });
  expect(await send("PUT", "/tagdir/wrong/rename", { tagpath: "a", topath: "b" })).toMatchObject({ code: "not_found" });
  expect(await http.call(admin, { method: "DELETE", url: "/tagdir/wrong?tagpath=a" })).toMatchObject({
    code: "not_found",
  });
  expect(await send("POST", "/tagdir/wrong", { tagpath: "../a" })).toMatchObject({ code: "invalid" });
});

test("a viewer reads and changes nothing", async () => {
  await send("POST", "/tagdir/seen", { tagpath: "a" });
  const viewer = await http.signIn("viewer");
  const seen = { name: "", nodes: [node("seen", "a")] };
  expect(await tree("seen", "", viewer)).toEqual(seen);
  for (const method of ["POST", "PUT", "DELETE"] as const)
    expect(await http.call(viewer, { method, url: "/tagdir/seen?tagpath=a&topath=b", payload: {} })).toMatchObject({
      code: "denied",
    });
  expect(await tree("seen")).toEqual(seen);
});
