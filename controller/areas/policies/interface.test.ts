import { afterAll, beforeAll, expect, test } from "vitest";
import { multipart, openMonitoring } from "../../../test/helpers/jobs/monitoring.ts";

let monitoring: Awaited<ReturnType<typeof openMonitoring>>;
let admin: string;
beforeAll(async () => {
  monitoring = await openMonitoring();
  admin = await monitoring.http.signIn("admin");
});
afterAll(() => monitoring[Symbol.asyncDispose]());

const call = (method: "GET" | "POST" | "PATCH" | "DELETE", url: string, payload?: object, session = admin) =>
  monitoring.http.call(session, { method, url, ...(payload === undefined ? {} : { payload }) });
const command = {
  name: "uptime",
  rule: "/matrix/rules/uptime",
  command: "uptime",
  ctype: 1,
  interval: 5,
  unit: "second",
  isdaemon: true,
};
const log = { name: "access", rule: "/matrix/rules/access", dir: "/var/log", match: "^(?<day>\\w+)\\.log$" };
const desired = async (host: string) =>
  (await monitoring.policies.desired("matrix", host)).policies.map((policy) => policy.name);

test("a command policy is made from JSON, deployed to its hosts, undeployed, deployed again and deleted", async () => {
  expect(
    await call("POST", "/monitoring/policy", { ...command, hosts: ["h1"], split: true, attrs: { a: "b" } }),
  ).toMatchObject({
    status: "ok",
    message: { name: "uptime", status: "deployed", hosts: ["h1"], attrs: { a: "b" }, split: true },
  });
  expect(await desired("h1")).toEqual(["uptime"]);
  expect(await call("GET", "/monitoring/policy")).toMatchObject({ message: [{ name: "uptime", kind: "command" }] });
  const misspelt = await call("POST", "/monitoring/policy", { ...command, host: ["h1"] });
  expect(misspelt).toMatchObject({
    status: "ok",
    warnings: ["host is not known here and was ignored; did you mean hosts?"],
  });
  expect(await call("POST", "/monitoring/policy/undeploy/uptime")).toMatchObject({
    status: "ok",
    message: { status: "undeployed" },
  });
  expect(await desired("h1")).toEqual([]);
  expect(await call("POST", "/monitoring/policy/deploy/uptime")).toMatchObject({
    status: "ok",
    message: { status: "deployed" },
  });
  expect(
    await monitoring.mql("select name, hosts, interval, isdaemon from /matrix/system/policy where kind='command'"),
  ).toEqual([{ name: "uptime", hosts: ["h1"], interval: 5, isdaemon: true }]);
  expect(await call("DELETE", "/monitoring/policy/uptime")).toMatchObject({ status: "error", code: "conflict" });
  expect(await call("DELETE", "/monitoring/policy/uptime?force=true")).toMatchObject({ status: "ok" });
  expect(await call("GET", "/monitoring/policy/uptime")).toMatchObject({ status: "error", code: "not_found" });
  expect(new Set(monitoring.hosts.refreshed)).toEqual(new Set(["h1"]));
});

test("PATCH changes the members that are sent: agents restart only what became another task", async () => {
  const made = { ...command, hosts: ["h1"], attrs: { a: "b" }, tags: ["one"] };
  await call("POST", "/monitoring/policy", made);
  const wanted = async () => (await monitoring.policies.desired("matrix", "h1")).policies;
  const before = await wanted();
  const tagged = await call("PATCH", "/monitoring/policy/uptime", { tags: ["two"] });
  expect(tagged).toMatchObject({ status: "ok", message: { ...made, tags: ["two"], status: "deployed" } });
  expect(await wanted()).toEqual(before);
  expect(await call("PATCH", "/monitoring/policy/uptime", { interval: 9 })).toMatchObject({
    message: { ...made, tags: ["two"], interval: 9, status: "deployed" },
  });
  expect(await wanted()).not.toEqual(before);
  expect(await call("PATCH", "/monitoring/policy/uptime", { hosts: [] })).toMatchObject({
    message: { interval: 9, hosts: [], status: "undeployed" },
  });
  expect(await wanted()).toEqual([]);
  const refused = [
    ["uptime", {}, "invalid"],
    ["uptime", { match: "x" }, "invalid"],
    ["uptime", { interval: 0 }, "invalid"],
    ["uptime", { ctype: 0 }, "invalid"],
    ["gone", { interval: 9 }, "not_found"],
  ] as const;
  const kept = await call("GET", "/monitoring/policy/uptime");
  for (const [name, change, code] of refused)
    expect(await call("PATCH", `/monitoring/policy/${name}`, change), name).toMatchObject({ status: "error", code });
  expect(await call("GET", "/monitoring/policy/uptime")).toEqual(kept);
  await call("DELETE", "/monitoring/policy/uptime");
});

