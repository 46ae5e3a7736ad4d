import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { HostObjects, type ScriptHost } from "./index.ts";
import type { Value } from "../../common/value.ts";
import { NotificationHub } from "../areas/notifications/index.ts";
import type { Principal } from "../areas/permissions/index.ts";
import { bundle } from "../../test/helpers/programs/bundle.ts";
import { testPrincipal } from "../../test/helpers/time/runtime.ts";
import { openWorld, type World } from "../../test/security/world.ts";

/** Calls made by the scripts of these tests: function name to the arguments of its last call. */
const called = new Map<string, readonly Value[]>();
const reached: { hosts?: HostObjects } = {};
let world: World;
let admin: string;

beforeAll(async () => {
  recordCalls();
  const file = await bundle(join(import.meta.dirname, "../script-worker.ts"), `scripts/hosts-${process.pid}.mjs`);
  world = await openWorld({ scripts: pathToFileURL(file), outboundNetworks: ["127.0.0.2/32"] });
  admin = await world.signIn();
});
afterAll(async () => {
  vi.restoreAllMocks();
  await world[Symbol.asyncDispose]();
});

function recordCalls(): void {
  const bind = HostObjects.prototype.bind;
  vi.spyOn(HostObjects.prototype, "bind").mockImplementation(function (this: HostObjects, run) {
    reached.hosts = this;
    const host = bind.call(this, run);
    return {
      ...host,
      call(call) {
        called.set(call.name, call.args);
        return host.call(call);
      },
    };
  });
}

interface Answer {
  readonly status: string;
  readonly message: unknown;
  readonly code?: string;
}

async function run(payload: string): Promise<Answer> {
  const url = `/script/exec/js?sessionid=${admin}`;
  return (
    await world.app.inject({ method: "POST", url, headers: { "content-type": "text/plain" }, payload })
  ).json<Answer>();
}

function allHosts(): HostObjects {
  if (!reached.hosts) throw new Error("No script ran.");
  return reached.hosts;
}

function hostOf(principal: Principal): ScriptHost {
  return allHosts().bind({
    principal,
    kind: "serverjs",
    log: () => {},
    beforeChange: () => Promise.resolve(),
    load: () => Promise.reject(new Error("nothing is required")),
  });
}

/** Functions that return data of the script or of its user, or nothing. */
const OPEN_TO_ALL = ["odb.refresh", "perm.ui", "webcontext.user", "webcontext.writeOperLog"];
/** Functions that do nothing for any caller. */
const REFUSED = [
  "aialg.cafp",
  "nlp.answer",
  "nlp.update",
  "perm.set",
  "zabbix.deploy",
  "zabbix.restart",
  "zabbix.start",
  "zabbix.stop",
  "zabbix.undeploy",
];

test("every function runs as its example says, and whoever has no rights cannot do by it what he may not", async () => {
  await run("OUTPUT = 1");
  const functions = allHosts().described("serverjs");
  for (const { name, example } of functions) {
    const { status, message } = await run(example);
    expect([name, status, status === "ok" ? "" : message]).toEqual([name, "ok", ""]);
  }
  expect(functions.filter(({ name }) => !called.has(name))).toEqual([]);

  const host = hostOf({ ...testPrincipal("viewer"), user: "nobody", grants: ["scripts:read"], data: [] });
  const { signal } = new AbortController();
  const open: string[] = [];
  const refused: string[] = [];
  const written = world.written();
  for (const { name } of functions) {
    const code = await host.call({ name, args: called.get(name) ?? [], signal }).then(
      () => "open",
      (error: unknown) => (error as { readonly code?: string }).code,
    );
    if (code === "unsupported") refused.push(name);
    else if (code !== "denied") open.push(name);
  }
  expect(open.filter((name) => !name.startsWith("log."))).toEqual(OPEN_TO_ALL);
  expect(refused).toEqual(REFUSED);
  expect(world.written()).toBe(written);
});

