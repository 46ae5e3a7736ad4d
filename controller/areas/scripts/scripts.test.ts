import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { InjectOptions } from "fastify";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { SCRIPT_THREADS } from "../../../common/limits.ts";
import { bundle } from "../../../test/helpers/programs/bundle.ts";
import { PASSWORD } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { openWorld, type World } from "../../../test/security/world.ts";
import { ThreadScripts } from "../../scripting/index.ts";

let world: World;
let admin: string;

beforeAll(async () => {
  const file = await bundle(join(import.meta.dirname, "../../script-worker.ts"), `scripts/area-${process.pid}.mjs`);
  world = await openWorld({ scripts: pathToFileURL(file) });
  const { tenants, users } = world.assembly;
  await tenants.ensureTenant({ name: "second", ospace: "/second" });
  await users.operator.ensureAdministrator({ tenant: "second", username: "admin", password: PASSWORD });
  const viewer = { username: "viewer", password: PASSWORD, rights: { role: "viewer" } } as const;
  await users.create(testPrincipal("administrator"), viewer);
  admin = await world.signIn();
});
afterAll(() => world[Symbol.asyncDispose]());

interface Answer {
  readonly status: string;
  readonly message: unknown;
  readonly code?: string;
  readonly details?: unknown;
  readonly logs?: unknown;
}

const EXEC = "/script/exec/js";

async function call(options: InjectOptions & { readonly url: string }, session = admin): Promise<Answer> {
  const url = `${options.url}${options.url.includes("?") ? "&" : "?"}sessionid=${session}`;
  return (await world.app.inject({ method: "GET", ...options, url })).json();
}

const run = (text: string, session = admin): Promise<Answer> =>
  call({ method: "POST", url: EXEC, headers: { "content-type": "text/plain" }, payload: text }, session);

async function put(path: string, text: string): Promise<void> {
  const answer = await call({ method: "PUT", url: `/fs${path}`, payload: { data: text } });
  expect(answer.status).toBe("ok");
}

async function putSystem(path: string, text: string, session = admin): Promise<void> {
  const answer = await call({ method: "PUT", url: `/fs${path}?issys=true`, payload: { data: text } }, session);
  expect(answer.status).toBe("ok");
}

async function signIn(username: string, company: string): Promise<string> {
  const signedIn = await world.assembly.users.signIn({
    company,
    username,
    password: PASSWORD,
    remote: "test",
    traceparent: "",
  });
  return signedIn.session;
}

