import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLI_STREAM_FIRST_ROWS } from "../../../common/limits.ts";
import { PASSWORD } from "../../../test/helpers/http/http-app.ts";
import { TestCommandLine, type RunOptions } from "../../../test/helpers/programs/command-line.ts";
import { openWorld, type World } from "../../../test/security/world.ts";

/** The commands against a whole controller, in this process. */

let world: World;
let line: TestCommandLine;
let url: string;
beforeAll(async () => {
  world = await openWorld();
  url = await world.app.listen({ host: "127.0.0.1", port: 0 });
  line = await TestCommandLine.open();
});
afterAll(async () => {
  world.app.server.closeAllConnections();
  await line[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

/** Runs a command as the administrator. A text is split at its blanks. */
function odp(words: string | readonly string[], options: RunOptions = {}) {
  const environment = { ODP_URL: url, ODP_PASSWORD: PASSWORD, ...options.environment };
  return line.run(typeof words === "string" ? words.split(" ") : words, { ...options, environment });
}

async function json(words: string): Promise<unknown> {
  const { out, err, code } = await odp(`${words} -o json`);
  expect([err, code], words).toEqual(["", 0]);
  return JSON.parse(out);
}

test("hosts are made, listed, shown and removed", async () => {
  expect((await odp("host set web-1 --ip 192.0.2.10 --ip 192.0.2.11 --tag europe/oslo")).code).toBe(0);
  await odp("host set db-1 --domain example");
  expect(await json("host list")).toMatchObject([{ host: "db-1" }, { host: "web-1", tags: ["europe/oslo"] }]);
  expect((await odp("host list --tag europe/oslo -o name")).out).toBe("web-1\n");
  expect((await odp("-o csv host list --fields host,iplist")).out).toContain(
    'web-1,"[""192.0.2.10"",""192.0.2.11""]"\n',
  );
  expect((await odp("host show web-1")).out).toMatch(/^host +web-1$/m);
  expect((await odp("host remove db-1")).code).toBe(0);
  expect((await odp("host show db-1")).err).toMatch(/^odp: .*db-1/);
  expect((await odp("host set web-1")).err).toContain("Nothing is to be changed");
});

test("a token is written as the line of the agent, for a time", async () => {
  const { out, err } = await odp("host token web-2 --minutes 5");
  expect(out).toMatch(
    /^ODP_AGENT_CONTROLLER=\S+ ODP_AGENT_TOKEN=odp1\.\S+ ODP_AGENT_NAME=web-2 .* node --max-semi-space-size=1 agent\.js\n$/,
  );
  expect(err).toContain("On web-2, beside agent.js");
  expect((await odp("host token web-2 --minutes 0")).code).toBe(64);
  const [{ id } = { id: "" }] = (await json("tokens --fields id")) as readonly { readonly id: string }[];
  expect((await odp("tokens")).out).toMatch(new RegExp(`^${id} +web-2 +admin `, "m"));
  expect((await odp(`tokens revoke ${id}`)).code).toBe(0);
  expect(await json("tokens")).toEqual([]);
});

test("configuration is written, read, listed and removed; a secret is no argument", async () => {
  await odp(["config", "set", "/matrix/etc/mail", "smtp.example.com"]);
  expect((await odp("config get /matrix/etc/mail")).out).toBe("smtp.example.com\n");
  await odp("config set /matrix/etc/word --secret", { stdin: "kestrel\n" });
  expect(await json("config list /matrix/etc --fields key,value")).toEqual([
    { key: "/matrix/etc/mail", value: "smtp.example.com" },
    { key: "/matrix/etc/word", value: "********" },
  ]);
  expect(await odp("config set /matrix/etc/word kestrel --secret")).toMatchObject({ code: 64, out: "" });
  expect((await odp("config get /matrix/etc")).err).toContain("odp config list /matrix/etc");
  await odp("config remove /matrix/etc");
  expect(await json("config list /matrix/etc")).toEqual([]);
});

test("a long table of a SELECT is written as it arrives, with times as times and no note for its columns", async () => {
  const rows = Array.from({ length: CLI_STREAM_FIRST_ROWS + 100 }, (_, n) => `('page ${n}', ${n * 1_000})`);
  const setUp =
    "create class /matrix/long (page varchar, seen timestamp, keys(page)); insert into /matrix/long (page, seen) values ";
  await odp("mql -f -", { stdin: setUp + rows.join(", ") });
  const select = "select page, seen from /matrix/long order by seen limit -1";
  const { out, err, code } = await odp(["mql", select, "--utc"]);
  const lines = out.trimEnd().split("\n");
  expect([err, code, lines.length]).toEqual(["", 0, rows.length + 2]);
  expect(lines.at(-1)).toBe("page 2099  1970-01-01T00:34:59Z");
  expect((await odp(["mql", `${select}; ${select}`, "--utc"])).out).toBe(out);
});

test("mql takes values, a file or the standard input, and shows times as times", async () => {
  await odp("mql -f -", { stdin: "create class /matrix/visit (page varchar, seen timestamp, keys(page))" });
  const inserted = await odp([
    "mql",
    "insert into /matrix/visit (page, seen) values (?, ?)",
    "--value",
    "/a b",
    "--value",
    "1767312245000",
  ]);
  expect(inserted).toMatchObject({ code: 0 });
  const { out } = await odp(["mql", "select page, seen from /matrix/visit"]);
  expect(out).toMatch(/^page +seen\n-+ +-+\n\/a b +2026-01-02T00:04:05Z\n$/);
  expect((await odp(["mql", "select page from /matrix/visit", "--json=page"])).out).toBe(
    '[\n  {\n    "page": "/a b"\n  }\n]\n',
  );
  const inOslo = { zoneName: "Europe/Oslo" };
  expect((await odp(["mql", "select page, seen from /matrix/visit"], inOslo)).out).toContain(
    "  2026-01-02T01:04:05+01:00\n",
  );
  expect((await odp(["mql", "select page, seen from /matrix/visit", "--utc"], inOslo)).out).toBe(out);
  expect(await odp(["mql", "select page, seen from /matrix/visit", "--zone", "Oslo"])).toMatchObject({ code: 64 });
  expect((await odp("mql")).err).toContain("Give the statement, or --file.");
});

test("api makes any call by its path", async () => {
  expect(JSON.parse((await odp("api get /host/web-1 --json")).out)).toMatchObject({ host: "web-1" });
  await odp(["api", "post", "/config/set", "--body", '{"key":"/matrix/etc/a","value":"1"}']);
  expect((await odp("api get /config/list -q key=/matrix/etc --utc")).out).toMatch(
    /\/a .* 20\d\d-\d\d-\d\dT[\d:.]+Z$/m,
  );
  expect((await odp("api GET /config/list -q key=/matrix/etc -o name")).out).toBe("/matrix/etc/a\n");
  const unknown = await odp("api get /hst");
  expect(unknown).toMatchObject({ code: 64, err: expect.stringContaining("did you mean GET /host?") });
  expect((await odp("api post /config/set --body {")).err).toContain("--body is no JSON");
});

describe("policies", () => {
  const definition = {
    name: "load",
    rule: "/matrix/rules/load",
    command: "uptime",
    ctype: 1,
    interval: 5,
    unit: "minute",
  };

  test("are applied from a file, and shown again as what can be applied", async () => {
    expect(await odp(["mql", "create class /matrix/load (text varchar) with kind=record"])).toMatchObject({ code: 0 });
    await odp("config set /matrix/rules/load -f -", { stdin: "--class=/matrix/load\n--parser=csv\n--fields=text\n" });
    await writeFile(join(line.folder, "load.json"), JSON.stringify([definition]));
    const apply = () => odp(["policy", "apply", "-f", join(line.folder, "load.json"), "-o", "csv"]);
    expect(await apply()).toEqual({ out: "name,kind,result\nload,command,created\n", err: "", code: 0 });
    expect((await apply()).out).toBe("name,kind,result\nload,command,replaced\n");
    const { out } = await odp("policy show load -o json");
    expect(await odp("policy apply", { stdin: out })).toMatchObject({ code: 0, err: "" });
    expect(await odp("policy apply", { stdin: '{"rule":"x"}' })).toMatchObject({ code: 64 });
  });

  test("are previewed on a host that can be reached, and on no other one", async () => {
    await odp("host set web-9 --tag europe");
    const away = { code: 1, err: expect.stringContaining("The agent of web-9 is not connected") as string };
    expect(await odp("policy preview load --host web-9")).toMatchObject(away);
    const { out } = await odp("policy show load -o json");
    expect(await odp("policy preview -f - --host web-9 -n 5", { stdin: out })).toMatchObject(away);
    expect((await odp("policy preview load --host none")).err).toContain("none");
    expect((await odp("policy preview load")).code).toBe(64);
    await odp("host remove web-9");
  });

  test("are deployed to hosts, and their state is shown for each host", async () => {
    await odp("host set web-1 --tag europe");
    expect((await odp("policy deploy load")).code).toBe(1);
    expect((await odp("policy deploy load --host web-1")).err).toContain("odp policy status load");
    expect(await odp("wait policy load --timeout 1")).toMatchObject({
      code: 124,
      err: expect.stringContaining("load does not run on web-1: unable") as string,
    });
    const unable = {
      host: "web-1",
      state: "unable",
      message: "This host has no agent and no credentials for SSH. A policy runs by one of them.",
    };
    expect(await json("policy status load")).toMatchObject([unable]);
    expect(await json("policy drift")).toMatchObject([{ policy: "load", ...unable }]);
    expect((await odp("policy list")).out).toMatch(/^load +command +deployed +web-1/m);
    expect((await odp("policy deploy load --host web-* --host tag:none")).err).toContain("load runs on web-1 once");
    expect(await json("policy status load")).toMatchObject([unable]);
    const { out } = await odp("policy show load -o json");
    const warnings = [
      "There is no agent on web-1: the policy runs there once one has joined.",
      "tag:none matches no host now.",
    ];
    const err = warnings.map((text) => `warning: ${text}\n`).join("");
    expect(await odp("policy apply", { stdin: out })).toMatchObject({ code: 0, err });
    await odp("policy undeploy load");
    expect((await odp("policy status load")).err).toContain("load is not deployed");
    expect(await json("policy drift")).toEqual([]);
    expect((await odp("policy remove load")).code).toBe(0);
    expect(await json("policy list")).toEqual([]);
  });
});

test("depots are uploaded, listed, deployed and removed", async () => {
  await mkdir(join(line.folder, "files"), { recursive: true });
  const file = join(line.folder, "files/run.sh");
  await writeFile(file, "#!/bin/sh\nuptime\n");
  expect(await odp(["depot", "upload", "check", file])).toMatchObject({ code: 64 });
  expect((await odp(["depot", "upload", "check@1.0.0", file])).code).toBe(0);
  expect((await odp(["depot", "upload", "check@1.0.0", file])).code).toBe(1);
  expect((await odp(["depot", "upload", "check@1.0.0", file, "--overwrite"])).code).toBe(0);
  expect(await json("depot list --fields name,versions")).toEqual([{ name: "check", versions: ["1.0.0"] }]);
  await odp("host set web-1 --tag europe");
  const { out, code } = await odp("deploy check --host web-1 --timeout 1 -o csv");
  expect([code, out]).toEqual([
    1,
    expect.stringMatching(/^host,depot,version,state.*\nweb-1,check,1\.0\.0,unreachable/),
  ]);
  const begun = await odp("deploy check --host web-1 --wait 2h -o csv");
  expect(begun).toMatchObject({ code: 0 });
  const [id = ""] = (begun.out.split("\n")[1] ?? "").split(",");
  expect((await odp(`deployment show ${id} -o csv`)).out).toMatch(/^host,state.*\nweb-1,/);
  expect((await odp(`deployment cancel ${id} -o csv`)).out).toMatch(/^host,state.*\nweb-1,/);
  expect(await json("deployment list --fields id,cancelledBy")).toEqual([{ id, cancelledBy: "admin" }]);
  expect(await odp("deploy check --host tag:none")).toMatchObject({
    code: 1,
    err: expect.stringContaining("warning: tag:none matches no host now.\n") as string,
  });
  expect((await odp("depot remove check")).code).toBe(64);
  expect((await odp("depot remove check --all")).code).toBe(0);
  expect(await json("depot list")).toEqual([]);
});

test("jobs and their runs are listed", async () => {
  await odp(["api", "post", "/job", "--body", '{"name":"backup","dir":"nightly","exec":["true"],"host":["web-1"]}']);
  expect((await odp("job list -o name")).out).toContain("backup@nightly\n");
  const begun = await odp("job run backup@nightly --detach");
  expect(begun).toMatchObject({ code: 0, out: expect.stringMatching(/^\w{20,}\n$/) });
  await expect
    .poll(() => json("job runs backup@nightly --fields name,host,status"))
    .toEqual([{ name: "backup@nightly", host: "web-1", status: "unreachable" }]);
  const followed = await odp("job run backup@nightly --follow");
  expect(followed).toMatchObject({
    code: 255,
    err: expect.stringMatching(/run \w+\n.*web-1: unreachable.*\n.*1 host: 1 unreachable\n$/s),
  });
  expect((await odp("job run backup@nightly --param [1]")).code).toBe(64);
  // Longer than the head of a request may be.
  const param = JSON.stringify({ TEXT: "é".repeat(4_000) });
  const long = ["job", "run", "backup@nightly", "--param", param];
  expect((await odp([...long, "--detach"])).out).toMatch(/^[0-9A-Z]{26}\n$/);
  expect((await odp(long)).err).toContain("1 host: 1 unreachable");
  expect((await odp(["exec", "web-1", "é".repeat(4_000)])).err).toContain("web-1: unreachable");
});

describe("login", () => {
  test("keeps a session for later commands, without the password; logout ends it", async () => {
    const login = await line.run(["login", url, "--name", "here"], { stdin: `${PASSWORD}\n` });
    expect(login).toMatchObject({ code: 0, out: "", err: expect.stringContaining("context here") });
    const stored = await readFile(line.contexts.path, "utf8");
    expect(stored).not.toContain(PASSWORD);
    expect((await line.run(["host", "list", "-o", "name"])).out).toContain("web-1\n");
    expect((await line.run(["context", "list"])).out).toMatch(/^here +\* +http/m);
    const { session = "" } = await line.contexts.named("here");
    expect((await line.run(["logout"])).code).toBe(0);
    expect(await line.contexts.load()).toEqual({ current: undefined, contexts: {} });
    await line.contexts.add("again", { url, user: "matrix.admin", session });
    expect(await line.run(["host", "list"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("odp login <url>"),
    });
    expect((await line.run(["logout"])).code).toBe(0);
  });

  test("keeps a token, and refuses a wrong one or a wrong password without keeping anything", async () => {
    const made = await odp(["api", "post", "/user/tokens", "--body", '{"name":"cli","scopes":["hosts:read"]}']);
    expect(await line.run(["login", url, "--token", "--name", "t"], { stdin: made.out })).toMatchObject({ code: 0 });
    expect((await line.run(["host", "list", "--context", "t", "-o", "name"])).out).toContain("web-1");
    await line.run(["logout", "t"]);
    expect((await line.run(["login", url, "--token"], { stdin: "odp_wrong\n" })).code).toBe(1);
    expect((await line.run(["login", url], { stdin: "wrong\n" })).code).toBe(1);
    expect((await line.run(["login", url])).code).toBe(64);
    expect((await line.contexts.load()).contexts).toEqual({});
  });
});

test("input without an effect is refused: a body of a GET, and a state that no run has", async () => {
  expect(await odp(["api", "get", "/host", "--body", "{}"])).toMatchObject({
    code: 64,
    err: "odp: A GET has no body: give its values by --query <name>=<value>.\n",
  });
  expect(await odp("job runs --status fail")).toMatchObject({
    code: 64,
    err: expect.stringContaining("failed") as string,
  });
});

test("the removal of a file that is not there fails, and is not called a change by another user", async () => {
  expect(await odp("fs rm /nowhere")).toEqual({
    ...{ code: 1, out: "" },
    err: "odp: There is no file /nowhere. Nothing was done.\n",
  });
});

test("wait ends when the state is reached, with 124 when the time is over, and with 1 when it cannot be reached", async () => {
  await odp("host set web-1 --tag europe");
  expect(await odp("wait host web-1 --for offline")).toEqual({ out: "", err: "", code: 0 });
  expect(await odp("wait host web-1 web-9 --for online --timeout 1")).toEqual({
    out: "",
    err: "odp: 1 s are over: web-1 is offline; web-9 is unknown\n",
    code: 124,
  });
  const file = join(line.folder, "run.sh");
  await writeFile(file, "uptime\n");
  await odp(["depot", "upload", "waited@1.0.0", file]);
  expect((await odp("wait depot waited@1.0.0")).code).toBe(0);
  expect(await odp("wait depot waited@1.0.0 --host web-1 --timeout 1")).toMatchObject({ code: 124 });
  expect((await odp("wait depot waited@2.0.0 --timeout 1")).err).toContain("there is no depot waited@2.0.0");
  expect((await odp("wait deployment waited --timeout 1")).err).toContain("waited was not deployed yet");
  await odp("deploy waited --host web-1 --timeout 1");
  expect((await odp("wait deployment waited@1.0.0 --host web-1")).code).toBe(0);
  expect(await odp("wait deployment waited --for ok")).toEqual({
    out: "",
    err: "odp: it ended with web-1: unreachable\n",
    code: 1,
  });
  await odp(["depot", "upload", "taken@1.0.0", file]);
  expect((await odp("undeploy taken --host web-1 --timeout 1")).out).toContain("web-1");
  expect((await odp("wait deployment taken --timeout 1")).err).toContain("taken was not deployed yet");
  const run = (await odp("job run backup@nightly --detach")).out.trim();
  expect((await odp(["wait", "run", run])).code).toBe(0);
  expect((await odp(["wait", "run", run, "--for", "ok"])).err).toContain("has ended: 1 host unreachable");
  expect((await odp("wait policy load --timeout 1")).err).toContain("there is no policy load");
  for (const words of ["wait hots web-1", "wait host web-1 --for running", "wait host web-1 --timeout 5min"])
    expect((await odp(words)).code, words).toBe(64);
});

test("doctor checks the controller, and writes a bundle without the password", async () => {
  const file = join(line.folder, "odp.tar.gz");
  const { out, err, code } = await odp(["doctor", "-f", file]);
  expect([code, err]).toEqual([3, expect.stringContaining(`${file} is written`)]);
  expect(out).toMatch(/^connection +ok +answers in/m);
  expect(out).toMatch(/^version +warning +controller \S+, odp 1\.2\.3/m);
  expect(out).toMatch(/^session +ok +signed in as matrix\.admin by a password/m);
  expect(gunzipSync(await readFile(file)).toString()).not.toContain(PASSWORD);
  expect(await odp(["doctor", "--bundle", file])).toMatchObject({ code: 1, err: expect.stringContaining("exists") });
  const wrong = await odp("doctor", { environment: { ODP_PASSWORD: "wrong" } });
  expect(wrong).toMatchObject({ code: 2, out: expect.stringMatching(/^session +failed/m) as string });
});

test("watch is for what reads", async () => {
  const answers = await Promise.all([
    odp(["mql", "delete from /matrix/visit", "--watch"]),
    odp(["mql", "explain analyze delete from /matrix/visit", "--watch"]),
    odp(["mql", "-f", "-", "--watch"], { stdin: "select * from /matrix/visit" }),
    odp("api delete /host/web-1 --watch"),
    odp("api get /job/exec/backup@nightly --watch"),
    odp("host set web-1 --tag a --watch"),
    odp("host list --watch=often"),
  ]);
  expect(answers.map(({ code }) => code)).toEqual(answers.map(() => 64));
});

test("a wrong command line ends with 64 and does nothing; a call that fails ends with 1 and says what to do", async () => {
  for (const words of [
    "hots list",
    "host lst",
    "host list --tga x",
    "host list -o xml",
    "host show",
    "host list --json -o csv",
  ])
    expect((await odp(words)).code, words).toBe(64);
  expect((await odp("host lst")).err).toContain("Did you mean list?");
  expect((await odp("host --help")).code).toBe(0);
  const { out: help } = await odp("--help");
  expect((await odp("--context host --help")).out).toBe(help);
  const wrong = await odp("host list", { environment: { ODP_PASSWORD: "wrong" } });
  expect(wrong).toMatchObject({ code: 1, err: expect.stringContaining("Sign in: odp login") });
  const away = await odp("host list", { environment: { ODP_URL: "http://127.0.0.1:9" } });
  expect(away).toMatchObject({ code: 1, err: expect.stringContaining("odp context list") });
});
