import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { OdpClient, OdpError } from "./index.ts";
import { CLIENT_RETRIES_MAX } from "../limits.ts";
import { clientOf, failure, problem, send } from "../../test/helpers/http/misbehaving-server.ts";

/** Calls of the client against servers that misbehave. `test/openapi/client.test.ts` has it call a real controller. */

const ok = (response: ServerResponse, message: unknown): void => send(response, 200, { status: "ok", message });
const change = { body: { key: "/a", value: "1" } };

test("a read is repeated until it succeeds, a change only if the controller says that nothing was done", async () => {
  const answers = ["unavailable", "unknown_outcome", "limited", undefined];
  const { client, requests } = await clientOf((_request, response) => {
    const code = answers[requests.length - 1];
    if (code === undefined) ok(response, []);
    else send(response, 503, problem(code));
  });
  expect(await client.call("getHost")).toEqual([]);
  expect(requests).toHaveLength(4);
  requests.length = 0;
  expect(await failure(client.call("postConfigSet", change))).toMatchObject({
    code: "unknown_outcome",
    isUndone: false,
  });
  expect(requests).toHaveLength(2);
});

test("warnings of an answer are told also to a caller who wants its message alone", async () => {
  const told: string[] = [];
  const { client } = await clientOf(
    (_request, response) => send(response, 200, { status: "ok", message: [], warnings: ["one", "two"] }),
    { onWarning: (text) => void told.push(text) },
  );
  expect(await client.call("getHost")).toEqual([]);
  expect(told).toEqual(["one", "two"]);
  expect(await client.answer("getHost")).toMatchObject({ warnings: ["one", "two"] });
  expect(told).toHaveLength(2);
});

test("statements, scripts and jobs are not repeated after any answer, unless the caller says that it does no harm", async () => {
  const { client, requests } = await clientOf((_request, response) => send(response, 503, problem("unavailable")));
  const query = { mql: "select 1" };
  const path = { path: "backup@ops" };
  await failure(client.call("getMxobjectMql", { query }));
  await failure(client.call("getJobByPath", { path, query: { param: "{}" } }));
  await failure(client.call("postScriptExecJs", { body: "OUTPUT = 1" }));
  expect(requests).toHaveLength(3);
  await failure(client.call("getMxobjectMql", { query }, { isRepeatable: true }));
  expect(requests).toHaveLength(7);
});

test("a connection that breaks after the call was sent leaves a change unknown, and it is not repeated", async () => {
  const { client, requests } = await clientOf((request) => request.socket.destroy());
  expect(await failure(client.call("postConfigSet", change))).toMatchObject({
    code: "unknown_outcome",
    isUndone: false,
  });
  expect(requests).toHaveLength(1);
  expect(await failure(client.call("getHost"))).toMatchObject({ code: "unavailable" });
  expect(requests).toHaveLength(5);
});

test("a refused connection is certain: a change is repeated, and nothing was done", async () => {
  let attempts = 0;
  const counted: typeof fetch = (to, init) => {
    attempts++;
    return fetch(to, init);
  };
  const { client, server } = await clientOf(() => undefined, { fetch: counted as never });
  await new Promise((resolve) => server.close(resolve));
  expect(await failure(client.call("postConfigSet", change))).toMatchObject({ code: "unavailable", isUndone: true });
  expect(attempts).toBe(4);
});

test("a client that only fails adds few calls: its repetitions are bounded, over all calls", async () => {
  const { client, requests } = await clientOf((_request, response) => send(response, 503, problem("unavailable")));
  await Promise.all(Array.from({ length: 20 }, () => failure(client.call("getHost"))));
  expect(requests).toHaveLength(20 + CLIENT_RETRIES_MAX);
});

test("Retry-After is waited for, unless the deadline comes first", async () => {
  const { client, requests } = await clientOf(
    (_request, response) => send(response, 429, problem("limited"), { "retry-after": "3600" }),
    { timeoutMs: 60_000 },
  );
  expect(await failure(client.call("postConfigSet", change))).toMatchObject({
    code: "limited",
    retryAfterMs: 3_600_000,
  });
  expect(requests).toHaveLength(1);
});

test("a server that does not answer is left at the deadline, and a caller may leave before", async () => {
  const { client } = await clientOf(() => undefined);
  expect(await failure(client.call("getHost", {}, { timeoutMs: 20 }))).toMatchObject({ code: "deadline" });
  const leave = new AbortController();
  const call = failure(client.call("getHost", {}, { signal: leave.signal }));
  leave.abort(new Error("no longer needed"));
  expect(await call).toMatchObject({ code: "cancelled", cause: { message: "no longer needed" } });
  expect(await failure(client.call("getHost", {}, { signal: AbortSignal.abort() }))).toMatchObject({
    code: "cancelled",
  });
});

test("answers that no controller gives are told as such: pages, redirects, broken JSON, other lengths", async () => {
  const { client, requests } = await clientOf(
    (request, response) => {
      const { pathname } = new URL(request.url ?? "", "http://odp.example");
      if (pathname === "/host") response.writeHead(200, { "content-type": "text/html" }).end("<h1>Welcome</h1>");
      else if (pathname === "/group") response.writeHead(302, { location: "https://elsewhere.example/" }).end();
      else if (pathname === "/pattern")
        response.writeHead(200, { "content-type": "application/json" }).end('{"status":"ok","message":NaN}');
      else
        response
          .writeHead(200, { "content-type": "application/json", "content-length": "1000" })
          .write('{"status":', () => response.destroy());
    },
    { attempts: 1 },
  );
  const page = await failure(client.call("getHost"));
  expect(page).toMatchObject({ code: "unavailable", message: expect.stringContaining("text/html") as string });
  expect(await failure(client.call("getGroup"))).toMatchObject({
    message: expect.stringContaining("https://elsewhere.example/") as string,
  });
  expect(await failure(client.call("getPattern"))).toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("NaN") as string,
  });
  expect(await failure(client.call("getJob"))).toMatchObject({ code: "unavailable" });
  expect(await failure(client.call("postConfigSet", change))).toMatchObject({ code: "unknown_outcome" });
  expect(requests).toHaveLength(5);
});

