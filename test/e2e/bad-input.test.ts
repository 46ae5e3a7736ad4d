import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, test } from "vitest";
import { createKeyPem, createRequest } from "../../agent/identity/csr.ts";
import type { EnrolAnswer } from "../../common/agent/enrolment.ts";
import { tarOf, zipOf, type ArchiveEntry } from "../helpers/runs/archives.ts";
import { BareAgent, enrolRequest, type TestIdentity } from "../helpers/hosts/hosts.ts";
import { eventually, Program } from "../helpers/programs/programs.ts";
import { form, Installation, type Envelope } from "./installation.ts";

/** Every bad input gets an error that names the problem, and changes nothing. */

const LINE_CLASS = "/matrix/bad/line";
const RULE = "/matrix/rules/bad/line";
const GOOD_COMMAND_POLICY = {
  name: "p",
  rule: RULE,
  command: "true",
  ctype: 1,
  interval: 1,
  unit: "second",
  hosts: ["h1"],
};
const GOOD_LOG_POLICY = { name: "l", rule: RULE, dir: "/var/log", match: "x\\.log", hosts: ["h1"] };
const MIB = 1024 * 1024;
const TWO_HOURS_MS = 7_200_000;

/** The controller's clock goes two hours ahead with every SIGUSR2. */
const CLOCK = `const real = Date.now; let ahead = 0; process.on("SIGUSR2", () => { ahead += ${TWO_HOURS_MS}; }); Date.now = () => real() + ahead;`;

let odp: Installation;
let before: unknown;

