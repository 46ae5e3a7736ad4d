import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { WebSocket } from "ws";
import { configWorld } from "../../../test/helpers/areas/config.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { openTestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import type { Principal } from "../permissions/index.ts";
import { MASK } from "./rights.ts";
import { ConfigService } from "./service.ts";
import { ConfigWatch, type WatchedChange } from "./watch.ts";

const admin = testPrincipal();

let engine: TestEngine;
let world: ReturnType<typeof configWorld>;
let config: ConfigService;
let base = "";
let count = 0;

beforeAll(async () => {
  engine = await openTestEngine();
  world = configWorld(engine);
  config = new ConfigService(world);
});
beforeEach(() => {
  base = `/matrix/w${(count += 1)}`;
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** A reader whose rights a test may change; it takes one frame at a time. */
function watching(key: string, by: Principal = admin) {
  let now: Principal | undefined = by;
  const stop = new AbortController();
  const present = () => Promise.resolve(now);
  const frames = new ConfigWatch(world).follow(by, key, { signal: stop.signal, present });
  return {
    async next(): Promise<WatchedChange | undefined> {
      const { value } = await frames.next();
      return value ?? undefined;
    },
    becomes: (principal: Principal | undefined) => (now = principal),
    async end() {
      stop.abort();
      await frames.return(undefined);
    },
  };
}

const set = (key: string, value: string) => config.set(admin, { key, value });

test("what is there, then every change in its order, by whatever controller, and nothing of what lies beside it", async () => {
  await set(`${base}/a`, "1");
  await set(base, "own");
  const reader = watching(base);
  expect([await reader.next(), await reader.next(), await reader.next()]).toMatchObject([
    { key: base, value: "own" },
    { key: `${base}/a`, value: "1", version: 1, author: "administrator" },
    { ready: true },
  ]);
  await using other = configWorld(engine);
  await set(`${base}beside`, "x");
  await new ConfigService(other).set(admin, { key: `${base}/b`, value: "2" });
  await set(`${base}/a`, "3");
  await config.remove(admin, base);
  const changes = [
    await reader.next(),
    await reader.next(),
    await reader.next(),
    await reader.next(),
    await reader.next(),
  ];
  expect(changes.slice(0, 2)).toMatchObject([
    { key: `${base}/b`, value: "2" },
    { key: `${base}/a`, value: "3", version: 2 },
  ]);
  const gone = [base, `${base}/a`, `${base}/b`].map((key) => ({ key, deleted: true }));
  expect(changes.slice(2)).toEqual(expect.arrayContaining(gone));
  await reader.end();
});

test("an entry that has expired is told as deleted", async () => {
  await config.set(admin, { key: `${base}/short`, value: "x", ttlSeconds: 1 });
  const reader = watching(base);
  expect([await reader.next(), await reader.next()]).toMatchObject([{ value: "x" }, { ready: true }]);
  const told = reader.next();
  await expect.poll(() => world.entries.get("matrix", `${base}/short`), { timeout: 10_000 }).toBeUndefined();
  expect(await told).toEqual({ key: `${base}/short`, deleted: true });
  await reader.end();
});

test("a reader is told what he may see at that moment, and no more", async () => {
  await config.set(admin, { key: `${base}/secret`, value: "hunter2", secret: true });
  await set(`${base}/others`, "x");
  const data = [{ class: "/", access: "read" as const, where: `name != 'others'`, hidden: ["author"] }];
  const reader = watching(base, { ...admin, data });
  const first = await reader.next();
  expect(first).toMatchObject({ key: `${base}/secret`, value: MASK, secret: true });
  expect(first).not.toHaveProperty("author");
  expect(await reader.next()).toEqual({ ready: true });
  await set(`${base}/others`, "y");
  await config.remove(admin, `${base}/others`);
  await set(`${base}/seen`, "z");
  expect(await reader.next()).toMatchObject({ key: `${base}/seen` });
  reader.becomes({ ...admin, data: [{ class: "/", access: "read", where: "value != 'w'" }] });
  await set(`${base}/seen`, "w");
  expect(await reader.next()).toEqual({ key: `${base}/seen`, deleted: true });
  reader.becomes(undefined);
  await set(`${base}/seen`, "v");
  await expect(reader.next()).rejects.toMatchObject({ code: "denied" });
  await expect(watching(base, { ...admin, grants: [] }).next()).rejects.toMatchObject({ code: "denied" });
});

test("over a WebSocket, for who is signed in", async () => {
  await using http = await openTestHttp({ endpoints: world.area.endpoints ?? [], sockets: world.area.sockets ?? [] });
  await http.app.listen({ host: "127.0.0.1", port: 0 });
  const session = await http.signIn("viewer");
  await set(`${base}/a`, "1");
  const { port } = http.app.server.address() as AddressInfo;
  const socket = new WebSocket(`ws://127.0.0.1:${String(port)}/config/watch?key=${base}&sessionid=${session}`);
  const frames: unknown[] = [];
  socket.on("message", (text: Buffer) => frames.push(JSON.parse(String(text))));
  await once(socket, "open");
  await expect.poll(() => frames.length).toBe(2);
  await set(`${base}/a`, "2");
  await expect.poll(() => frames).toMatchObject([{ key: `${base}/a`, value: "1" }, { ready: true }, { value: "2" }]);
  const closed = once(socket, "close");
  socket.close(1000, "close");
  await closed;
  const stranger = new WebSocket(`ws://127.0.0.1:${String(port)}/config/watch?key=${base}`);
  const [error] = (await once(stranger, "error")) as [Error];
  expect(error.message).toMatch(/Unexpected server response/);
});
