import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openMonitoring } from "../../../../test/helpers/jobs/monitoring.ts";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import { encodeJson } from "../../../store/format.ts";
import { inOrderOf } from "./choosing.ts";

const admin = testPrincipal();
const HOSTS = ["h1", "h2", "h3"] as const;

let monitoring: Awaited<ReturnType<typeof openMonitoring>>;
beforeAll(async () => {
  monitoring = await openMonitoring();
});
afterAll(() => monitoring[Symbol.asyncDispose]());
beforeEach(() => {
  monitoring.hosts.sent.length = 0;
  monitoring.hosts.behaviour = () => ({});
});

const define = (algorithm: string, more: object = {}) =>
  monitoring.jobs.save(admin, {
    name: "chosen",
    dir: "d",
    exec: ["run"],
    host: [...HOSTS],
    groupmode: "one",
    algorithm,
    ...more,
  });
const run = async (param: object = {}) =>
  (await (await monitoring.runs.execute(admin, "chosen@d", { param: JSON.stringify(param) })).finished).map(
    ({ host }) => host,
  );

test("roundrobin begins with the next host each time, also among those of HOST!", async () => {
  await define("roundrobin");
  const first = await run();
  const at = HOSTS.indexOf(first[0] as (typeof HOSTS)[number]);
  const rotated = [...HOSTS.slice(at), ...HOSTS.slice(0, at)];
  expect([first, await run(), await run(), await run()].flat()).toEqual([...rotated, rotated[0]]);
  const two = [await run({ "HOST!": "h7,h8" }), await run({ "HOST!": "h7,h8" })].flat();
  expect(two.sort()).toEqual(["h7", "h8"]);
});

test("of executions side by side each has a turn of its own", async () => {
  await define("roundrobin");
  const begun = await Promise.all(Array.from({ length: 9 }, () => run()));
  for (const host of HOSTS) expect(begun.flat().filter((one) => one === host)).toHaveLength(3);
});

test("leastload begins with the host that has the fewest runs open", async () => {
  await define("leastload");
  let end: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (end = resolve));
  const { hosts } = monitoring;
  const dispatch = hosts.dispatch.bind(hosts);
  hosts.dispatch = async (...args) => {
    await held;
    return dispatch(...args);
  };
  const begun = [];
  for (let count = 0; count < 6; count++) begun.push(await monitoring.runs.execute(admin, "chosen@d", {}));
  end();
  const ended = (await Promise.all(begun.map(({ finished }) => finished))).flat();
  expect(ended.map(({ host }) => host)).toEqual([...HOSTS, ...HOSTS]);
  hosts.dispatch = dispatch;
});

test("leastload counts a run that is opened while it looks", async () => {
  const { kv } = await monitoring.engine.tenant("matrix");
  const execution = { order: { hosts: HOSTS, groupmode: "one" }, opened: 0, queueKey: "" };
  const key = "jobs/execution/opening";
  await kv.put(key, encodeJson(execution));
  let looks = 0;
  const opening = wrappedKv(kv, {
    list: async (...look) => {
      if (++looks === 2) {
        await kv.put(key, encodeJson({ ...execution, opened: 1 }));
        await kv.put("jobs/open/opening/h1", encodeJson({}));
      }
      return kv.list(...look);
    },
  });
  const order = await inOrderOf(HOSTS, { kv: opening, random: seededRandom(1), job: "any", algorithm: "leastload" });
  await kv.delete(key);
  await kv.delete("jobs/open/opening/h1");
  expect(order).toEqual(["h2", "h3", "h1"]);
});

test("sticky begins with the same host always, also when others come or go, and goes to another while it is away", async () => {
  await define("sticky");
  const [host = ""] = await run();
  for (let count = 0; count < 5; count++) expect(await run()).toEqual([host]);
  const others = HOSTS.filter((one) => one !== host);
  await define("sticky", { host: [others[0], host] });
  expect(await run()).toEqual([host]);
  monitoring.hosts.behaviour = (of) => (of === host ? { state: "unreachable" } : {});
  expect(await run()).toEqual([host, others[0]]);
});

test("random takes any host, each with the same chance; every order is one of all hosts", async () => {
  const { kv } = await monitoring.engine.tenant("matrix");
  const random = seededRandom(3);
  const first = new Map<string, number>();
  for (let count = 0; count < 3_000; count++) {
    const order = await inOrderOf(HOSTS, { kv, random, job: "any", algorithm: "random" });
    expect([...order].sort()).toEqual([...HOSTS]);
    first.set(order[0] ?? "", (first.get(order[0] ?? "") ?? 0) + 1);
  }
  for (const host of HOSTS) expect(first.get(host)).toBeGreaterThan(900);
});

test("without an algorithm, and in other modes, the order is that of the definition; another word is refused", async () => {
  await define("");
  for (let count = 0; count < 3; count++) expect(await run()).toEqual(["h1"]);
  await define("roundrobin", { groupmode: "sequence" });
  for (let count = 0; count < 3; count++) expect(await run()).toEqual([...HOSTS]);
  await expect(define("fastest")).rejects.toMatchObject({ code: "invalid" });
});

test("the user of a job reaches its hosts with each command, and a job without one sends none", async () => {
  await define("", { exec: ["a", "b"], user: "web" });
  await (await monitoring.runs.execute(admin, "chosen@d", {})).finished;
  expect(monitoring.hosts.sent.map(({ command }) => command)).toMatchObject([{ user: "web" }, { user: "web" }]);
  await define("", { exec: ["a"], user: "" });
  await (await monitoring.runs.execute(admin, "chosen@d", {})).finished;
  expect(monitoring.hosts.sent.at(-1)?.command).not.toHaveProperty("user");
  expect(await monitoring.mql("select user from /matrix/jobs/jobdef where name='chosen'")).toEqual([{ user: "" }]);
});

test("argenc says how commands reach the host, and what they write is kept and answered as UTF-8", async () => {
  await define("", { exec: ["echo 编"], argenc: "gbk" });
  const gbk = Buffer.from([0xb1, 0xe0, 0xc2, 0xeb]);
  monitoring.hosts.behaviour = (_host, _command, { onOutput }) => {
    for (const byte of gbk) onOutput?.({ stderr: false, data: Buffer.from([byte]) });
    return {};
  };
  const { runId, finished } = await monitoring.runs.execute(admin, "chosen@d", {});
  expect((await finished).map(({ output }) => output)).toEqual(["编码"]);
  expect(await monitoring.mql(`select out from /matrix/jobs/jobrun where runid='${runId}'`)).toEqual([{ out: "编码" }]);
  monitoring.hosts.behaviour = (_host, _command, { onOutput }) => {
    onOutput?.({ stderr: false, data: Buffer.from([0x61, 0xff]) });
    return {};
  };
  const marked = await (await monitoring.runs.execute(admin, "chosen@d", {})).finished;
  expect(marked).toMatchObject([
    { output: "a\ufffd", message: "1 character of the output is no gbk, as argenc says." },
  ]);
  const [sent] = monitoring.hosts.sent;
  expect(sent?.command).toMatchObject({ line: expect.stringContaining("\\0261\\0340") as string });
  for (const [argenc, reason] of [
    ["klingon", "no encoding"],
    ["latin1", "cannot be written"],
  ] as const)
    await expect(define("", { exec: ["echo 编"], argenc })).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining(reason) as string,
    });
});