test("what is refused by name says which name, and why", async () => {
  for (const name of REFUSED) {
    const answer = await run(`OUTPUT = 1;\n  ${name}("x", ["y"])`);
    expect(answer).toMatchObject({ status: "error", code: "unsupported" });
    expect(answer.message).toMatch(new RegExp(`^/inline\\.js:2:\\d+: ${name} is not offered: .+`));
  }
});

test("etcd is the configuration by another name: below the ospace, with its rights, versions and audit entry", async () => {
  const text = `etcd.set("/matrix/by/etcd", "1"); config.set("/matrix/by/config", "2");
    OUTPUT = [config.get("/matrix/by/etcd").value, _.pluck(etcd.get("/matrix/by").nodes, "value").sort(), etcd["delete"]("/matrix/by")]`;
  expect((await run(text)).message).toEqual(["1", ["1", "2"], 2]);
  for (const key of ["/second/x", "/matrix", "/", "/matrix/../second/x"])
    expect(await run(`etcd.set("${key}", "1")`)).toMatchObject({ status: "error", code: "invalid" });
  const { message } = await run('OUTPUT = _.pluck(odb.mql("SELECT action FROM /matrix/system/audit").data, "action")');
  expect(message).toContain("SCRIPT /inline.js config.set etcd.delete etcd.set");
});

test("nats is message by another name", async () => {
  const sent: unknown[] = [];
  const publish = vi.spyOn(NotificationHub.prototype, "publish").mockImplementation((...of) => void sent.push(of));
  try {
    expect((await run('nats.send("a", "news", "c", { n: 1 }); message.send("a", "news", "c", { n: 1 })')).status).toBe(
      "ok",
    );
    expect(sent).toHaveLength(2);
    expect(sent[0]).toEqual(sent[1]);
    expect(await run('nats.send("a", "datachange", "c", "forged")')).toMatchObject({ code: "invalid" });
  } finally {
    publish.mockRestore();
  }
});

test("an argument that does not fit is refused where it is given, with file, line and column", async () => {
  const cases = [
    ["odb.getid('x')", "odb.getid: object must be object."],
    ["job.define({ name: 'x' })", "The object must have required properties exec."],
    ["job.execute('x', {}, 'soon')", "job.execute: timeout must be integer."],
    ["consolelog.read('none', '/x.js')", "consolelog.read: kind"],
    [
      "policy.save({ name: 'x', rule: '/matrix/rules/x', command: 'date', ctype: 7, interval: 1, unit: 'day' })",
      "ctype must be <= 1.",
    ],
    ["rule.create({ class: '/matrix/x', type: 'xml' })", "type must be"],
    ["job.setcontext('a', 'b', 'c\\ud800', 60)", "job.setcontext: value has a lone surrogate"],
    ["job.define({ name: 'x', exec: ['a\\ud800'] })", "exec has a lone surrogate"],
  ] as const;
  for (const [text, expected] of cases) {
    const answer = await run(`OUTPUT = 1;\n  ${text}`);
    expect(answer).toMatchObject({ status: "error", code: "invalid", message: expect.stringContaining(expected) });
    expect(answer.message).toContain("/inline.js:2:");
  }
});

test("what hangs on a member that no interface names is left out, as over HTTP", async () => {
  const text = 'OUTPUT = job.define({ name: "named", exec: ["date"], creator: "somebody", system: true })';
  expect((await run(text)).message).toMatchObject({ creator: "admin", system: false, timeout: expect.any(Number) });
});

