import { once } from "node:events";
import type { InjectOptions } from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { WebSocket } from "ws";
import { PASSWORD } from "../../../test/helpers/http/http-app.ts";
import { openWorld, type World } from "../../../test/security/world.ts";

interface Envelope {
  readonly status: string;
  readonly message: unknown;
  readonly code?: string;
}

let world: World;
let session: string;

beforeEach(async () => {
  world = await openWorld();
  session = await world.signIn();
});
afterEach(() => world[Symbol.asyncDispose]());

async function call(
  method: "GET" | "POST" | "PUT" | "DELETE",
  url: string,
  payload?: object,
  by = session,
): Promise<Envelope> {
  const options: InjectOptions = { method, url: `${url}${url.includes("?") ? "&" : "?"}sessionid=${by}` };
  const response = await world.app.inject({ ...options, ...(payload && { payload }) });
  return response.json();
}

async function signIn(company: string, password: string): Promise<Envelope> {
  const response = await world.app.inject({
    method: "POST",
    url: "/user/signin",
    payload: { company, username: "admin", password },
  });
  return response.json();
}

async function sessionOf(company: string, password: string): Promise<string> {
  return String((await signIn(company, password)).message);
}

test("tenants are made, shown, changed, deleted and restored over HTTP", async () => {
  const made = await call("POST", "/companys", { name: "third", fullname: "The Third", license: "{}", unknown: 1 });
  expect(made).toMatchObject({ status: "ok", message: { username: "admin", password: expect.any(String) } });
  const { password } = made.message as { password: string };
  const own = await sessionOf("third", password);
  const shown = {
    name: "third",
    fullname: "The Third",
    ospace: "/third",
    title: "The Third",
    web: "",
    logo: "",
    icon: "",
    config: {},
    license: JSON.stringify({ expire: -1, server: -1, agent: -1 }),
  };
  expect(await call("GET", "/companys/third")).toEqual({ status: "ok", message: shown });
  expect(await call("GET", "/companys", undefined, own)).toMatchObject({ status: "ok", message: [shown] });
  expect(await call("GET", "/companys/matrix", undefined, own)).toMatchObject({ code: "not_found" });
  expect(await call("PUT", "/companys", { name: "third", title: "3" })).toMatchObject({ message: { title: "3" } });
  expect(await call("POST", "/companys", { name: "given", password: PASSWORD })).toEqual({
    status: "ok",
    message: { username: "admin" },
  });
  expect(await call("DELETE", "/companys/third")).toEqual({ status: "ok", message: "" });
  expect(await call("GET", "/host", undefined, own)).toMatchObject({ status: "signin" });
  expect(await call("GET", "/companys/third")).toMatchObject({ code: "not_found" });
  expect(await call("GET", "/companys?deleted=true")).toMatchObject({
    message: [{ name: "third", purgeAtMs: expect.any(Number) }],
  });
  expect(await call("POST", "/companys/third/restore")).toMatchObject({ message: { name: "third", title: "3" } });
  expect(await call("GET", "/host", undefined, own)).toMatchObject({ status: "ok" });
});

test("what is open of a tenant ends when it is deleted, and a new one of its name knows nothing of it", async () => {
  world.assembly.start();
  await call("POST", "/companys", { name: "third", password: PASSWORD });
  const old = await sessionOf("third", PASSWORD);
  const insert = "create class /third/box (code varchar, keys(code)); insert into /third/box code='a'";
  expect(await call("POST", "/mxobject/mql", { mql: insert }, old)).toMatchObject({ status: "ok" });
  expect(await call("POST", "/config/set", { key: "/third/a", value: "old" }, old)).toMatchObject({ status: "ok" });
  const address = (await world.app.listen({ host: "127.0.0.1", port: 0 })).replace("http:", "ws:");
  const socket = new WebSocket(`${address}/websocket/any?sessionid=${old}`);
  await once(socket, "open");
  const closed = once(socket, "close");

  expect(await call("DELETE", "/companys/third?purge=true")).toMatchObject({ status: "ok" });
  expect((await closed)[0]).toBe(1008);
  await expect
    .poll(async () => (await call("POST", "/companys", { name: "third", password: "another password" })).status, {
      timeout: 60_000,
    })
    .toBe("ok");
  expect(await signIn("third", PASSWORD)).toMatchObject({ status: "error" });
  expect(await call("GET", "/host", undefined, old)).toMatchObject({ status: "signin" });
  const fresh = await sessionOf("third", "another password");
  const select = await call("POST", "/mxobject/mql", { mql: "select * from /third/box" }, fresh);
  expect(select).toMatchObject({ status: "error", code: "not_found" });
  expect(await call("GET", "/config/get?key=/third/a", undefined, fresh)).not.toMatchObject({ message: "old" });
  const again = await call("POST", "/mxobject/mql", { mql: insert }, fresh);
  expect(again).toMatchObject({ status: "ok" });
});
