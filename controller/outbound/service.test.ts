import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TestClock } from "../../test/helpers/time/runtime.ts";
import { serviceFetch } from "./service.ts";

let answer: (request: IncomingMessage, response: ServerResponse) => void;
const server = createServer((request, response) => answer(request, response));
let home: URL;
const clock = new TestClock();

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  home = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const request = { method: "GET", headers: {}, body: undefined };
const send = (url: string, sent: object = request) =>
  serviceFetch({ home, networks: [], clock, deadlineMs: 1_000, max: { bytes: 100, limit: "TEST_MAX_BYTES" } })(url, {
    ...request,
    ...sent,
  });

test("a form arrives at the service's own host, wherever that is, and its answer comes back", async () => {
  answer = (received, response) => {
    let body = "";
    received.on("data", (part: Buffer) => (body += part.toString()));
    received.on("end", () => response.writeHead(201, { "x-odd": "1" }).end(`${received.method} ${body}`));
  };
  const found = await send(home.href, { method: "POST", body: new URLSearchParams({ code: "ü" }) });
  expect([found.status, found.headers.get("x-odd"), await found.text()]).toEqual([201, "1", "POST code=%C3%BC"]);
});

test("another host inside is not reached, and a redirect there is not followed", async () => {
  const { port } = home;
  await expect(send(`http://127.0.0.2:${port}/`)).rejects.toMatchObject({ code: "denied" });
  await expect(send(`http://localhost:${port}/`)).rejects.toMatchObject({ code: "denied" });
  await expect(send("http://127.0.0.1:1/")).rejects.toMatchObject({ code: "denied" });
  answer = (_request, response) => response.writeHead(302, { location: `http://localhost:${port}/` }).end();
  expect((await send(home.href)).status).toBe(302);
});

test("what the service names at a public address is not reached where those are closed", async () => {
  const max = { bytes: 100, limit: "TEST_MAX_BYTES" };
  const listed = serviceFetch({ home, networks: [], isPublicOpen: false, clock, deadlineMs: 1_000, max });
  await expect(listed("https://8.8.8.8/keys", request)).rejects.toMatchObject({ code: "denied" });
  answer = (_request, response) => response.end("home");
  expect(await (await listed(home.href, request)).text()).toBe("home");
});

test("an answer that is too large, or does not come, is none", async () => {
  answer = (_request, response) => response.end("x".repeat(101));
  await expect(send(home.href)).rejects.toMatchObject({ code: "too_large", details: { limit: "TEST_MAX_BYTES" } });
  answer = () => clock.advance(1_000);
  await expect(send(home.href)).rejects.toMatchObject({ code: "deadline" });
});
