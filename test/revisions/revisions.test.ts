import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundle } from "../helpers/programs/bundle.ts";
import { openWorld, type World } from "../security/world.ts";
import { KINDS, NEEDS, type Answered, type Change, type Client } from "./kinds.ts";

/** Definitions have revisions: a change with the header `If-Match` is made on the revision that its caller has read. */

let world: World;
let session: string;
let names = 0;

beforeAll(async () => {
  const worker = join(import.meta.dirname, "../../controller/script-worker.ts");
  // Triggers are checked by the engine that runs them.
  world = await openWorld({ scripts: pathToFileURL(await bundle(worker, `scripts/revisions-${process.pid}.mjs`)) });
  session = await world.signIn();
  for (const need of NEEDS) await client.change(need);
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
});

interface Sent {
  readonly status: number;
  readonly envelope: Readonly<Record<string, unknown>>;
  readonly tag: string | undefined;
}

interface Sendable extends Omit<Change, "method"> {
  readonly method: Change["method"] | "GET";
}

async function send({ method, url, ...body }: Sendable, headers: Readonly<Record<string, string>> = {}): Promise<Sent> {
  const { type, payload } = await bodyOf(body);
  const answer = await world.app.inject({
    method,
    url: `${url}${url.includes("?") ? "&" : "?"}sessionid=${session}`,
    headers: { ...(type !== undefined && { "content-type": type }), ...headers },
    ...(payload !== undefined && { payload }),
  });
  const tag = answer.headers["etag"]?.replace(/^(?:W\/)?"|"$/g, "");
  return { status: answer.statusCode, envelope: answer.json(), tag };
}

async function bodyOf({ json, form, parts }: Omit<Change, "method" | "url">) {
  if (json !== undefined) return { type: "application/json", payload: JSON.stringify(json) };
  if (form !== undefined)
    return {
      type: "application/x-www-form-urlencoded",
      payload: new URLSearchParams(form as Readonly<Record<string, string>>).toString(),
    };
  if (parts === undefined) return {};
  const data = new FormData();
  for (const [name, value] of Object.entries(parts))
    if (typeof value === "string") data.append(name, value);
    else if (value !== undefined) data.append(name, new File([value[1]], value[0]));
  const request = new Response(data);
  const payload = Buffer.from(await request.arrayBuffer());
  return { type: request.headers.get("content-type") ?? "", payload };
}

const client: Client = {
  async get(url) {
    return okOf(await send({ method: "GET" as "POST", url }));
  },
  async change(change, headers) {
    return okOf(await send(change, headers));
  },
};

function okOf({ envelope, tag }: Sent): Answered {
  expect(envelope).toMatchObject({ status: "ok" });
  return { message: envelope["message"], tag };
}

function endpointOf({ method, url, path = url }: Change): string {
  return `${method} ${path.replace(/\?.*/, "")}`;
}

describe.each(KINDS)("$kind", ({ make, makesNewOnly, isSingle, changes, revision, revisionAfter }) => {
  /** The definition of a new name, and one of its changes by its number. */
  async function made(at = 0): Promise<{ readonly name: string; readonly change: Change; readonly now: string }> {
    const name = `r${names++}`;
    const isThere = isSingle && (await revision(name, client).catch(() => undefined));
    if (!isThere) await client.change(make(name));
    const change = (await changes(name, client))[at]!;
    return { name, change, now: await revision(name, client) };
  }

  test("is made only if it is not there, if its caller wants that", async () => {
    const absent = make(`r${names++}`);
    if (!isSingle) await client.change(absent, { "if-none-match": "*" });
    const { name, now } = await made();
    expect(await send(make(name), { "if-none-match": "*" })).toMatchObject({
      status: 412,
      envelope: { code: "stale" },
    });
    expect(await revision(name, client)).toBe(now);
  });

  test("is not made by a change of a revision", async () => {
    const answer = await send(make(`r${names++}`), { "if-match": '"0123"' });
    if (!isSingle) expect(answer.envelope["message"]).toContain("does not exist");
    expect(answer.status).toBe(412);
  });

  test("is changed by every endpoint on its revision, and on no former one", async () => {
    const { name: first } = await made();
    for (const at of (await changes(first, client)).keys()) {
      const { name, change, now } = await made(at);
      expect(await send(change, { "if-match": '"0123"' }), endpointOf(change)).toMatchObject({
        status: 412,
        envelope: { status: "error", code: "stale", message: expect.stringMatching(/has changed, last by admin at/) },
      });
      expect(await revision(name, client)).toBe(now);
      await client.change(change, { "if-match": `"x", W/"${now}"` });
      const next = await revision(name, client).catch(() => "removed");
      // A new version of a depot leaves the other one as it was.
      if (!change.url.includes("/depot/file")) expect(next, endpointOf(change)).not.toBe(now);
    }
  });

  test("answers of changes tell the revision that a read then tells, so the next change needs no read", async () => {
    const { name: first } = await made();
    for (const at of (await changes(first, client)).keys()) {
      const { name, change, now } = await made(at);
      const { tag } = await client.change(change, { "if-match": `"${now}"` });
      const read = revisionAfter?.(change, client) ?? revision(name, client);
      expect(tag, endpointOf(change)).toBe(await read.catch(() => undefined));
    }
    if (isSingle) return;
    const name = `r${names++}`;
    expect((await client.change(make(name))).tag).toBe(await revision(name, client));
  });

  test("is changed once by calls at the same time on one revision, and the others are told that it has changed", async () => {
    const { name, now } = await made();
    const all = await changes(name, client);
    const answers = await Promise.all([...all, ...all].map((change) => send(change, { "if-match": `"${now}"` })));
    const made200 = answers.filter(({ status }) => status === 200);
    // A file of a depot version makes another version, so the version itself stays as it is.
    const leavesIt = all.filter(({ url }) => url.includes("/depot/file")).length;
    expect(made200.length).toBeGreaterThanOrEqual(1);
    expect(made200.length).toBeLessThanOrEqual(1 + leavesIt);
    for (const { status, envelope } of answers)
      if (status !== 200)
        expect(["stale", "not_found", "conflict"].slice(0, leavesIt > 0 ? 3 : 2)).toContain(envelope["code"]);
  });

  test("is changed as before by callers that expect nothing", async () => {
    const { name } = await made();
    for (const at of (await changes(name, client)).keys()) {
      const { change } = await made(at);
      await client.change(change);
    }
    if (makesNewOnly) expect((await send(make((await made()).name))).envelope).toMatchObject({ code: "conflict" });
  });
});