test("an answer beyond the bound is not read to its end", async () => {
  const { client } = await clientOf(
    (_request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const more = (): void => void response.write("[".repeat(60_000), more);
      more();
    },
    { maxBytes: 100_000 },
  );
  expect(await failure(client.call("getHost"))).toMatchObject({ code: "too_large", details: { limit: "maxBytes" } });
});

test("digits beyond 2^53 are kept both ways, and numbers that JSON lacks are refused before anything is sent", async () => {
  const { client, requests } = await clientOf((request, response) => {
    let text = "";
    request.on("data", (data: Buffer) => (text += data.toString()));
    request.on("end", () =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(`{"status":"ok","message":${JSON.parse(text).values[0]},"meta":{}}`),
    );
  });
  const body = { mql: "select ?", values: [9007199254740993n] };
  expect(await client.call("postMxobjectMql", { body })).toBe("9007199254740993");
  const refused = failure(client.call("postMxobjectMql", { body: { ...body, values: [Number.NaN] } }));
  expect(await refused).toMatchObject({ code: "invalid", isUndone: true });
  expect(requests).toHaveLength(1);
});

test("a path names what it says: its slashes stay, all else is encoded, and no step leads elsewhere", async () => {
  const { client, requests } = await clientOf((_request, response) => ok(response, ""));
  await client.call("deleteFsByPath", { path: { path: "/a b/c%2Fd/ü?#.txt" } });
  await client.call("getHostByName", { path: { name: "a/b" } });
  expect(requests.map(({ url }) => url)).toEqual(["/fs/a%20b/c%252Fd/%C3%BC%3F%23.txt", "/host/a%2Fb"]);
  for (const path of ["", "/", "../host/web-1", "a/./b", "a/..", "\ud800"])
    expect(await failure(client.call("deleteFsByPath", { path: { path } }))).toMatchObject({ code: "invalid" });
  expect(requests).toHaveLength(2);
});

test("credentials are sent as controllers read them, and an address with others is refused", async () => {
  const { requests, url } = await clientOf((_request, response) => ok(response, "0123"));
  const signed = new OdpClient({ url, user: "matrix.jürgen", password: "π:€" });
  await signed.call("getHost");
  const [, basic = ""] = requests[0]?.headers.authorization?.split(" ") ?? [];
  expect(Buffer.from(basic, "base64").toString("utf8")).toBe("matrix.jürgen:π:€");
  expect(() => new OdpClient({ url: "http://u:p@odp.example" })).toThrow("user name");
  expect(() => new OdpClient({ url: "odp.example" })).toThrow("no address");
  expect(() => new OdpClient({ url, token: "t", user: "u", password: "p" })).toThrow("Give one");
  const person = new OdpClient({ url: `${url}/behind/a/proxy/` });
  await person.signIn({ username: "ann", password: "p" });
  await person.call("getHost");
  expect(requests.at(-1)).toMatchObject({ url: "/behind/a/proxy/host", headers: { cookie: "matrixSession=0123" } });
});

test("what runs jobs, policies or deployments is not repeated after any answer", async () => {
  const { client, requests } = await clientOf((_request, response) => send(response, 503, problem("unavailable")));
  await failure(client.call("postJobRetryByRunid", { path: { runid: "r" } }));
  await failure(
    client.call("postMonitoringPolicyDeployByName", { path: { name: "p" }, body: { host: ["h"] } } as never),
  );
  await failure(
    client.call("postMonitoringPolicyUndeployByName", { path: { name: "p" }, body: { host: ["h"] } } as never),
  );
  expect(requests).toHaveLength(3);
});

test("what a platform would not send is refused before anything is sent", async () => {
  const { client, requests, url } = await clientOf((_request, response) => ok(response, []));
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  const invalid = { code: "invalid", isUndone: true };
  expect(await failure(new OdpClient({ url, token: "€" }).call("getHost"))).toMatchObject(invalid);
  expect(await failure(client.call("postHost", { body: circle as never }))).toMatchObject(invalid);
  expect(await failure(client.call("getConfigGet", { query: { key: "/\ud800" } }))).toMatchObject(invalid);
  for (const address of [`${url}/?`, `${url}/#`]) expect(() => new OdpClient({ url: address })).toThrow(OdpError);
  expect(await new OdpClient({ url: `${url}/ `, token: "t" }).call("getHost")).toEqual([]);
  expect(requests).toHaveLength(1);
});

test("ten calls that succeed give back one repetition", async () => {
  let fails = true;
  const { client, requests } = await clientOf((_request, response) =>
    fails ? send(response, 503, problem("unavailable")) : ok(response, []),
  );
  await Promise.all(Array.from({ length: 20 }, () => failure(client.call("getHost"))));
  fails = false;
  for (let made = 0; made < 10; made++) await client.call("getHost");
  fails = true;
  requests.length = 0;
  await failure(client.call("getHost"));
  expect(requests).toHaveLength(2);
});