test("members about runs are kept, sent back, changed one by one and shown as columns", async () => {
  const runs = {
    ...{ timeout: 4, overlap: "queue", outputlimit: 5_000_000_000, backoff: 60, user: "web" },
    ...{ environment: { PORT: "80" }, memorylimit: 1_073_741_824, cpulimit: 30, nice: 5 },
  };
  const made = { ...command, isdaemon: false, ...runs, hosts: ["h1"] };
  expect(await call("POST", "/monitoring/policy", made)).toMatchObject({ status: "ok", message: made });
  const [{ spec = "" } = {}] = (await monitoring.policies.desired("matrix", "h1")).policies;
  expect(JSON.parse(spec)).toMatchObject({ ...runs, kind: `command with ${Object.keys(runs).join(", ")}` });
  expect(await call("PATCH", "/monitoring/policy/uptime", { timeout: 3, user: "" })).toMatchObject({
    message: { ...made, timeout: 3, user: "" },
  });
  expect(await monitoring.mql(`select ${Object.keys(runs).join(", ")} from /matrix/system/policy`)).toEqual([
    { ...runs, timeout: 3, user: "" },
  ]);
  expect(await call("POST", "/monitoring/policy", { ...made, nice: 20 })).toMatchObject({ code: "invalid" });
  const logged = await call("POST", "/monitoring/policy/log", { ...log, timeout: 4 });
  expect(logged).toMatchObject({ warnings: [expect.stringContaining("timeout is not known here and was ignored")] });
  for (const name of ["uptime", "access"]) await call("DELETE", `/monitoring/policy/${name}?force=true`);
});

test("two changes of different members at the same time are both kept", async () => {
  await call("POST", "/monitoring/policy", command);
  const changes = [{ interval: 9 }, { tags: ["two"] }, { command: "uptime -p" }];
  const answers = await Promise.all(changes.map((change) => call("PATCH", "/monitoring/policy/uptime", change)));
  expect(answers.map(({ status }) => status)).toEqual(["ok", "ok", "ok"]);
  expect(await call("GET", "/monitoring/policy/uptime")).toMatchObject({
    message: { interval: 9, tags: ["two"], command: "uptime -p" },
  });
  await call("DELETE", "/monitoring/policy/uptime");
});

test("a log policy is made from a multipart form with everything as text", async () => {
  const form = await multipart([
    ...Object.entries(log),
    ["hosts", "h1"],
    ["hosts", "h2"],
    ["tags", "a"],
    ["priority", "day"],
    ["translation", '{"day":{"mon":1,"tue":2}}'],
    ["attrs", "[object Object]"],
    ["delimitereol", "false"],
    ["differentiator", ""],
  ]);
  expect(await monitoring.http.call(admin, { method: "POST", url: "/monitoring/policy/log", ...form })).toMatchObject({
    status: "ok",
  });
  const record = await call("GET", "/monitoring/policy/access");
  expect(record).toMatchObject({
    message: {
      kind: "log",
      hosts: ["h1", "h2"],
      tags: ["a"],
      priority: ["day"],
      translation: { day: { mon: 1, tue: 2 } },
      delimitereol: false,
    },
  });
  expect(record.message).not.toHaveProperty("attrs");
});

test("what is wrong is refused by name", async () => {
  for (const [change, reason] of [
    [{ rule: "/matrix/rules/missing" }, "rule /matrix/rules/missing"],
    [{ unit: "fortnight" }, "unit"],
    [{ delimiter: "(" }, "delimiter"],
    [{ command: undefined }, "command"],
    [{ ctype: 0, depotname: "none", depotversion: "1.0.0" }, "no depot none"],
    [{ hosts: ["nope"] }, "no host nope"],
  ] as const) {
    const answer = await call("POST", "/monitoring/policy", { ...command, name: "wrong", ...change });
    expect(answer).toMatchObject({ status: "error", message: expect.stringContaining(reason) as string });
  }
  expect(await call("GET", "/monitoring/policy/wrong")).toMatchObject({ status: "error" });
});

