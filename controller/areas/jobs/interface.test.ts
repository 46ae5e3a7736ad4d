import { afterAll, beforeAll, expect, test } from "vitest";
import { SCHEDULE_PREVIEW_MAX } from "../../../common/limits.ts";
import { openMonitoring } from "../../../test/helpers/jobs/monitoring.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";

let monitoring: Awaited<ReturnType<typeof openMonitoring>>;
let admin: string;
beforeAll(async () => {
  monitoring = await openMonitoring();
  admin = await monitoring.http.signIn("admin");
});
afterAll(() => monitoring[Symbol.asyncDispose]());

const call = (method: "GET" | "POST" | "DELETE", url: string, form?: string, session = admin) =>
  monitoring.http.call(session, {
    method,
    url,
    ...(form === undefined ? {} : { payload: form, headers: { "content-type": "application/x-www-form-urlencoded" } }),
  });
const param = (members: object) => encodeURIComponent(JSON.stringify(members));
const says = (text: string) => {
  monitoring.hosts.behaviour = (_host, _command, { onOutput }) => (
    onOutput?.({ stderr: false, data: new TextEncoder().encode(text) }), {}
  );
};

test("the list of jobs has the next times of schedules, as a job has", async () => {
  await call("POST", "/job", "name=listed&dir=next&exec=true&host=h1&schedule=every+1h");
  await call("POST", "/job", "name=off&dir=next&exec=true&host=h1&schedule=every+1h&enable=0");
  const { message } = await call("GET", "/job");
  const next = (name: string) =>
    (message as { fullname: string; next?: number[] }[]).find((job) => job.fullname === name)?.next;
  expect([next("listed@next")?.length, next("off@next")]).toEqual([SCHEDULE_PREVIEW_MAX, undefined]);
  for (const name of ["listed@next", "off@next"]) await call("DELETE", `/job/${name}`);
});

test("a job is defined by a form as clients send it, listed, read and deleted under its whole name", async () => {
  const form =
    "name=backup&dir=common%2Fx&exec=run&host[]=h1&host[]=h2&tag[]=a&schedule=cron+0%2F5+*+*+*+*&timeout=&enable=1&groupmode=parallel&begin=&end=&queue=undefined";
  expect(await call("POST", "/job", form)).toMatchObject({
    status: "ok",
    message: { fullname: "backup@common/x", exec: ["run"], host: ["h1", "h2"], timeout: 60 },
  });
  expect(await call("GET", "/job")).toMatchObject({
    message: [{ name: "backup" }, { name: "remote_command", system: true }, { name: "remote_wincall", system: true }],
  });
  expect(await call("GET", "/job/backup@common/x")).toMatchObject({
    status: "ok",
    message: { schedule: "cron 0/5 * * * *", tag: ["a"], queue: "" },
  });
  expect(await monitoring.mql("select fullname, host from /matrix/jobs/jobdef where name='backup'")).toEqual([
    { fullname: "backup@common/x", host: ["h1", "h2"] },
  ]);
  expect(await call("DELETE", "/job/backup@common/x")).toMatchObject({ status: "ok" });
  expect(await call("GET", "/job/backup@common/x")).toMatchObject({ status: "error", code: "not_found" });
});

test("a name that is not known is told when a job is saved", async () => {
  const saved = await call("POST", "/job", "name=told&exec=run&argenc=gbk&hosts=h1&begin=&queue=undefined");
  expect(saved).toHaveProperty("warnings", ["hosts is not known here and was ignored; did you mean host?"]);
  expect(await call("POST", "/job", "name=told&exec=run&argenc=")).not.toHaveProperty("warnings");
});

test("a job may name a host that does not exist yet, and this is told to those who may read hosts", async () => {
  const warning = "There is no host gone: the job cannot run there.";
  const members = "name=early&exec=run&host[]=h1&host[]=gone&host[]=gone";
  expect(await call("POST", "/job", members)).toMatchObject({ status: "ok", warnings: [warning] });
  expect(await call("POST", "/job/merge", "name=early&description=d")).toMatchObject({ warnings: [warning] });
  const blind = { ...testPrincipal(), grants: ["jobs:*"] };
  const input = { name: "early", exec: ["run"], host: ["gone"] };
  expect(await monitoring.jobs.save(blind, input)).toMatchObject({ warnings: [] });
  await call("DELETE", "/job/early");
});

test.each(["remote_command", "remote_wincall"])(
  "both ways to execute %s answer the output, and leave a row that MQL shows",
  async (name) => {
    says("hello\n");
    const members = param({ cmd: "echo hello", "HOST!": "h1", timeout: 5 });
    for (const url of [
      `/job/exec/${name}@system/common?param=${members}&receive_output=true`,
      `/job/${name}@system/common?receive_output=true&param=${members}`,
    ]) {
      const answer = await call("GET", url);
      expect(answer).toMatchObject({
        status: "ok",
        message: "hello\n",
        meta: { runs: [{ host: "h1", state: "ok", code: 0 }] },
      });
      const { runid } = answer.meta as { runid: string };
      expect(
        await monitoring.mql(`select host, status, code, out, cmds from /matrix/jobs/jobrun where runid='${runid}'`),
      ).toEqual([{ host: "h1", status: "ok", code: 0, out: "hello\n", cmds: ["echo hello"] }]);
    }
  },
);