function multipart(fields: Readonly<Record<string, string>>) {
  const parts = Object.entries(fields).map(
    ([name, value]) => `--x\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  return { headers: { "content-type": "multipart/form-data; boundary=x" }, payload: `${parts.join("")}--x--\r\n` };
}

describe("each way in which clients call", () => {
  const file = `${EXEC}?filepath=/ns/echo.js`;
  const input = encodeURIComponent('{"a":"ü b"}');
  const text = { "content-type": "text/plain" };
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const json = { "content-type": "application/json;charset=utf-8" };
  beforeAll(() => put("/script/ns/echo.js", "OUTPUT = [typeof INPUT, decodeURIComponent(INPUT), input]"));

  // Clients encode the input once more than the form does; the script decodes it.
  const once = encodeURIComponent(input);
  const WAYS: readonly (readonly [string, InjectOptions & { readonly url: string }])[] = [
    ["query", { url: `${file}&input=${once}&isfile=true` }],
    ["multipart", { method: "POST", url: file, ...multipart({ input, isfile: "true" }) }],
    ["form", { method: "POST", url: file, headers: form, payload: `input=${once}&isfile=true` }],
    ["query and an empty body", { method: "POST", url: `${file}&input=${once}`, headers: form, payload: "" }],
    ["filepath in a form", { method: "POST", url: EXEC, headers: form, payload: `filepath=/ns/echo.js&input=${once}` }],
    [
      "path as body",
      { method: "POST", url: `${EXEC}?input=${once}&isfile=true`, headers: text, payload: "/ns/echo.js" },
    ],
    ["path as body, not said", { method: "POST", url: `${EXEC}?input=${once}`, headers: text, payload: "/ns/echo.js" }],
    ["path below /script", { url: `${EXEC}?filepath=/script/ns/echo.js&input=${once}` }],
  ];
  test.each(WAYS)("%s", async (_way, options) => {
    expect(await call(options)).toEqual({ status: "ok", message: ["string", '{"a":"ü b"}', input] });
  });

  test("JSON with an object as input", async () => {
    const payload = JSON.stringify({ input: { a: [1] }, filepath: "/ns/echo.js" });
    const answer = await call({ method: "POST", url: EXEC, headers: json, payload });
    expect(answer.message).toEqual(["string", '{"a":[1]}', { a: [1] }]);
  });

  test("source as body, under whatever type, with the word null as input", async () => {
    for (const headers of [text, json, form]) {
      const payload = "var x = 1;\nOUTPUT = [x + 1, INPUT]";
      const answer = await call({ method: "POST", url: `${EXEC}?input=null`, headers, payload });
      expect(answer).toEqual({ status: "ok", message: [2, ""] });
    }
  });

  test("Basic credentials, and the bare result", async () => {
    const authorization = `Basic ${Buffer.from(`matrix.admin:${PASSWORD}`).toString("base64")}`;
    const answer = await world.app.inject({ url: `${file}&input=1&rawdata=true`, headers: { authorization } });
    expect(answer.headers["content-type"]).toContain("application/json");
    expect(answer.json()).toEqual(["string", "1", "1"]);
  });

  test("the system's file space, named or not", async () => {
    await putSystem("/script/ns/system.js", "OUTPUT = 'system'");
    for (const query of ["&issys=true", "&issys=false", ""])
      expect((await call({ url: `${EXEC}?filepath=/ns/system.js${query}` })).message).toBe("system");
    await put("/script/ns/system.js", "OUTPUT = 'user'");
    expect((await call({ url: `${EXEC}?filepath=/ns/system.js` })).message).toBe("user");
    expect((await call({ url: `${EXEC}?filepath=/ns/system.js&issys=true` })).message).toBe("system");
    expect((await call({ url: `${EXEC}?filepath=/ns/echo.js&issys=true` })).code).toBe("not_found");
  });

  test("nothing to run, a file that is not there, a path that leaves", async () => {
    expect((await call({ url: EXEC })).code).toBe("invalid");
    expect((await call({ url: `${EXEC}?filepath=/ns/none.js` })).code).toBe("not_found");
    expect((await call({ url: `${EXEC}?filepath=/../../etc/passwd` })).status).toBe("error");
  });
});

test("functions are listed with and without /api, by name, with what they take", async () => {
  const { message } = await call({ url: "/rule/funcs" });
  expect((await call({ url: "/api/rule/funcs" })).message).toEqual(message);
  expect(message).toContainEqual(
    expect.objectContaining({
      name: "odb.mql",
      parameters: [expect.objectContaining({ name: "text", type: "string" }), expect.objectContaining({ list: true })],
    }),
  );
});

/** A loaded machine starts threads slowly, so only the test's own timeout detects a script that never ends. */
function unhurried() {
  const { run: runs } = ThreadScripts.prototype;
  return vi.spyOn(ThreadScripts.prototype, "run").mockImplementation(function (this: ThreadScripts, one, host) {
    return runs.call(this, { ...one, timeoutMs: 600_000 }, host);
  });
}

test("more scripts than threads, each of which waits for a trigger in JavaScript that itself asks MQL, all come through", async () => {
  await run('odb.mql("CREATE CLASS /matrix/numbered (key varchar, n int, keys(key))")');
  const script = 'OBJECT.n = odb.mql("SELECT key FROM /matrix/numbered LIMIT 100").data.length + 1';
  const trigger = { class: "/matrix/numbered", name: "asks", script, attr: { before: "true", language: "javascript" } };
  expect((await call({ method: "PUT", url: "/mxobject/trigger", payload: trigger })).status).toBe("ok");
  const keys = Array.from({ length: 3 * SCRIPT_THREADS }, (_, at) => `k${at}`);
  const insert = (key: string) =>
    run(`odb.mql("INSERT INTO /matrix/numbered (key) VALUES (?)", "${key}"); OUTPUT = "${key}"`);
  const patience = unhurried();
  const answers = await Promise.all(keys.map(insert));
  patience.mockRestore();
  expect(answers).toEqual(keys.map((message) => ({ status: "ok", message })));
  const { message } = await run('OUTPUT = odb.mql("SELECT key, n FROM /matrix/numbered WHERE n > 0 LIMIT 100").data');
  expect((message as readonly { readonly key: string }[]).map(({ key }) => key).sort()).toEqual([...keys].sort());
}, 600_000);

test("what Lua finds besides host objects is listed for triggers and rules, and is not to be called by a host call", async () => {
  const libraries = ["csv.parse", "json.string", "strings.split", "time.parse"];
  for (const kind of ["rule", "trigger"]) {
    const { message } = await call({ url: `/${kind}/funcs` });
    const listed = message as readonly { readonly name: string; readonly language?: string }[];
    const ofLua = listed.filter(({ language }) => language === "lua").map(({ name }) => name);
    expect(ofLua).toEqual(expect.arrayContaining(libraries));
    expect(listed.filter(({ language }) => language === undefined).map(({ name }) => name)).toContain("odb.mql");
  }
  expect(await run("concurrent.run('time.parse', [['1', 'y']])")).toMatchObject({ code: "unsupported" });
  expect((await run("OUTPUT = [typeof time, typeof csv]")).message).toEqual(["undefined", "undefined"]);
});

test("arguments are checked before anything is done", async () => {
  expect(await run("odb.mql(1)")).toMatchObject({ status: "error", code: "invalid" });
  expect(await run("var s = '\u{1F600}';\r\n\todb.mql('select\\n  keey from /matrix/numbered')")).toMatchObject({
    message: "/inline.js:2:6: Field keey Not Exist; did you mean key? (line 2 column 3)",
    details: { file: "/inline.js", line: 2, column: 6, within: { line: 2, column: 3 }, nearest: "key" },
  });
  expect((await run("odb.mql()")).message).toContain("odb.mql needs text.");
  expect((await run("log.nothing(1)")).status).toBe("error");
  expect((await run("message.send('s', 'datachange', 't', 'forged')")).code).toBe("invalid");
});

test("odb answers data and meta; values take the place of ?; what is thrown can be caught", async () => {
  await run('odb.mql("CREATE CLASS /matrix/box (key varchar, n int, keys(key))")');
  const insert = 'for (var i = 0; i < 3; i++) odb.mql("INSERT INTO /matrix/box (key, n) VALUES (?, ?)", "b" + i, i);';
  const read = 'var r = odb.mql("SELECT n FROM /matrix/box WHERE n > ?", 0);';
  const answer = await run(`${insert} ${read} OUTPUT = { n: _.pluck(r.data, "n").sort(), type: r.meta.type }`);
  expect(answer.message).toEqual({ n: [1, 2], type: "select" });
  expect((await run('try { odb.mql("SELEC") } catch (e) { OUTPUT = e.code }')).message).toBe("syntax");
});

test("scripts share files, by path or from where they lie", async () => {
  await put("/script/lib/a.js", "exports.b = require('./b').value + 1");
  await put("/script/lib/b.js", "exports.value = 1");
  expect((await run("OUTPUT = require('/lib/a.js').b")).message).toBe(2);
  await putSystem("/script/lib/system.js", "exports.value = require('./b').value + 'system'");
  await putSystem("/script/lib/b.js", "exports.value = 'of '");
  expect((await run("OUTPUT = require('/lib/system').value")).message).toBe("1system");
  await putSystem("/script/lib/run.js", "OUTPUT = require('./system').value + require('./a').b");
  expect((await call({ url: `${EXEC}?filepath=/lib/run.js&issys=true` })).message).toBe("of systemof 1");
  const missing = await run("\nrequire('/lib/none.js')");
  expect(missing).toMatchObject({ code: "not_found", message: expect.stringContaining("/inline.js:2:") });
});

test("a script is closed to whom no grant of a path opens it", async () => {
  const plain = { username: "plain", password: PASSWORD, rights: { role: "viewer" } } as const;
  await world.assembly.users.create(testPrincipal("administrator"), plain);
  const session = await signIn("plain", "matrix");
  await put("/script/ns/closed.js", "OUTPUT = 1");
  const closed = { code: "denied", message: expect.stringContaining("/script/ns/closed.js") };
  expect(await call({ url: `${EXEC}?filepath=/ns/closed.js` }, session)).toMatchObject(closed);
  expect((await run("OUTPUT = 1", session)).code).toBe("denied");
  await putSystem("/script/ns/opened.js", "OUTPUT = 'opened by ' + webcontext.user().username");
  await putSystem("/script/ns/kept.js", "OUTPUT = 1");
  const payload = { name: "opened", path: ["/script/ns/opened.js"] };
  await call({ method: "POST", url: "/admin/perms/api", payload });
  await call({ method: "PUT", url: "/admin/perms/api/opened/group", payload: { group: ["/everyone"] } });
  expect((await call({ url: `${EXEC}?filepath=/ns/opened.js` }, session)).message).toBe("opened by plain");
  expect((await call({ url: `${EXEC}?filepath=/ns/opened.js&issys=true` }, session)).code).toBe("denied");
  expect((await call({ url: `${EXEC}?filepath=/ns/kept.js` }, session)).code).toBe("denied");
  await call({ method: "POST", url: "/job", payload: { name: "opened", exec: ["serverjs /ns/opened.js"] } });
  const { message } = await call({ url: "/job/exec/opened?receive_output=true" });
  expect(JSON.stringify(message)).toContain("opened by admin");
  expect((await call({ url: `${EXEC}?filepath=/matrix/user/signedUser.js` }, session)).message).toMatchObject({
    username: "plain",
    isadmin: false,
  });
});

test("a script has the rights of its caller", async () => {
  await call({ method: "POST", url: "/admin/perms/api", payload: { name: "all", path: ["/script"] } });
  await call({ method: "PUT", url: "/admin/perms/api/all/group", payload: { group: ["/everyone"] } });
  const viewer = await signIn("viewer", "matrix");
  const insert = "odb.mql(\"INSERT INTO /matrix/box (key, n) VALUES ('v', 1)\")";
  expect((await run(insert, viewer)).code).toBe("denied");
  expect((await run("dfs.write('/tmp/v.txt', 'x')", viewer)).code).toBe("denied");
  expect((await run("message.send('a', 'b', 'c', 'd')", viewer)).code).toBe("denied");
  expect((await run("OUTPUT = webcontext.user().username", viewer)).message).toBe("viewer");
  const trail = "OUTPUT = odb.mql('SELECT id FROM /matrix/system/audit LIMIT 1').data.length";
  expect((await run(trail, viewer)).message).toBe(1);
  const rights = { grants: ["objects:read"], data: [{ class: "/", access: "read" as const }] };
  await world.assembly.users.create(testPrincipal("administrator"), { username: "few", password: PASSWORD, rights });
  const denied = { code: "denied", message: expect.stringContaining("the permission audit:read") };
  expect(await run(trail, await signIn("few", "matrix"))).toMatchObject(denied);
});

test("the four start-up scripts are in every tenant, and a tenant's own take their place", async () => {
  const second = await signIn("admin", "second");
  for (const session of [admin, second]) {
    const answers = await Promise.all(
      ["user/signedUser", "utils/global", "lang/getLangList", "system/getAppNameByUrl"].map((name) =>
        call({ url: `${EXEC}?filepath=/matrix/${name}.js&input=%7B%22url%22%3A%22%2Fa%22%7D` }, session),
      ),
    );
    const ospace = session === admin ? "/matrix" : "/second";
    expect(answers.map(({ message }) => message)).toEqual([
      expect.objectContaining({ username: "admin", isadmin: true, Company: expect.objectContaining({ ospace }) }),
      { register: { consolelog: { level: expect.objectContaining({ 4: ["error", "error"] }) } } },
      [{ name: "en", title: "English" }],
      "",
    ]);
  }
  const own = {
    method: "PUT",
    url: "/fs/script/second/lang/getLangList.js",
    payload: { data: "OUTPUT = 'own'" },
  } as const;
  await call(own, second);
  expect((await call({ url: `${EXEC}?filepath=/matrix/lang/getLangList.js` }, second)).message).toBe("own");
  for (const below of ["second", "matrix"]) {
    await putSystem(`/script/${below}/lang/getLangList.js`, `OUTPUT = 'system ${below}'`, second);
    const answer = await call({ url: `${EXEC}?filepath=/matrix/lang/getLangList.js` }, second);
    expect(answer.message).toBe(`system ${below}`);
  }
  expect((await call({ url: `${EXEC}?filepath=/matrix/lang/getLangList.js` })).message).not.toBe("own");
});

test("what a script says, and its failure, stand in its console log in their order", async () => {
  await put("/script/ns/talks.js", "log.info('one', { two: 2 });\n  log.warn('three');\nmissing()");
  const failed = await call({ url: `${EXEC}?filepath=/ns/talks.js` });
  expect(failed).toMatchObject({ status: "error", message: expect.stringContaining("/ns/talks.js:3:1") });
  const answer = await call({ url: "/consolelog/serverjs?name=/ns/talks.js" });
  const { logs } = answer.message as { logs: readonly { readonly level: number; readonly msg: string }[] };
  expect(logs.map(({ level, msg }) => [level, msg])).toEqual([
    [2, '/ns/talks.js:1:4: one {"two":2}'],
    [3, "/ns/talks.js:2:7: three"],
    [4, expect.stringContaining("'missing' is not defined")],
  ]);
});

test("a run that changed something leaves one audit entry, others none", async () => {
  const entries = async (): Promise<readonly string[]> => {
    const { message } = await run('OUTPUT = odb.mql("SELECT action FROM /matrix/system/audit").data');
    return (message as readonly { readonly action: string }[])
      .map(({ action }) => action)
      .filter((action) => action.startsWith("SCRIPT /"));
  };
  const before = (await entries()).length;
  await run("OUTPUT = appcontext.rawget('audited')");
  await run("appcontext.rawset('audited', '1'); appcontext.rawset('audited', '2'); dfs.write('/tmp/a.txt', 'x')");
  await run("appcontext.rawset('audited', '3'); fails()");
  const after = await entries();
  expect(after).toHaveLength(before + 2);
  expect(after).toContain("SCRIPT /inline.js appcontext.rawset dfs.write");
});

test("a trigger that wrote a file leaves an entry of its own, besides that of the call", async () => {
  await run('odb.mql("CREATE CLASS IF NOT EXISTS /matrix/writing (name varchar, keys(name))")');
  const payload = {
    class: "/matrix/writing",
    name: "note",
    script: 'dfs.write("/tmp/noted.txt", OBJECT.name)',
    attr: { before: "true" },
  };
  expect((await call({ method: "PUT", url: "/mxobject/trigger", payload })).status).toBe("ok");
  expect((await run(`odb.mql("INSERT INTO /matrix/writing name='a'")`)).status).toBe("ok");
  const { message } = await run('OUTPUT = odb.mql("SELECT action FROM /matrix/system/audit").data');
  const actions = (message as readonly { readonly action: string }[]).map(({ action }) => action);
  expect(actions.filter((action) => action.startsWith("TRIGGER "))).toEqual(["TRIGGER /matrix/writing#note dfs.write"]);
});

test("a page of another site runs no script by a browser's cookie", async () => {
  const get = (headers: Record<string, string>) =>
    world.app.inject({
      url: `${EXEC}?filepath=/matrix/lang/getLangList.js`,
      headers: { cookie: `matrixSession=${admin}`, "user-agent": "Mozilla/5.0", ...headers },
    });
  expect((await get({})).json()).toMatchObject({ status: "error", code: "denied" });
  expect((await get({ "sec-fetch-site": "cross-site" })).json()).toMatchObject({ code: "denied" });
  expect((await get({ "sec-fetch-site": "same-origin" })).json()).toMatchObject({ status: "ok" });
});

test("an answer of 16 MiB passes", async () => {
  const { message } = await run("OUTPUT = 'x'.repeat(16 * 1024 * 1024)");
  expect((message as string).length).toBe(16 * 1_024 * 1_024);
});

test("a tenant finds nothing of another", async () => {
  const second = await signIn("admin", "second");
  expect((await call({ url: `${EXEC}?filepath=/ns/echo.js` }, second)).code).toBe("not_found");
  await run("appcontext.rawset('mine', 'secret')");
  expect((await run("OUTPUT = appcontext.rawget('mine')", second)).message).toBe("");
  expect((await run('odb.mql("SELECT * FROM /matrix/box")', second)).status).toBe("error");
});

test("calls of one function go on at once", async () => {
  const answer = await run(
    "OUTPUT = concurrent.run('odb.mql', [['SELECT n FROM /matrix/box'], ['SELECT n FROM /matrix/box']])",
  );
  expect((answer.message as { data: readonly unknown[] }[]).map(({ data }) => data.length)).toEqual([3, 3]);
  expect((await run("concurrent.run('concurrent.run', [['concurrent.run', [['x']]]])")).status).toBe("error");
});
