import { afterAll, beforeAll, expect, test } from "vitest";
import { realClock } from "../../../test/helpers/clock.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http-app.ts";
import { testRuntime } from "../../../test/helpers/runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { tagRoutes } from "./routes.ts";
import { TagService } from "./service.ts";

let http: TestHttp;
let admin: string;

beforeAll(async () => {
  // The engine comes with the HTTP side, which wants the routes: it is asked for when the first call arrives.
  const stores: Stores = { system: () => http.engine.system(), tenant: (name) => http.engine.tenant(name) };
  http = await openTestHttp({ endpoints: tagRoutes(new TagService({ stores, runtime: testRuntime(realClock) })) });
  admin = await http.signIn("admin");
});
afterAll(() => http[Symbol.asyncDispose]());

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