test("a viewer and another tenant's administrator cannot touch it", async () => {
  await call("POST", "/monitoring/policy", { ...command, name: "mine", hosts: ["h3"] });
  const [viewer, other] = [await monitoring.http.signIn("viewer"), await monitoring.http.signIn("admin", "second")];
  for (const url of ["/monitoring/policy/undeploy/mine", "/monitoring/policy/deploy/mine"]) {
    expect(await call("POST", url, undefined, viewer)).toMatchObject({ status: "error", code: "denied" });
    expect(await call("POST", url, undefined, other)).toMatchObject({ status: "error", code: "not_found" });
  }
  expect(await call("DELETE", "/monitoring/policy/mine", undefined, viewer)).toMatchObject({ code: "denied" });
  expect(await call("POST", "/monitoring/policy", command, viewer)).toMatchObject({ code: "denied" });
  expect(await desired("h3")).toEqual(["mine"]);
});

test("a depot that a policy runs in stays until the policy is gone", async () => {
  const upload = await multipart([
    ["name", "web"],
    ["version", "1.0.0"],
    ["uploadfile", { name: "check.sh", content: "#!/bin/sh\n" }],
  ]);
  await monitoring.http.call(admin, { method: "POST", url: "/monitoring/depot", ...upload });
  await call("POST", "/monitoring/policy", {
    ...command,
    name: "web-check",
    ctype: 0,
    depotname: "web",
    depotversion: "1.0.0",
    hosts: ["h4"],
  });
  const [policy] = (await monitoring.policies.desired("matrix", "h4")).policies;
  expect(policy?.depot).toMatchObject({
    name: "web",
    version: "1.0.0",
    files: [{ path: "check.sh", executable: true }],
  });
  expect(await call("DELETE", "/monitoring/depot/web")).toMatchObject({
    status: "error",
    code: "conflict",
    message: expect.stringContaining("web-check") as string,
  });
  const on = { hosts: ["h4"], depots: ["web"], versions: ["1.0.0"] };
  expect(await call("POST", "/monitoring/undeploy", on)).toMatchObject({
    code: "conflict",
    message: "The depot web 1.0.0 is used by the policies web-check on h4. Change them first, or send force=true.",
  });
  expect(monitoring.hosts.sent).toEqual([]);
  expect(await call("POST", "/monitoring/deploy", on)).toMatchObject({ status: "ok" });
  const next = await multipart([
    ["name", "web"],
    ["version", "2.0.0"],
    ["uploadfile", { name: "check.sh", content: "#!/bin/sh\n" }],
  ]);
  await monitoring.http.call(admin, { method: "POST", url: "/monitoring/depot", ...next });
  expect(await call("POST", "/monitoring/deploy", { ...on, versions: ["2.0.0"] })).toMatchObject({ code: "conflict" });
  // The last version of a depot stays on the host.
  const several = (...versions: readonly string[]) =>
    call("POST", "/monitoring/deploy", { hosts: ["h4"], depots: versions.map(() => "web"), versions });
  expect(await several("2.0.0", "1.0.0")).toMatchObject({ status: "ok" });
  expect(await several("1.0.0", "2.0.0")).toMatchObject({ code: "conflict" });
  expect(await several("1.0.0", "2.0.0", "1.0.0")).toMatchObject({
    message: [{ version: "2.0.0" }, { version: "1.0.0" }],
  });
  expect(await call("POST", "/monitoring/undeploy", { ...on, force: true })).toMatchObject({
    message: [{ state: "ok" }],
  });
  expect(await call("DELETE", "/monitoring/depot/web?version=1.0.0&force=true")).toMatchObject({ message: 1 });
  await call("DELETE", "/monitoring/policy/web-check?force=true");
  expect(await call("DELETE", "/monitoring/depot/web")).toMatchObject({ status: "ok" });
});
