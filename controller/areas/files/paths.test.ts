import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fileController, type FileController } from "../../../test/helpers/files.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../test/helpers/http-app.ts";
import { testPrincipal } from "../../../test/helpers/runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { fileRoutes } from "./routes.ts";

/** Paths that are closed to a user stay so by every way to a file, whatever other permissions there are. */

let http: TestHttp;
let controller: FileController;
let bob: string;

beforeAll(async () => {
  const stores: Stores = { system: () => http.engine.system(), tenant: (name) => http.engine.tenant(name) };
  controller = fileController(stores);
  http = await openTestHttp({ endpoints: fileRoutes(controller.files) });
  const admin = testPrincipal();
  const rights = { grants: ["files:read", "files:write"], data: [] };
  await http.users.create(admin, { username: "bob", password: PASSWORD, rights });
  const caller = { company: "matrix", remote: "test", traceparent: "" };
  bob = (await http.users.signIn({ ...caller, username: "bob", password: PASSWORD })).session;
  for (const path of [
    "/web/index.html",
    "/opt/tools/a.js",
    "/opt/toolsmith",
    "/opt/keys/k",
    "/home/ann/a",
    "/home/bob/b",
  ])
    await controller.files.write(admin, { path, space: "user" }, { text: path });
  await http.groups.create(admin, { name: "crew", member: ["U/bob"] });
  await http.groups.createApiPermission(admin, "tools", ["/opt/tools"]);
});
afterAll(async () => {
  await controller[Symbol.asyncDispose]();
  await http[Symbol.asyncDispose]();
});

const denied = expect.objectContaining({ code: "denied" });
const get = (url: string) => http.call(bob, { url });
const names = async (url: string) => {
  const { message } = await get(url);
  return (message as { fullname: string }[]).map(({ fullname }) => fullname).sort();
};

describe("a user", () => {
  test("reads what everyone may, and the own home folder", async () => {
    expect(await get("/fs/web/index.html?type=file")).toMatchObject({ message: "/web/index.html" });
    expect(await get("/fs/home/bob/b?type=file")).toMatchObject({ message: "/home/bob/b" });
    expect(await get("/fs/home/ann/a?type=file")).toEqual(denied);
  });

  test("meets every other path closed, by every way", async () => {
    for (const type of ["file", "open", "download", "check", "attr", "tag"])
      expect(await get(`/fs/opt/keys/k?type=${type}`), type).toEqual(denied);
    expect(await get("/static/opt/keys/k")).toEqual(denied);
    expect(await get("/fs/opt/keys?type=dir")).toEqual(denied);
    const changes = [
      { method: "PUT", url: "/fs/opt/keys/k", payload: { data: "mine" } },
      { method: "PUT", url: "/fs/opt/keys/new", payload: { data: "mine" } },
      { method: "PUT", url: "/fs/opt/keys/k", payload: { tag: ["t"] } },
      { method: "DELETE", url: "/fs/opt/keys/k" },
      { method: "DELETE", url: "/fs/opt" },
      { method: "POST", url: "/fs/copy", payload: { srcpath: "/opt/keys/k", dstpath: "/home/bob" } },
      { method: "POST", url: "/fs/move", payload: { srcpath: "/opt/keys/k", dstpath: "/home/bob" } },
      { method: "POST", url: "/fs/move", payload: { srcpath: "/home/bob/b", dstpath: "/opt/keys" } },
      { method: "POST", url: "/fs/rename", payload: { srcpath: "/opt/keys", dstpath: "/home/bob/keys" } },
      { method: "POST", url: "/fs/rename", payload: { srcpath: "/home/bob/b", dstpath: "/opt/keys/b" } },
    ] as const;
    for (const request of changes) expect(await http.call(bob, request), request.url).toEqual(denied);
    const files = controller.files;
    const principal = await http.users.bySession(bob, "");
    if (principal === undefined) throw new Error("bob is signed in");
    const id = "filesystem:user:/opt/keys/k";
    await expect(files.retag(principal, id, [])).rejects.toMatchObject({
      code: "denied",
      details: { path: "/opt/keys/k" },
    });
    const { text } = await files.read(testPrincipal(), "/opt/keys/k");
    expect(text).toBe("/opt/keys/k");
  });

  test("sees of folders above open paths only the way to these", async () => {
    expect(await names("/fs/?type=dir")).toEqual(["/home", "/web"]);
    expect(await names("/fs/home?type=dir")).toEqual(["/home/bob"]);
    expect(await get("/fs/opt?type=check")).toEqual(denied);
  });

  test("reads and changes below a path from the call on in which its group is given it, and not any more after", async () => {
    const admin = testPrincipal();
    await http.groups.addGroups(admin, "tools", ["/crew"]);
    expect(await get("/fs/opt/tools/a.js?type=file")).toMatchObject({ message: "/opt/tools/a.js" });
    expect(await names("/fs/opt?type=dir")).toEqual(["/opt/tools"]);
    expect(await get("/fs/opt/toolsmith?type=file")).toEqual(denied);
    const put = { method: "PUT", url: "/fs/opt/tools/b.js", payload: { data: "b" } } as const;
    expect(await http.call(bob, put)).toMatchObject({ status: "ok" });
    await http.groups.removeGroups(admin, "tools", ["/crew"]);
    expect(await get("/fs/opt/tools/a.js?type=file")).toEqual(denied);
    expect(await http.call(bob, put)).toEqual(denied);
  });
});