test("a job is executed by POST with a body, which may be longer than a URL", async () => {
  says("hi");
  const input = "y".repeat(30_000);
  const members = { cmd: "x", "HOST!": "h1", "STDIN!": input };
  const answer = await monitoring.http.call(admin, {
    method: "POST",
    url: "/job/exec/remote_command@system/common",
    payload: { param: JSON.stringify(members), receive_output: true },
  });
  expect(answer).toMatchObject({ status: "ok", message: "hi" });
  const sent = monitoring.hosts.sent.at(-1)?.command;
  expect(sent?.kind === "exec" && Buffer.from(sent.input ?? []).toString()).toBe(input);
});

test("several hosts answer one block each; an exit code is no error, a host that cannot be reached is one", async () => {
  says("hi");
  expect(
    await call(
      "GET",
      `/job/exec/remote_command@system/common?receive_output=true&param=${param({ cmd: "x", "HOST!": ["h1", "h2"] })}`,
    ),
  ).toMatchObject({ status: "ok", message: "# h1: ok\nhi\n# h2: ok\nhi" });
  monitoring.hosts.behaviour = () => ({ state: "failed", code: 2, message: "exit code 2" });
  expect(
    await call(
      "GET",
      `/job/exec/remote_command@system/common?receive_output=true&param=${param({ cmd: "x", "HOST!": "h1" })}`,
    ),
  ).toMatchObject({
    status: "ok",
    message: "exit code 2",
    failed: { count: 1, of: 1 },
    warnings: ["1 of 1 host failed.", "h1: failed, exit code 2"],
  });
  monitoring.hosts.behaviour = (host) => (host === "h2" ? { state: "failed", code: 2, message: "exit code 2" } : {});
  const three = param({ cmd: "x", "HOST!": ["h1", "h2", "nope"] });
  expect(await call("GET", `/job/remote_command@system/common?receive_output=true&param=${three}`)).toMatchObject({
    status: "ok",
    failed: { count: 2, of: 3 },
  });
  const ok = await call("GET", `/job/exec/remote_command@system/common?param=${three}`);
  expect(ok).not.toHaveProperty("failed");
  expect(
    await call(
      "GET",
      `/job/exec/remote_command@system/common?receive_output=true&param=${param({ cmd: "x", "HOST!": "nope" })}`,
    ),
  ).toMatchObject({ status: "error", code: "unavailable", message: "nope: unreachable: There is no host nope." });
});

test("what is wrong or not offered is a clear error", async () => {
  for (const [url, code] of [
    ["/job/exec/remote_command@system/common?param=%7B", "invalid"],
    ["/job/exec/remote_command@system/common", "invalid"],
    [`/job/exec/remote_wincall@system/common?param=${param({ "HOST!": "h1" })}`, "invalid"],
    ["/job/exec/none@x", "not_found"],
  ] as const) {
    expect(await call("GET", url)).toMatchObject({ status: "error", code });
  }
  expect(await call("POST", "/job", "name=x")).toMatchObject({
    status: "error",
    message: expect.stringContaining("exec") as string,
  });
});

test("a viewer executes nothing by either way; another tenant sees no runs", async () => {
  const viewer = await monitoring.http.signIn("viewer");
  const members = param({ cmd: "x", "HOST!": "h1" });
  const before = monitoring.hosts.sent.length;
  for (const url of [
    `/job/exec/remote_command@system/common?param=${members}`,
    `/job/remote_command@system/common?param=${members}`,
  ]) {
    expect(await call("GET", url, undefined, viewer)).toMatchObject({ status: "error", code: "denied" });
  }
  expect(await call("POST", "/job", "name=x&exec=y", viewer)).toMatchObject({ code: "denied" });
  expect(await call("DELETE", "/job/x", undefined, viewer)).toMatchObject({ code: "denied" });
  expect(monitoring.hosts.sent).toHaveLength(before);
  expect(await monitoring.mql("select host from /second/jobs/jobrun", "second")).toEqual([]);
});

// Must be last: it closes the runs.
test("without receive_output the run's id comes at once and the run goes on", async () => {
  says("later");
  const answer = await call(
    "GET",
    `/job/exec/remote_command@system/common?param=${param({ cmd: "x", "HOST!": "h2" })}`,
  );
  expect(answer).toMatchObject({ status: "ok", message: expect.stringMatching(/^[0-9A-Z]{26}$/) as string });
  await monitoring.runs.close();
  expect(
    await monitoring.mql(`select status, out from /matrix/jobs/jobrun where runid='${String(answer.message)}'`),
  ).toEqual([{ status: "ok", out: "later" }]);
});