beforeAll(async () => {
  odp = await Installation.start({
    ODP_STORE: "embedded",
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(CLOCK)}`,
  });
  await odp.mql(`create class ${LINE_CLASS} (text varchar, n int, index(text)) with kind='record'`);
  await odp.ok("PUT", "/mxobject/rule", rule("--parser=text\n--fields=text\n", RULE));
  await odp.ok("POST", "/host", JSON.stringify({ host: "h1", isagent: 1 }));
  await odp.ok(
    "POST",
    "/monitoring/depot",
    form({ name: "good", version: "1.0.0" }, { "run.sh": Buffer.from("#!/bin/sh\n") }),
  );
});

afterAll(async () => {
  await odp.stop();
});

/** Everything stored, as a client sees it. */
async function everything(): Promise<unknown> {
  const lists = ["/host", "/monitoring/depot", "/monitoring/policy", "/job", "/mxobject/rule"].map((path) =>
    odp.ok("GET", path),
  );
  const counted = [LINE_CLASS, "/matrix/system/deployment"].map((path) =>
    odp.mql(`select count(*) from ${path}`).catch(() => []),
  );
  return Promise.all([...lists, ...counted]);
}

function rule(lines: string, key = "/matrix/rules/bad/new"): URLSearchParams {
  return new URLSearchParams({ key, value: lines.includes("--class") ? lines : `--class=${LINE_CLASS}\n${lines}` });
}

interface Failure {
  readonly status: number;
  readonly envelope: Envelope & { readonly error?: string };
}

async function send(method: string, path: string, body?: RequestInit["body"], contentType?: string): Promise<Failure> {
  const address = `${odp.url}${path}${path.includes("?") ? "&" : "?"}sessionid=${await odp.session()}`;
  const headers: Record<string, string> = contentType === undefined ? {} : { "content-type": contentType };
  const response = await fetch(address, {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
    signal: AbortSignal.timeout(30_000),
  });
  return { status: response.status, envelope: (await response.json()) as Failure["envelope"] };
}

function refused(code: string, text: string | RegExp): unknown {
  const message = typeof text === "string" ? expect.stringContaining(text) : expect.stringMatching(text);
  return { status: 500, envelope: { status: "error", code, message, error: message } };
}

type Case = readonly [what: string, body: unknown, code: string, text: string | RegExp];

describe("each refused by name, and nothing is changed", () => {
  beforeEach(async () => {
    before = await everything();
  });
  afterEach(async () => {
    expect(await everything()).toEqual(before);
    expect(
      await eventually("no upload stays", 10_000, async () => ((await uploads()).length === 0 ? "none" : undefined)),
    ).toBe("none");
  });

  const hosts: readonly Case[] = [
    ["no body", undefined, "invalid", "host is missing"],
    ["half a JSON", '{"host":"h', "syntax", "Not valid JSON"],
    ["a list", "[]", "invalid", "host is missing"],
    ["no host", { isagent: 1 }, "invalid", "host is missing"],
    ["a path as name", { host: "../h" }, "invalid", "no host name"],
    ["a NUL in its name", { host: "h\0" }, "invalid", "no host name"],
    ["too long a name", { host: "h".repeat(256) }, "invalid", "host must not have more than 255"],
    ["a flag that is none", { host: "h", isagent: 7 }, "invalid", "isagent"],
    ["a text for config", { host: "h", config: "x" }, "invalid", "config must be object"],
    ["a port that is none", { host: "h", config: { port: 99_999 } }, "invalid", "config.port"],
    ["a key that is none", { host: "h", sshkey: "nonsense" }, "invalid", "sshkey"],
    [
      "too many settings",
      { host: "h", config: Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`k${n}`, "v"])) },
      "too_large",
      "256",
    ],
    ["lists without end", `{"host":"h","config":${"[".repeat(5_000)}`, "too_large", "deeper than"],
    ["17 MiB", { host: "h", domain: "x".repeat(17 * MIB) }, "too_large", "larger than"],
  ];
  test.each(hosts)("a host with %s", async (_what, body, code, text) => {
    expect(await send("POST", "/host", textOf(body))).toMatchObject(refused(code, text) as object);
  });

  const commandPolicies: readonly Case[] = [
    ["half a JSON", JSON.stringify(GOOD_COMMAND_POLICY).slice(0, 40), "syntax", "Not valid JSON"],
    ["no name", { name: undefined }, "invalid", "name is missing"],
    ["a path as name", { name: "../p" }, "invalid", "slash"],
    ["no rule", { rule: undefined }, "invalid", "rule is missing"],
    ["an unknown rule", { rule: "/matrix/rules/none" }, "not_found", "/matrix/rules/none"],
    ["a rule of another tenant", { rule: "/other/rules/x" }, "invalid", "/other/rules/x"],
    ["an unknown host", { hosts: ["h1", "none"] }, "not_found", "no host none"],
    ["no command", { command: "" }, "invalid", "command"],
    ["no interval", { interval: 0 }, "invalid", "interval"],
    ["half an interval", { interval: 0.5 }, "invalid", "interval must be integer"],
    ["a unit that is none", { unit: "fortnight" }, "invalid", "unit must be one of"],
    ["no depot to run in", { ctype: 0 }, "invalid", "depotname is missing"],
    ["an unknown depot", { ctype: 0, depotname: "none", depotversion: "1.0.0" }, "not_found", "no depot none"],
    [
      "an unknown version",
      { ctype: 0, depotname: "good", depotversion: "7.0.0" },
      "not_found",
      "good with version 7.0.0",
    ],
    ["a delimiter that does not parse", { delimiter: "(" }, "invalid", "delimiter is refused"],
    ["a delimiter that explodes", { delimiter: "((a{1,900}){1,900}){1,900}" }, "invalid", "delimiter is refused"],
  ];
  test.each(commandPolicies)("a command policy with %s", async (_what, body, code, text) => {
    expect(await send("POST", "/monitoring/policy", textOf(body, GOOD_COMMAND_POLICY))).toMatchObject(
      refused(code, text) as object,
    );
  });

  const logPolicies: readonly Case[] = [
    ["no folder", { dir: undefined }, "invalid", "dir is missing"],
    ["a folder relative to nothing", { dir: "logs" }, "invalid", "dir"],
    ["no match", { match: "" }, "invalid", "match"],
    ["a match that does not parse", { match: "(" }, "invalid", "match is refused"],
    ["a match that looks ahead", { match: "(?=(a+)+)x" }, "invalid", "match is refused"],
    ["a match that explodes", { match: "(((a{1,100}){1,100}){1,100})" }, "invalid", "match is refused"],
    ["a matchregexp that refers back", { matchregexp: "(a+)+\\1" }, "invalid", "matchregexp is refused"],
    ["an order by a group that is not there", { priority: ["day"] }, "invalid", '"day"'],
    ["an unknown rule", { rule: "/matrix/rules/none" }, "not_found", "/matrix/rules/none"],
  ];
  test.each(logPolicies)("a log policy with %s", async (_what, body, code, text) => {
    expect(await send("POST", "/monitoring/policy/log", textOf(body, GOOD_LOG_POLICY))).toMatchObject(
      refused(code, text) as object,
    );
  });

  const jobs: readonly Case[] = [
    ["no name", { name: undefined }, "invalid", "name is missing"],
    ["nothing to run", { exec: undefined }, "invalid", "exec is missing"],
    ["too much to run", { exec: Array<string>(60).fill("true") }, "invalid", "exec"],
    ["a time that is none", { timeout: "soon" }, "invalid", "timeout must be integer"],
    ["an unknown mode", { groupmode: "all" }, "invalid", "groupmode"],
    ["a folder above its own", { dir: "../.." }, "invalid", "leaves its folder"],
    ["a name of the platform", { name: "x", dir: "system/common" }, "denied", "belongs to the platform"],
  ];
  test.each(jobs)("a job with %s", async (_what, body, code, text) => {
    expect(await send("POST", "/job", textOf(body, { name: "j", exec: ["true"] }), "application/json")).toMatchObject(
      refused(code, text) as object,
    );
  });

  test.each([
    ["none@x", "", "not_found", "no job none@x"],
    ["remote_command@system/common", "{", "invalid", "no JSON"],
    ["remote_command@system/common", JSON.stringify({ cmd: "true" }), "invalid", "no host"],
    ["remote_command@system/common", JSON.stringify({ "HOST!": "h1" }), "invalid", "cmd"],
    ["remote_command@system/common", JSON.stringify({ cmd: "true", "HOST!": "none" }), "unavailable", "no host none"],
    ["remote_command@system/common", JSON.stringify({ cmd: "true", "HOST!": "h1" }), "unavailable", "not connected"],
  ])("the execution of %s with %s", async (job, param, code, text) => {
    expect(await send("GET", `/job/exec/${job}?receive_output=true&param=${encodeURIComponent(param)}`)).toMatchObject(
      refused(code, text) as object,
    );
  });

  const rules: readonly Case[] = [
    ["no class", "--parser=text --class-less\n", "invalid", ""],
    ["an unknown parser", "--parser=magic\n", "invalid", "no parser named magic"],
    [
      "an unknown parser for a class to come",
      "--class=/matrix/bad/later\n--parser=magic\n",
      "invalid",
      "no parser named magic",
    ],
    ["an unknown pattern", "--parser=grok\n--pattern_1=%{NOPE:text}\n", "invalid", "NOPE"],
    [
      "an unknown pattern for a class to come",
      "--class=/matrix/bad/later\n--parser=grok\n--pattern_1=%{NOPE:text}\n",
      "invalid",
      "NOPE",
    ],
    ["a pattern that does not parse", "--parser=grok\n--pattern_1=(((\n", "invalid", "not usable"],
    [
      "a pattern that explodes",
      "--parser=grok\n--pattern_1=(?<text>((a{1,900}){1,900}){1,900})\n",
      "invalid",
      "not usable",
    ],
    ["a pattern that looks ahead", "--parser=grok\n--pattern_1=(?<text>(?=a))\n", "invalid", "not usable"],
    ["a column that is not there", "--parser=json\n--var_nope=field x\n", "not_found", "no column nope"],
    ["a var line that says nothing", "--parser=json\n--var_text=gibberish x\n", "syntax", "Line 3"],
    ["a type that is none", "--parser=csv\n--fields=text,n\n--fields_type=FOO\n", "invalid", "FOO"],
    ["a class named twice", `--class=${LINE_CLASS}\n--class=/x\n--parser=text\n`, "syntax", "twice"],
    ["a body that is no Lua", `--class=${LINE_CLASS}\n--parser=text\nthis is no script\n`, "syntax", "new:3"],
    ["half a MiB of text", `--parser=text\n${"-- x\n".repeat(100_000)}`, "too_large", "at most"],
  ];
  test.each(rules)("a rule with %s", async (_what, lines, code, text) => {
    expect(await send("PUT", "/mxobject/rule", rule(String(lines)))).toMatchObject(refused(code, text) as object);
  });

  const newRules: readonly Case[] = [
    ["no class", { class: undefined }, "invalid", "class is missing"],
    ["an unknown class", { class: "/matrix/none" }, "not_found", "/matrix/none"],
    ["an unknown type", { type: "magic" }, "invalid", "type must be one of"],
    ["a field that its class does not have", { fields: ["nope"] }, "not_found", "no column nope"],
    ["options smuggled into a field", { fields: ["text\n--ignore"] }, "not_found", "no column"],
    ["grok without patterns", { type: "grok" }, "invalid", "needs fields"],
    ["an unknown pattern", { type: "grok", fields: ["NOPE"], mapping: { text: "NOPE" } }, "invalid", "NOPE"],
    ["a mapping of nothing", { type: "grok", fields: ["IP"], mapping: { text: "x" } }, "invalid", "captures x"],
    ["a mapping to nothing", { type: "grok", fields: ["IP"], mapping: { nope: "IP" } }, "not_found", "nope"],
  ];
  test.each(newRules)("a rule made by type with %s", async (_what, body, code, text) => {
    expect(await send("POST", "/mxobject/rule/new", textOf(body, { class: LINE_CLASS, type: "csv" }))).toMatchObject(
      refused(code, text) as object,
    );
  });

  const deployments: readonly Case[] = [
    ["nothing", {}, "invalid", "hosts, depots, versions are missing"],
    [
      "more depots than versions",
      { hosts: "h1", depots: ["good", "good"], versions: "1.0.0" },
      "invalid",
      "one version for each depot",
    ],
    ["an unknown version", { hosts: "h1", depots: "good", versions: "7.0.0" }, "not_found", "good with version 7.0.0"],
    [
      "a time that is none",
      { hosts: "h1", depots: "good", versions: "1.0.0", timeout: "soon" },
      "invalid",
      "timeout must be integer",
    ],
    [
      "a path that leaves",
      { hosts: "h1", depots: "good", versions: "1.0.0", remotepath: "../.." },
      "invalid",
      "not absolute",
    ],
  ];
  test.each(deployments)("a deployment of %s", async (_what, fields, code, text) => {
    expect(await send("POST", "/monitoring/deploy", form(fields as Record<string, string>))).toMatchObject(
      refused(code, text) as object,
    );
  });

  test("names of what is not there", async () => {
    for (const [method, path] of [
      ["GET", "/host/none"],
      ["DELETE", "/host/none"],
      ["GET", "/monitoring/depot/none"],
      ["DELETE", "/monitoring/depot/none"],
      ["GET", "/monitoring/policy/none"],
      ["DELETE", "/monitoring/policy/none"],
      ["POST", "/monitoring/policy/deploy/none"],
      ["POST", "/monitoring/policy/undeploy/none"],
      ["GET", "/job/none@x"],
      ["DELETE", "/job/none@x"],
      ["DELETE", "/mxobject/rule?key=/matrix/rules/none"],
      ["GET", `/action/parsefile?rule=${RULE}&filename=/none.log`],
      ["POST", "/agent?rule=/matrix/rules/none"],
      ["GET", "/nothing"],
      ["PATCH", "/host"],
    ] as const)
      expect([path, await send(method, path)]).toMatchObject([path, refused("not_found", /none|nothing|PATCH/)]);
  });

  test("a path that cannot be read is refused, and its session is not said again", async () => {
    const answer = await send("GET", "/host/%zz");
    expect(answer).toMatchObject(refused("invalid", "path") as object);
    expect(JSON.stringify(answer)).not.toContain(await odp.session());
  });

  const archives: readonly (readonly [
    what: string,
    filename: string,
    content: () => Buffer | Promise<Buffer>,
    code: string,
    text: string,
  ])[] = [
    ["a zip with a path that leaves", "a.zip", () => zipOf([{ name: "../../evil", content: "x" }]), "invalid", "evil"],
    [
      "a tar with a path that leaves",
      "a.tar",
      () =>
        tarOf([
          { name: "ok", content: "x" },
          { name: "a/../../evil", content: "x" },
        ]),
      "invalid",
      "leaves its folder",
    ],
    ["an absolute path", "a.tar", () => tarOf([{ name: "/etc/evil", content: "x" }]), "invalid", "absolute"],
    ["a path of another system", "a.tar", () => tarOf([{ name: "..\\evil", content: "x" }]), "invalid", "evil"],
    [
      "a symbolic link in a zip",
      "a.zip",
      () => zipOf([{ name: "l", content: "/etc/passwd", mode: 0o120777 }]),
      "invalid",
      "link",
    ],
    ["a symbolic link in a tar", "a.tar", () => tarOf([linkTo("2")]), "invalid", "link"],
    ["a hard link", "a.tar.gz", () => gzipSync(tarOf([linkTo("1")])), "invalid", "link"],
    ["a device", "a.tar", () => tarOf([{ name: "d", flag: "3" }]), "invalid", "neither a file nor a folder"],
    [
      "the same file twice",
      "a.tar",
      () =>
        tarOf([
          { name: "x", content: "1" },
          { name: "./x", content: "2" },
        ]),
      "invalid",
      "twice",
    ],
    ["a bomb", "b.tar.gz", () => gzipSync(tarOf([{ name: "x", content: Buffer.alloc(60 * MIB) }])), "too_large", ""],
    [
      "half a zip",
      "a.zip",
      async () => half(await zipOf([{ name: "x", content: "y".repeat(500) }])),
      "invalid",
      "cannot be read",
    ],
    ["half a tar", "a.tar", () => half(tarOf([{ name: "x", content: "y".repeat(5_000) }])), "invalid", "cut off"],
    ["half a gzip", "a.tgz", () => half(gzipSync(tarOf([{ name: "x", content: "y".repeat(5_000) }]))), "invalid", ""],
    ["no archive at all", "a.tar.gz", () => Buffer.from("no archive"), "invalid", ""],
    ["an archive with nothing in it", "a.tar", () => tarOf([]), "invalid", "no file"],
    ["a file name that leaves", "../../x.sh", () => Buffer.from("x"), "invalid", "leaves its folder"],
  ];
  test.each(archives)("a depot with %s", async (_what, filename, content, code, text) => {
    const body = form({ name: "evil", version: "1.0.0" }, { [filename]: await content() });
    expect(await send("POST", "/monitoring/depot", body)).toMatchObject(refused(code, text) as object);
  });

  test.each([
    ["no name", { version: "1.0.0" }, "name is missing"],
    ["no version", { name: "d" }, "version is missing"],
    ["a version that is none", { name: "d", version: "1" }, "version"],
    ["a path as name", { name: "../d", version: "1.0.0" }, "slash"],
  ])("a depot with %s", async (_what, fields, text) => {
    expect(
      await send("POST", "/monitoring/depot", form(fields as Record<string, string>, { "x.sh": Buffer.from("x") })),
    ).toMatchObject(refused("invalid", text) as object);
  });

  test("a multipart body cut anywhere, or with a boundary that is not its own", async () => {
    const part = (head: string, content: string) =>
      `--B\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`;
    const whole = `${part('name="name"', "cut")}${part('name="version"', "1.0.0")}${part('name="uploadfile"; filename="x.sh"', "#!/bin/sh\necho hello\n")}--B--\r\n`;
    for (let cut = 1; cut < whole.length - 2; cut += 7) {
      expect([
        cut,
        await send("POST", "/monitoring/depot", whole.slice(0, cut), "multipart/form-data; boundary=B"),
      ]).toMatchObject([cut, refused("invalid", "multipart body is broken")]);
    }
    for (const type of ["multipart/form-data; boundary=C", "multipart/form-data"]) {
      expect(await send("POST", "/monitoring/depot", whole, type)).toMatchObject(
        refused("invalid", "multipart body is broken") as object,
      );
    }
  });

  test("an upload whose sender goes away in the middle", async () => {
    const socket = connect(odp.port, "127.0.0.1");
    await once(socket, "connect");
    const head = `POST /monitoring/depot?sessionid=${await odp.session()} HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=B\r\nContent-Length: 9999999\r\n\r\n`;
    socket.write(
      `${head}--B\r\nContent-Disposition: form-data; name="uploadfile"; filename="x"\r\n\r\n${"x".repeat(100_000)}`,
    );
    await eventually("the upload has begun", 10_000, async () => (await uploads()).length > 0 || undefined);
    socket.destroy();
  });

  test("a multipart field of 17 MiB", async () => {
    expect(
      await send("POST", "/monitoring/depot", form({ name: "x".repeat(17 * MIB), version: "1.0.0" })),
    ).toMatchObject(refused("too_large", "larger than") as object);
  });

  test("a session that is none is asked to sign in", async () => {
    for (const query of ["", "?sessionid=wrong", `?sessionid=${"x".repeat(5_000)}`]) {
      const response = await fetch(`${odp.url}/host${query}`, {
        method: "POST",
        body: JSON.stringify({ host: "stranger" }),
      });
      expect([response.status, await response.json()]).toEqual([200, { status: "signin", message: "/user/login" }]);
    }
  });

  test("MQL cut off anywhere", async () => {
    const batch = `begin insert into ${LINE_CLASS} (text, n) values ('it''s', 1), ("two", -2); insert into ${LINE_CLASS} set text='three' end`;
    for (let cut = "begin".length; cut < batch.length; cut++) {
      const answer = await send("POST", "/mxobject/mql", new URLSearchParams({ mql: batch.slice(0, cut) }));
      expect([batch.slice(0, cut), answer]).toMatchObject([
        batch.slice(0, cut),
        refused("syntax", /line 1 column \d+/),
      ]);
    }
    const select = `select text, count(*) as c, max(n) from ${LINE_CLASS} where (text like 'a*' and n in (1, 2, 3)) or not n between 1 and 5 group by text order by c desc limit 5`;
    for (let cut = 1; cut < select.length; cut++) {
      const { envelope } = await send("POST", "/mxobject/mql", new URLSearchParams({ mql: select.slice(0, cut) }));
      // Some beginnings are statements of their own.
      if (envelope.status !== "ok")
        expect([select.slice(0, cut), ["syntax", "not_found", "invalid", "conflict"]]).toMatchObject([
          expect.anything(),
          expect.arrayContaining([envelope.code]),
        ]);
    }
  });

  test.each([
    ["no statement", " ", "invalid", "no MQL"],
    ["an unknown class", "select * from /matrix/none", "not_found", "/matrix/none"],
    ["a class of another tenant", "select * from /other/x", "not_found", "/other/x"],
    ["an unknown field", `select nope from ${LINE_CLASS}`, "not_found", "nope"],
    ["a value of the wrong type", `insert into ${LINE_CLASS} text='a', n='many'`, "invalid", "n:"],
    ["a type that is none", "create class /matrix/bad/x (a frobnicate)", "invalid", "frobnicate"],
    [
      "parentheses without end",
      `select * from ${LINE_CLASS} where ${"(".repeat(10_000)}n=1`,
      "too_large",
      "nested deeper",
    ],
    ["a limit below all", `select * from ${LINE_CLASS} limit -2`, "invalid", "number of rows"],
    ["5 MiB of text", `select ${"x,".repeat(2.5 * MIB)}`, "too_large", "more than"],
  ])("MQL with %s", async (_what, mql, code, text) => {
    expect(await send("POST", "/mxobject/mql", new URLSearchParams({ mql }))).toMatchObject(
      refused(code, text) as object,
    );
  });
});

test("patterns that make others work for ever do their work in time", async () => {
  const long = "a".repeat(30_000);
  await odp.mql("create class /matrix/bad/slow (text text, index(text)) with kind='record'");
  await odp.ok(
    "PUT",
    "/mxobject/rule",
    rule("--class=/matrix/bad/slow\n--parser=grok\n--pattern_1=^(?<text>(a+)+)$\n", "/matrix/rules/bad/slow"),
  );
  await odp.ok("POST", "/fs/slow", form({}, { "slow.log": Buffer.from(`${long}b\n${long}\n`) }));
  expect(await odp.ok("GET", "/action/parsefile?rule=/matrix/rules/bad/slow&filename=/slow/slow.log")).toMatchObject({
    records: 1,
    failed: 1,
  });
  expect(await odp.ok("GET", "/consolelog/rule?name=/matrix/rules/bad/slow")).toMatchObject({
    logs: [{ level: 4, source: "/slow/slow.log", msg: "Line 1: No pattern of the rule matches it.", count: 1 }],
  });
  const metrics = await (await fetch(`${odp.url}/metrics`)).text();
  expect(metrics).toMatch(/^odp_worker_threads 1$/m);
  expect(metrics).toMatch(/^odp_worker_threads_ended 0$/m);
  const like = `${"*a".repeat(500)}*b`;
  expect(await odp.mql(`select count(*) from /matrix/bad/slow where text like '${like}'`)).toMatchObject([
    { count: 0 },
  ]);
});

describe("who may be an agent", () => {
  test("a used token is refused to others, and tells its owner the same again", async () => {
    const token = await newToken("once");
    const first = createRequest(createKeyPem(), "once");
    const answer = await enrol(odp, token, first);
    expect(answer.status).toBe("ok");
    expect((await enrol(odp, token, first)).status).toBe("ok");
    expect(await enrol(odp, token, createRequest(createKeyPem(), "once"))).toMatchObject({
      status: "error",
      code: expect.stringMatching(/denied|conflict/),
    });
  });

  test("an agent with a used token says so and ends", async () => {
    const token = await newToken("late-comer");
    await enrol(odp, token, createRequest(createKeyPem(), "late-comer"));
    const environment = {
      ODP_AGENT_CONTROLLER: odp.url,
      ODP_AGENT_TOKEN: token,
      ODP_AGENT_NAME: "late-comer",
      ODP_AGENT_DIR: join(odp.folder, "late-comer"),
    };
    const agent = new Program("agent", "dist/agent.js", environment);
    await eventually("the agent has ended", 30_000, () => !agent.running || undefined);
    expect(agent.output).toMatch(/refused the enrolment.*token/);
    expect(agent.output).not.toContain(token);
  });

  test("a token that nobody made, or that was changed, is refused", async () => {
    const token = await newToken("guessed");
    const request = createRequest(createKeyPem(), "guessed");
    for (const forged of [flipped(token, 10), flipped(token, token.length - 5)]) {
      expect(await enrol(odp, forged, request)).toMatchObject({
        status: "error",
        code: expect.stringMatching(/denied|invalid|not_found/),
      });
    }
    for (const body of [
      "",
      "{}",
      '{"id":"x","csr":"x","proof":"x"}',
      JSON.stringify({ ...enrolRequest(token, request), csr: Buffer.from("no request").toString("base64") }),
    ]) {
      expect(await post(odp, "/agent/enrol", body)).toMatchObject({
        status: "error",
        code: expect.stringMatching(/denied|invalid/),
      });
    }
    expect((await enrol(odp, token, request)).status).toBe("ok");
  });

  test("a certificate names the token's host, whatever its request says", async () => {
    const answer = await enrol(odp, await newToken("asked"), createRequest(createKeyPem(), "h1"));
    if (answer.status === "ok") expect(answer.message).toMatchObject({ host: "asked" });
    else expect(answer).toMatchObject({ code: expect.stringMatching(/denied|invalid/) });
  });

  test("a certificate of another installation and tenant, or none that was signed, does not get in", async () => {
    const other = await Installation.start({ ODP_STORE: "embedded", ODP_TENANT: "other" });
    try {
      const own = await identityOf(odp, "web-1");
      const basic = `Basic ${Buffer.from("other.admin:correct horse battery").toString("base64")}`;
      const made = await post(other, "/agent/token", JSON.stringify({ host: "web-1" }), { authorization: basic });
      const foreign = await identityOf(other, "web-1", (made.message as { token: string }).token);
      expect(foreign.answer.tenant).toBe("other");
      for (const stranger of [
        { ...foreign, answer: { ...foreign.answer, authorities: own.answer.authorities } },
        { ...own, keyPem: createKeyPem() },
      ]) {
        await expectNoWelcome(own.answer.agentPort, stranger);
      }
      expect(await odp.ok("GET", "/host?status=true")).toEqual([]);
      const agent = new BareAgent(own.answer.agentPort, own);
      try {
        await agent.hello();
      } finally {
        agent.close();
      }
    } finally {
      await other.stop();
    }
  });

  test("a token that has expired is refused", async () => {
    const token = await newToken("late");
    process.kill(odp.controller.pid, "SIGUSR2");
    await eventually("the controller's clock is ahead", 10_000, async () => {
      const { expires } = (await odp.ok("POST", "/agent/token", JSON.stringify({ host: "late" }))) as {
        expires: number;
      };
      return expires > Date.now() + TWO_HOURS_MS || undefined;
    });
    expect(await enrol(odp, token, createRequest(createKeyPem(), "late"))).toMatchObject({
      status: "error",
      code: expect.stringMatching(/denied|invalid|not_found/),
      message: expect.stringMatching(/expired|token/),
    });
  });
});

test("no fault of the controller's own was met", () => {
  expect(odp.controller.output).not.toMatch(/fault of ours|"level":(50|60)/);
});

function uploads(): Promise<string[]> {
  return readdir(join(odp.folder, "data", "uploads")).catch(() => []);
}

/** A text is sent unchanged. Members replace those of a good input and are sent as JSON. */
function textOf(body: unknown, good: object = {}): string | undefined {
  return typeof body === "string" || body === undefined ? body : JSON.stringify({ ...good, ...(body as object) });
}

function linkTo(flag: string): ArchiveEntry {
  return { name: "link", flag, link: "/etc/passwd" };
}

function half(bytes: Buffer): Buffer {
  return bytes.subarray(0, Math.floor(bytes.length / 2));
}

function flipped(text: string, at: number): string {
  return `${text.slice(0, at)}${text[at] === "A" ? "B" : "A"}${text.slice(at + 1)}`;
}

async function newToken(host: string): Promise<string> {
  await odp.ok("POST", "/host", JSON.stringify({ host, isagent: 1 }));
  return ((await odp.ok("POST", "/agent/token", JSON.stringify({ host, minutes: 5 }))) as { token: string }).token;
}

async function post(
  at: Installation,
  path: string,
  body: string,
  headers: Record<string, string> = {},
): Promise<Envelope> {
  const response = await fetch(`${at.url}${path}`, {
    method: "POST",
    body,
    headers,
    signal: AbortSignal.timeout(30_000),
  });
  return (await response.json()) as Envelope;
}

function enrol(at: Installation, token: string, request: Uint8Array): Promise<Envelope> {
  return post(at, "/agent/enrol", JSON.stringify(enrolRequest(token, request)));
}

async function identityOf(at: Installation, host: string, token?: string): Promise<TestIdentity> {
  const keyPem = createKeyPem();
  const { message } = await enrol(at, token ?? (await newToken(host)), createRequest(keyPem, host));
  return { answer: message as EnrolAnswer, keyPem };
}

async function expectNoWelcome(port: number, identity: TestIdentity): Promise<void> {
  let agent: BareAgent;
  try {
    agent = new BareAgent(port, identity);
  } catch {
    // A key that does not belong to the certificate cannot even be used to connect.
    return;
  }
  try {
    await expect(agent.hello()).rejects.toThrow(/ended without welcome/);
  } finally {
    agent.close();
  }
}
