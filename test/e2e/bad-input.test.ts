import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, test } from "vitest";
import { eventually } from "../helpers/programs/programs.ts";
import {
  archives,
  commandPolicies,
  deployments,
  GOOD_COMMAND_POLICY,
  GOOD_LOG_POLICY,
  hosts,
  jobs,
  LINE_CLASS,
  logPolicies,
  MIB,
  newRules,
  RULE,
  rules,
} from "./bad-input-cases.ts";
import { form, Installation, type Envelope } from "./installation.ts";

/** Every bad input gets an error that names the problem, and changes nothing. */

let odp: Installation;
let before: unknown;

beforeAll(async () => {
  odp = await Installation.start({ ODP_STORE: "embedded" });
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

  test.each(hosts)("a host with %s", async (_what, body, code, text) => {
    expect(await send("POST", "/host", textOf(body))).toMatchObject(refused(code, text) as object);
  });

  test.each(commandPolicies)("a command policy with %s", async (_what, body, code, text) => {
    expect(await send("POST", "/monitoring/policy", textOf(body, GOOD_COMMAND_POLICY))).toMatchObject(
      refused(code, text) as object,
    );
  });

  test.each(logPolicies)("a log policy with %s", async (_what, body, code, text) => {
    expect(await send("POST", "/monitoring/policy/log", textOf(body, GOOD_LOG_POLICY))).toMatchObject(
      refused(code, text) as object,
    );
  });

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

  test.each(rules)("a rule with %s", async (_what, lines, code, text) => {
    expect(await send("PUT", "/mxobject/rule", rule(String(lines)))).toMatchObject(refused(code, text) as object);
  });

  test.each(newRules)("a rule made by type with %s", async (_what, body, code, text) => {
    expect(await send("POST", "/mxobject/rule/new", textOf(body, { class: LINE_CLASS, type: "csv" }))).toMatchObject(
      refused(code, text) as object,
    );
  });

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
    ] as const)
      expect([path, await send(method, path)]).toMatchObject([path, refused("not_found", /none|nothing/)]);
    expect(await send("PATCH", "/host")).toMatchObject({
      status: 405,
      envelope: {
        status: "error",
        code: "method_not_allowed",
        message: expect.stringContaining("PATCH /host") as string,
      },
    });
  });

  test("a path that cannot be read is refused, and its session is not said again", async () => {
    const answer = await send("GET", "/host/%zz");
    expect(answer).toMatchObject(refused("invalid", "path") as object);
    expect(JSON.stringify(answer)).not.toContain(await odp.session());
  });

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