test("every endpoint that checks revisions is tried here", async () => {
  const tried = new Set<string>();
  for (const { make, changes } of KINDS) {
    const name = `r${names++}`;
    tried.add(endpointOf(make(name)));
    await send(make(name));
    for (const change of await changes(name, client)) tried.add(endpointOf(change));
  }
  const declared = world.assembly.endpoints.filter(({ method, revised }) => revised && method !== "GET");
  expect(declared.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([...tried].sort());
});

test("the page of revisions names every endpoint that has them", async () => {
  const page = await readFile(join(import.meta.dirname, "../../deploy/docs/revisions.md"), "utf8");
  const named = [...page.matchAll(/`([A-Z]+ [^`]+)`/g)].map(([, call]) => call);
  const declared = world.assembly.endpoints
    .filter(({ revised }) => revised)
    .map(({ method, path }) => `${method} ${path}`);
  expect(declared.filter((call) => !named.includes(call))).toEqual([]);
  const changes = named.filter((call) => !call?.startsWith("GET"));
  expect(changes.filter((call) => !declared.includes(call ?? ""))).toEqual([]);
});

test.each([
  ["a list that is none", { "if-match": "abc" }, "invalid"],
  ["an open quote", { "if-match": '"a' }, "invalid"],
  ["nothing", { "if-match": " " }, "invalid"],
  ["too many revisions", { "if-match": Array.from({ length: 101 }, () => '"a"').join() }, "too_large"],
  ["a revision that must not be there", { "if-none-match": '"a"' }, "invalid"],
])("a condition with %s is refused", async (_, headers, code) => {
  const answer = await send({ method: "PUT", url: "/job", json: { name: "x", dir: "ops" } }, headers);
  expect(answer.envelope).toMatchObject({ status: "error", code });
});

test("an endpoint that checks no revisions refuses the condition of a change, and does nothing", async () => {
  const change: Change = { method: "POST", url: "/tagdir/told", form: { tagpath: "a" } };
  expect((await send(change, { "if-match": "*" })).envelope).toMatchObject({ code: "unsupported" });
  expect(JSON.stringify((await client.get("/tagdir/told")).message)).not.toContain('"a"');
  expect((await send(change)).envelope).toMatchObject({ status: "ok" });
});

test.each(["GET /job/exec/run@ops", "GET /job/run@ops?param=%7B%7D", "GET /job/run@ops?stream=true"])(
  "%s executes, and so refuses a condition that it would not check",
  async (call) => {
    await client.change({ method: "POST", url: "/job", json: { name: "run", dir: "ops", exec: ["true"] } });
    const { tag } = await client.get("/job/run@ops");
    const expecting = { "if-match": `"${tag}"` };
    const executed = await send({ method: "GET", url: call.slice("GET ".length) }, expecting);
    expect(executed.envelope).toMatchObject({ code: "unsupported" });
    const read = await send({ method: "GET", url: "/job/run@ops" }, expecting);
    expect(read.envelope).toMatchObject({ message: { name: "run" } });
  },
);

test("a revision in a body is not compared, and the answer says so", async () => {
  const change = { name: "told", dir: "ops", exec: ["true"], revision: "0123" };
  const { envelope } = await send({ method: "POST", url: "/job", json: change });
  expect(envelope).toMatchObject({ status: "ok", warnings: [expect.stringContaining("revision")] });
});

test("of several changes on one revision, one is made", async () => {
  await client.change({ method: "POST", url: "/job", json: { name: "race", dir: "ops", exec: ["true"] } });
  const { tag } = await client.get("/job/race@ops");
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, at) =>
      send(
        { method: "PUT", url: "/job", json: { name: "race", dir: "ops", description: String(at) } },
        { "if-match": `"${tag}"` },
      ),
    ),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 7 }, () => 412)]);
});