test("odb tells classes, fields and ids as they are", async () => {
  await run('odb.mql("CREATE CLASS /matrix/known (key varchar, n int, keys(key))")');
  const text = `odb.refresh(); var cid = odb.getclassid("/matrix/known");
    OUTPUT = [odb.classlist(1).some(function (c) { return c.cid === cid; }), odb.classlist("/matrix/known")[0].keys,
      _.pluck(odb.classfields(cid), "name").slice(-2), odb.fieldtypes()["enum"].btype,
      odb.getid({ class: "/matrix/known", id: "b" })]`;
  expect((await run(text)).message).toEqual([true, ["key"], ["key", "n"], "smallint", "known:b"]);
  const keyed = `odb.mql("INSERT INTO /matrix/known (key, n) VALUES ('a', 1)");
    OUTPUT = odb.mql("SELECT id FROM /matrix/known").data[0].id === odb.getid({ CLASS: "x", class: "/matrix/known", key: "a" })`;
  expect((await run(keyed)).message).toBe(true);
  expect((await run('odb.getid({ class: "/matrix/known" })')).message).toContain("getid needs the id or the keys key");
});

test("a member that is not known is told in the console log of the script, with the nearest name", async () => {
  const long = "x".repeat(300);
  const text = `job.define({ name: "typos", exec: ["date"], desciption: "told", ${long}: 1 }); job.delete("typos")`;
  expect((await run(text)).status).toBe("ok");
  const read = 'consolelog.read("serverjs", "/inline.js", { levels: ["warn"], lmit: 1 })';
  expect((await run(`OUTPUT = _.last(_.pluck(${read}.logs, "msg"), 2)`)).message).toEqual([
    "desciption is not known here and was ignored; did you mean description?",
    `${"x".repeat(64)}… is not known here and was ignored.`,
  ]);
});

test("a run leaves one entry in the audit trail, whatever it changed by how many calls", async () => {
  const text = `rule.put("/matrix/rules/told", "--class=/matrix/consolelog/rule\\n--parser=text\\n--fields=msg");
    job.define({ name: "told", exec: ["date"] }); job.delete("told"); rule.delete("/matrix/rules/told")`;
  expect((await run(text)).status).toBe("ok");
  const { message } = await run('OUTPUT = _.pluck(odb.mql("SELECT action FROM /matrix/system/audit").data, "action")');
  const told = (message as readonly string[]).filter((action) => action.includes("job.delete rule.delete"));
  expect(told).toEqual(["SCRIPT /inline.js job.define job.delete rule.delete rule.put"]);
});

test("http sends what a script gives and calls back with the answer, or with what is closed", async () => {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part: Buffer) => (body += part.toString()));
    request.on("end", () => {
      seen.push(`${request.method} ${request.url} ${request.headers["content-type"] ?? ""} ${body}`.trim());
      response.end(`answer ${seen.length}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.2", resolve));
  try {
    const url = `http://127.0.0.2:${(server.address() as AddressInfo).port}/x`;
    const text = `var told = []; function ok(answer) { told.push(answer.data); } function no(error) { told.push(error.code); }
      http.get("${url}?a=1", { b: [2, "ü"] }, ok, no); http["delete"]("${url}", null, ok, no);
      http.post("${url}", { name: ["one", "two"] }, ok, no); http.putjson("${url}", { n: 1 }, ok, no);
      http["do"]("PATCH", "${url}", { "content-type": "text/plain" }, "text", ok, no);
      http.get("${url}".replace("127.0.0.2", "127.0.0.1"), {}, ok, no); OUTPUT = told`;
    const told = ["answer 1", "answer 2", "answer 3", "answer 4", "answer 5", "denied"];
    expect((await run(text)).message).toEqual(told);
    expect(seen).toEqual([
      "GET /x?a=1&b=2&b=%C3%BC",
      "DELETE /x",
      "POST /x application/x-www-form-urlencoded name=one&name=two",
      'PUT /x application/json {"n":1}',
      "PATCH /x text/plain text",
    ]);
    const closed = await run(`\nhttp.get("http://127.0.0.1/")`);
    expect(closed).toMatchObject({ code: "denied", message: expect.stringContaining("outbound_networks") });
    expect(closed.message).toContain("/inline.js:2:");
  } finally {
    server.close();
  }
});
