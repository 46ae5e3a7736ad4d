import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { JOB_GROUP_HOSTS_MAX, JOB_HOSTS_MAX, JOB_LINE_MAX_BYTES } from "../../../../common/limits.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { MONITORING_RUNS_MAX, multipart, openMonitoring } from "../../../../test/helpers/jobs/monitoring.ts";
import { MemoryStores } from "../../../../test/helpers/engines/memory/stores.ts";
import { TEST_SECRETS, testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import { AGED_CHANGES } from "../../../../test/helpers/time/times.ts";
import type { Stores } from "../../../store/engine.ts";
import { JobGroups } from "../groups/groups.ts";
import { JobService } from "../service.ts";
import { NAMED_HOSTS } from "../../../../test/helpers/hosts/named-hosts.ts";

const CHANGES = 100;
const admin = testPrincipal();
const neighbour = testPrincipal("administrator", "second");
const runtime = testRuntime(realClock);
const FORM = "application/x-www-form-urlencoded";

let monitoring: Awaited<ReturnType<typeof openMonitoring>>;
let session: string;
let groups: JobGroups;
beforeAll(async () => {
  monitoring = await openMonitoring();
  session = await monitoring.http.signIn("admin");
  groups = new JobGroups({ stores: monitoring.engine, objects: monitoring.objects, secrets: TEST_SECRETS, runtime });
});
afterAll(() => monitoring[Symbol.asyncDispose]());
beforeEach(() => {
  monitoring.hosts.sent.length = 0;
});

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
const call = (method: Method, url: string, form?: string, as = session) =>
  monitoring.http.call(as, {
    method,
    url,
    ...(form !== undefined && { payload: form, headers: { "content-type": FORM } }),
  });
const stored = async (name: string) => (await call("GET", `/job/${name}`)).message;
const secondController = (stores: Stores = monitoring.engine) =>
  new JobService({ targets: NAMED_HOSTS, stores, runtime, objects: monitoring.objects });
const execute = async (name: string, param: object = {}) =>
  (await monitoring.runs.execute(admin, name, { param: JSON.stringify(param) })).finished;
const hostsOf = async (name: string, param?: object) => (await execute(name, param)).map(({ host }) => host);
const group = (name: string, hosts: readonly string[]) =>
  groups.save(admin, { name, gtype: "group", hosts: hosts.map((host) => ({ host })) });

test("every form a client sends a definition in means the same", async () => {
  const members = { name: "forms", dir: "common/x", exec: ["one", "two"], host: ["h1"], tag: ["a"], timeout: 9 };
  const rest = "name=forms&dir=common%2Fx&timeout=9&group=undefined&begin=&end=&limit=";
  const parts = [
    ["name", "forms"],
    ["dir", "/common/x/"],
    ["exec", "one"],
    ["exec", "two"],
    ["host", "h1"],
    ["tag[]", "a"],
    ["timeout", "9"],
  ] as const;
  const json = JSON.stringify(members);
  for (const request of [
    { payload: `${rest}&exec=one&exec=two&host=h1&tag=a`, headers: { "content-type": FORM } },
    { payload: `${rest}&exec%5B%5D=one&exec[]=two&host[]=h1&tag[]=a`, headers: { "content-type": FORM } },
    { payload: `${rest}&exec=${encodeURIComponent('["one","two"]')}&host=h1&tag=a`, headers: { "content-type": FORM } },
    { payload: json, headers: { "content-type": "application/json;charset=utf-8" } },
    { payload: json, headers: { "content-type": "text/plain;charset=UTF-8" } },
    await multipart(parts),
  ]) {
    const saved = await monitoring.http.call(session, { method: "POST", url: "/job", ...request });
    expect(saved).not.toHaveProperty("warnings");
    expect(await stored("forms@common/x")).toMatchObject({ ...members, group: "", limit: 0, enable: 1 });
    const edited = { method: "PUT", url: "/job", ...request } as const;
    expect(await monitoring.http.call(session, edited)).toMatchObject({ status: "ok", message: members });
    const merged = { method: "POST", url: "/job/merge", ...request } as const;
    expect(await monitoring.http.call(session, merged)).toMatchObject({ status: "ok", message: members });
    await call("DELETE", "/job/forms@common/x");
  }
});

test("PUT, PATCH and merge change the members that are sent, and only those", async () => {
  const full = "timeout=9&enable=0&description=d&arg=x&tag=t&queue=q&groupmode=sequence&schedule=cron+0+0+*+*+*";
  await call("POST", "/job", `name=part&dir=d&exec=run&host=h1&${full}`);
  const before = (await stored("part@d")) as { created: number };
  for (const [method, url] of [
    ["PUT", "/job"],
    ["PATCH", "/job/part@d"],
    ["POST", "/job/merge"],
  ] as const) {
    const unchanged = await call(method, url, "name=part&dir=d&timeout=&exec=undefined&queue=null&description=d");
    const written = { changed: expect.any(Number) as number, revision: expect.any(String) as string };
    expect(unchanged.message).toMatchObject({ ...before, ...written });
    expect(await call(method, url, "name=part&dir=d&host[]=h2&host[]=h3&queue=")).toMatchObject({
      message: { ...before, host: ["h2", "h3"], queue: "", ...written },
    });
    await call(method, url, "name=part&dir=d&host=h1&queue=q");
  }
  expect(await call("POST", "/job", "name=part&dir=d&exec=run")).toMatchObject({
    message: { host: [], tag: [], enable: 1, created: before.created },
  });
  await call("DELETE", "/job/part@d");
});

test("PATCH takes the job from its path, and refuses a change of nothing", async () => {
  await call("POST", "/job", "name=part&dir=d&exec=run&host=h1");
  expect(await call("PATCH", "/job/part@d", "")).toMatchObject({ status: "error", code: "invalid" });
  expect(await call("PATCH", "/job/gone@d", "host=h2")).toMatchObject({ status: "error", code: "not_found" });
  const elsewhere = await call("PATCH", "/job/part@d", "name=other&host=h4");
  expect(elsewhere).toMatchObject({
    message: { name: "part", host: ["h4"] },
    warnings: ["name is not known here and was ignored."],
  });
  await call("DELETE", "/job/part@d");
});

test("PUT changes no job that is not there, merge adds it", async () => {
  expect(await call("PUT", "/job", "name=new&exec=run")).toMatchObject({ status: "error", code: "not_found" });
  expect(await call("POST", "/job/merge", "name=new&host=h1")).toMatchObject({
    status: "error",
    message: expect.stringContaining("at least one exec") as string,
  });
  expect(await call("GET", "/job/exist/new")).toMatchObject({ status: "ok", message: false });
  expect(await call("POST", "/job/merge", "name=new&exec=run&host=h1")).toMatchObject({
    message: { fullname: "new", host: ["h1"], enable: 1, creator: "admin" },
  });
  await call("DELETE", "/job/new");
});

test("exist, enable, disable and sync answer as clients read them; a disabled job still runs on request", async () => {
  const before = (await call("GET", "/job/sync")).message as number;
  await call("POST", "/job", "name=flag&dir=common%2Fx&exec=run&host=h1");
  expect(await call("GET", "/job/sync")).toEqual({ status: "ok", message: before + 1 });
  expect((await call("GET", "/job")).message).toHaveLength(before + 1);
  expect(await call("GET", "/job/exist/flag@common/x")).toEqual({ status: "ok", message: true });
  for (const none of ["flag", "flag@common/y", "flag@common", "a@../b"])
    expect(await call("GET", `/job/exist/${none}`)).toEqual({ status: "ok", message: false });
  expect(await call("GET", "/job/disable/flag@common/x")).toEqual({ status: "ok", message: true });
  expect(await stored("flag@common/x")).toMatchObject({ enable: 0, exec: ["run"], host: ["h1"] });
  expect(await hostsOf("flag@common/x")).toEqual(["h1"]);
  expect(await call("GET", "/job/enable/flag@common/x")).toEqual({ status: "ok", message: true });
  expect(await stored("flag@common/x")).toMatchObject({ enable: 1 });
  for (const way of ["enable", "disable"]) {
    expect(await call("GET", `/job/${way}/none@x`)).toMatchObject({ code: "not_found" });
    for (const name of ["remote_command", "remote_wincall"])
      expect(await call("GET", `/job/${way}/${name}@system/common`)).toMatchObject({ code: "denied" });
  }
  await call("DELETE", "/job/flag@common/x");
});

test("what cannot be carried out is refused by every way to define it, and changes nothing", async () => {
  await call("POST", "/job", "name=firm&exec=run&host=h1");
  const before = await stored("firm");
  const many = Array.from({ length: JOB_HOSTS_MAX + 1 }, (_, at) => `host=h${at}`).join("&");
  for (const [change, code, reason] of [
    ["exec=", "invalid", "at least one exec"],
    ["exec=a%00b", "invalid", "NUL"],
    ["arg=a%00b", "invalid", "NUL"],
    [Array.from({ length: 9 }, () => `arg=${"'".repeat(8_000)}`).join("&"), "too_large", String(JOB_LINE_MAX_BYTES)],
    [Array.from({ length: 1_000 }, () => `tag=${"x".repeat(500)}`).join("&"), "too_large", "bytes"],
    [many, "invalid", "host"],
    ["groupmode=some", "invalid", "groupmode"],
    ["enable=2", "invalid", "enable"],
    ["dir=system/common", "denied", "platform"],
    ["dir=..%2Fx", "invalid", "leaves"],
  ] as const) {
    for (const [method, url] of [
      ["POST", "/job"],
      ["PUT", "/job"],
      ["POST", "/job/merge"],
    ] as const) {
      const exec = method === "POST" && url === "/job" && !change.startsWith("exec") ? "&exec=run" : "";
      const refused = await call(method, url, `name=firm&${change}${exec}`);
      expect(refused, `${method} ${url} ${change.slice(0, 40)}`).toMatchObject({
        status: "error",
        code,
        message: expect.stringContaining(reason) as string,
      });
    }
  }
  expect(await stored("firm")).toEqual(before);
  expect(await call("POST", "/job", "name=sync&exec=run")).toMatchObject({ code: "invalid" });
  expect(await call("POST", "/job", "name=sync&dir=d&exec=run")).toMatchObject({ status: "ok" });
  await call("DELETE", "/job/sync@d");
  await call("DELETE", "/job/firm");
});

test("a job runs on its hosts and on those its groups have when it starts, each once; HOST! alone overrides all", async () => {
  await group("web", ["h2", "h3"]);
  await group("db", ["h3", "h4", "h1"]);
  await call("POST", "/job", "name=wide&exec=run&host=h1&group=web,+db");
  expect(await hostsOf("wide")).toEqual(["h1", "h2", "h3", "h4"]);
  await group("web", ["h5"]);
  expect(await hostsOf("wide")).toEqual(["h1", "h5", "h3", "h4"]);
  await call("PUT", "/job", "name=wide&host=");
  expect(await hostsOf("wide")).toEqual(["h5", "h3", "h4", "h1"]);
  await groups.remove(admin, { gtype: "group", name: "web" });
  await expect(execute("wide")).rejects.toMatchObject({ code: "not_found", message: expect.stringContaining("web") });
  expect(await hostsOf("wide", { "HOST!": "h7,h8" })).toEqual(["h7", "h8"]);
  await group("web", []);
  await call("PUT", "/job", "name=wide&group=web");
  await expect(execute("wide")).rejects.toMatchObject({ code: "invalid", message: expect.stringContaining("no host") });
  await groups.save(neighbour, { name: "web", gtype: "group", hosts: [{ host: "h9" }] });
  await expect(execute("wide"), "the group of a neighbour").rejects.toMatchObject({ code: "invalid" });
  await call("DELETE", "/job/wide");
});

test("groupmode holds over groups: one takes the first that can be reached, the others are bounded", async () => {
  const many = (count: number) => Array.from({ length: count }, (_, at) => `h${at}`);
  await group("many", ["gone", ...many(MONITORING_RUNS_MAX)]);
  await call("POST", "/job", "name=modes&exec=run&group=many&groupmode=one");
  expect(await hostsOf("modes")).toEqual(["gone", "h0"]);
  await call("PUT", "/job", "name=modes&groupmode=parallel");
  await expect(execute("modes")).rejects.toMatchObject({ code: "limited" });
  const names = many(JOB_HOSTS_MAX + 1);
  for (let at = 0; at < names.length; at += JOB_GROUP_HOSTS_MAX)
    await group(`many${at / JOB_GROUP_HOSTS_MAX}`, names.slice(at, at + JOB_GROUP_HOSTS_MAX));
  await call("PUT", "/job", "name=modes&group=many0,many1");
  for (const groupmode of ["", "parallel", "sequence", "one"]) {
    await call("PUT", "/job", `name=modes&groupmode=${groupmode}`);
    await expect(execute("modes")).rejects.toMatchObject({ code: "too_large", details: { limit: "JOB_HOSTS_MAX" } });
  }
  await call("PUT", "/job", "name=modes&group=many");
  await group("many", ["h1", "h2", "h3"]);
  await call("PUT", "/job", "name=modes&groupmode=sequence");
  expect(await hostsOf("modes")).toEqual(["h1", "h2", "h3"]);
  await call("DELETE", "/job/modes");
});

test("arguments follow every exec, each as one word whatever it holds", async () => {
  const arg = ["plain", "two words", "it's; rm -rf / $(x) `y`", ""];
  await monitoring.jobs.save(admin, { name: "args", exec: ["one -a \n", "two"], arg, host: ["h1"] });
  await execute("args");
  const words = `'plain' 'two words' 'it'\\''s; rm -rf / $(x) \`y\`' ''`;
  expect(monitoring.hosts.sent.map(({ command }) => command)).toMatchObject([
    { line: `one -a ${words}` },
    { line: `two ${words}` },
  ]);
  await call("DELETE", "/job/args");
});

const SCRIPT = "exec=serverjs+1";
test.each([
  ["exec=x&host=h1&algorithm=random", "algorithm is without effect: it is of groupmode one."],
  ["exec=x&host=h1&algorithm=random&groupmode=parallel", "algorithm is without effect: it is of groupmode one."],
  ["exec=x&host=h1&retrydelay=5", "retrydelay is without effect without retry."],
  ...[
    ["host", "h1"],
    ["group", "dbs"],
    ["groupmode", "one"],
    ["algorithm", "random"],
    ["arg", "a"],
    ["argenc", "gbk"],
    ["retry", "1"],
    ["retrydelay", "5"],
  ].map(([member, value]) => [
    `${SCRIPT}&${member}=${value}`,
    `Without effect in a job that the controller runs as a script: ${member}.`,
  ]),
  [
    `${SCRIPT}&host=h1&retry=2&retrydelay=5`,
    "Without effect in a job that the controller runs as a script: host, retry, retrydelay.",
  ],
])("%s is saved and told to have something without effect", async (members, warning) => {
  expect(await call("POST", "/job", `name=idle&${members}`)).toMatchObject({ status: "ok", warnings: [warning] });
  expect(await call("POST", "/job/merge", "name=idle&description=d")).toHaveProperty("warnings", [warning]);
  await call("DELETE", "/job/idle");
});

test("a definition of which each member has its effect is saved without a warning", async () => {
  const rest = "timeout=9&begin=1&end=1&limit=2&queue=q&keep=5&tag=t&schedule=every+1d";
  const onHosts = "host=h1&host=h2&groupmode=one&algorithm=sticky&arg=a&argenc=gbk&user=web&retry=2&retrydelay=5";
  for (const members of [`exec=x&${onHosts}&${rest}`, `${SCRIPT}&${rest}`])
    expect(await call("POST", "/job", `name=full&${members}`)).not.toHaveProperty("warnings");
  await call("DELETE", "/job/full");
});

test("a viewer reads and changes nothing; who does not see a job cannot tell, change or replace it", async () => {
  await call("POST", "/job", "name=mine&exec=run&host=h1");
  await call("POST", "/job", "name=theirs&exec=run&host=h1");
  const viewer = await monitoring.http.signIn("viewer");
  expect(await call("GET", "/job/exist/mine", undefined, viewer)).toMatchObject({ message: true });
  for (const [method, url, form] of [
    ["PUT", "/job", "name=mine&host=h2"],
    ["POST", "/job/merge", "name=mine&host=h2"],
    ["GET", "/job/enable/mine", undefined],
    ["GET", "/job/disable/mine", undefined],
  ] as const)
    expect(await call(method, url, form, viewer)).toMatchObject({ status: "error", code: "denied" });
  const data = [{ class: "/matrix/jobs/jobdef", access: "write", where: "name = 'mine'" }] as const;
  const few = { ...admin, user: "few", data };
  const { jobs } = monitoring;
  expect(await jobs.edit(few, { name: "mine", host: ["h2"] })).toMatchObject({ job: { host: ["h2"] } });
  expect(await jobs.exists(few, "theirs")).toBe(false);
  await expect(jobs.edit(few, { name: "theirs", host: ["h2"] })).rejects.toMatchObject({ code: "not_found" });
  await expect(jobs.enable(few, "theirs", false)).rejects.toMatchObject({ code: "not_found" });
  await expect(jobs.merge(few, { name: "theirs", host: ["h2"] })).rejects.toMatchObject({ code: "denied" });
  await expect(jobs.merge(few, { name: "other", exec: ["x"] })).rejects.toMatchObject({ code: "denied" });
  expect(await stored("theirs")).toMatchObject({ host: ["h1"], enable: 1 });
  expect(await jobs.exists(neighbour, "mine")).toBe(false);
  await expect(jobs.edit(neighbour, { name: "mine", host: [] })).rejects.toMatchObject({ code: "not_found" });
  expect(await jobs.merge(neighbour, { name: "mine", exec: ["y"] })).toMatchObject({ job: { exec: ["y"] } });
  expect(await stored("mine")).toMatchObject({ exec: ["run"], host: ["h2"] });
  for (const name of ["mine", "theirs"]) await call("DELETE", `/job/${name}`);
});

test("of changes that two controllers make side by side none is lost", async () => {
  await changeSideBySide([monitoring.jobs, secondController()], CHANGES);
  await monitoring.jobs.remove(admin, "aged");
});

test(`a definition that changed ${AGED_CHANGES} times is as it was left`, async () => {
  const stores = new MemoryStores();
  const [one, other] = [secondController(stores), secondController(stores)];
  await changeSideBySide([one, other], AGED_CHANGES);
  expect(stores.keys("matrix", "jobs/definition/")).toEqual(["jobs/definition/aged"]);
});

/** The two services change different members at the same time. */
async function changeSideBySide([one, other]: readonly [JobService, JobService], changes: number): Promise<void> {
  const { job } = await one.save(admin, { name: "aged", exec: ["run"] });
  for (let at = 0; at < changes; at += 2) {
    await Promise.all([
      one.edit(admin, { name: "aged", description: `a${at}` }),
      other.merge(admin, { name: "aged", tag: [`b${at}`] }),
    ]);
    const { description, tag } = await one.get(admin, "aged");
    expect([description, tag]).toEqual([`a${at}`, [`b${at}`]]);
  }
  const written = { changed: expect.any(Number) as number, revision: expect.any(String) as string };
  const last = changes - 2;
  expect(await other.get(admin, "aged")).toEqual({ ...job, description: `a${last}`, tag: [`b${last}`], ...written });
}

/** The stores, with `before` called before each write of a key. */
const beforePut = (before: (key: string) => Promise<void>, after: () => void = () => {}): Stores => ({
  system: () => monitoring.engine.system(),
  tenant: async (name) => {
    const store = await monitoring.engine.tenant(name);
    const put: typeof store.kv.put = async (...args) => {
      await before(args[0]);
      const answer = await store.kv.put(...args);
      after();
      return answer;
    };
    return { ...store, kv: wrappedKv(store.kv, { put }) };
  },
});

test("who replaces a job that changes meanwhile is refused; who loses every race is told, and changes nothing", async () => {
  const { jobs } = monitoring;
  await jobs.save(admin, { name: "raced", exec: ["run"] });
  let races = 0;
  const racing = secondController(
    beforePut(async () => void (await jobs.edit(admin, { name: "raced", description: `${++races}` }))),
  );
  await expect(racing.save(admin, { name: "raced", exec: ["mine"] })).rejects.toMatchObject({ code: "conflict" });
  expect(races).toBe(1);
  await expect(racing.edit(admin, { name: "raced", exec: ["mine"] })).rejects.toMatchObject({ code: "conflict" });
  expect(await jobs.get(admin, "raced")).toMatchObject({ exec: ["run"], description: `${races}` });
  const removed = secondController(beforePut(() => jobs.remove(admin, "raced")));
  await expect(removed.edit(admin, { name: "raced", exec: ["mine"] })).rejects.toMatchObject({ code: "not_found" });
  expect(await jobs.exists(admin, "raced")).toBe(false);
});

test("a change whose answer is lost is made once and told as made", async () => {
  let writes = 0;
  const lost = (): void => {
    if (writes++ === 0) throw new AppError("unknown_outcome", "done, not told");
  };
  const unlucky = secondController(beforePut(() => Promise.resolve(), lost));
  const { job } = await unlucky.merge(admin, { name: "lost", exec: ["run"] });
  expect(await monitoring.jobs.get(admin, "lost")).toEqual(job);
  expect(writes).toBe(2);
  await monitoring.jobs.remove(admin, "lost");
});

test("a definition as large as the bound allows can be changed: what odp adds does not count", async () => {
  const { jobs } = monitoring;
  const filled = { name: "filled", begin: "b".repeat(64_000), end: "e".repeat(64_000) };
  const exec = Array.from({ length: 16 }, () => "x".repeat(8_000));
  const save = (length: number) =>
    jobs.save(admin, { ...filled, exec: [...exec, "x".repeat(length)] }).then(
      () => true,
      (error: { code: string }) => (expect(error.code).toBe("too_large"), false),
    );
  let [least, most] = [1, 8_000];
  while (most - least > 1) {
    const length = Math.floor((least + most) / 2);
    await jobs.remove(admin, "filled").catch(() => undefined);
    if (await save(length)) least = length;
    else most = length;
  }
  await jobs.remove(admin, "filled").catch(() => undefined);
  expect(await save(least)).toBe(true);
  expect(await jobs.edit(admin, { name: "filled", enable: 0 })).toMatchObject({ job: { enable: 0 } });
  await jobs.remove(admin, "filled");
});
