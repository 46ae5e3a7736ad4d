import { describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { DEPLOY_MESSAGE_MAX_CHARACTERS, DISPATCH_GRACE_MS } from "../../../common/limits.ts";
import { prove } from "../../../test/helpers/runs/evidence.ts";
import { TestClock, testPrincipal } from "../../../test/helpers/time/runtime.ts";
import type { CommandOutcome } from "../hosts/index.ts";
import type { DeploymentRequest } from "./deployment-requests.ts";
import type { DeploymentService } from "./deployment.ts";
import {
  admin,
  clock,
  sent,
  noted,
  records,
  published,
  hosts,
  rows,
  deployments,
  stores,
  said,
  useDeployments,
  newDeployments,
  deploy,
  settled,
  states,
} from "../../../test/helpers/areas/deployment-world.ts";

useDeployments();

const viewer = testPrincipal("viewer");

test("every host × depot is answered, noted on the host, recorded and notified once", async () => {
  const outcomes = await deploy({ hosts: ["h1", "h2", "h1"], depots: ["web", "db"], versions: ["1.0.0", "2.0.0"] });
  expect(states(outcomes)).toEqual([
    ["h1", "web", "ok"],
    ["h1", "db", "ok"],
    ["h2", "web", "ok"],
    ["h2", "db", "ok"],
  ]);
  expect(noted).toHaveLength(4);
  expect(noted).toContainEqual({ host: "h1", name: "db", version: "2.0.0", present: true });
  expect(
    records.map(({ path, record }) => [
      path,
      record.values["action"],
      record.values["host"],
      record.values["depot"],
      record.values["state"],
    ]),
  ).toEqual(outcomes.map(({ host, depot }) => ["/matrix/system/deployment", "deploy", host, depot, "ok"]));
  expect(new Set(records.map(({ record }) => record.identity)).size).toBe(4);
  expect(published.map(({ subject, source, keyspace }) => [subject, source, keyspace]).sort()).toEqual([
    ["deployment", "h1", "/matrix"],
    ["deployment", "h1", "/matrix"],
    ["deployment", "h2", "/matrix"],
    ["deployment", "h2", "/matrix"],
  ]);
  expect(new Set(sent.map(({ commandId }) => commandId)).size).toBe(4);
});

test("the request's command and folder go before the depot's own", async () => {
  await deploy();
  await deploy({ command: "make", remotepath: "/opt//web/" });
  expect(sent.map(({ command }) => command)).toMatchObject([
    { kind: "deploy", command: "own" },
    { kind: "deploy", command: "make", remotePath: "/opt/web" },
  ]);
  expect(sent[0]?.command).not.toHaveProperty("remotePath");
});

test("undeploying takes the depot off the host record, also a version that is kept nowhere any more", async () => {
  const request = { depots: ["none"], versions: ["1.0.0"], command: "stop" };
  const outcomes = await deployments.undeploy(admin, { ...request, hosts: ["h9"] });
  expect(states(outcomes)).toEqual([["h9", "none", "ok"]]);
  expect(sent[0]?.command).toEqual({ kind: "undeploy", name: "none", version: "1.0.0", command: "stop" });
  expect(noted).toEqual([{ host: "h9", name: "none", version: "1.0.0", present: false }]);
  await expect(deployments.undeploy(admin, { ...request, hosts: ["h1", "h2"] })).rejects.toMatchObject({
    code: "not_found",
    message: "There is no depot none, and none of these hosts has it.",
  });
  expect(sent).toHaveLength(1);
});

describe("a host that does not do well", () => {
  test("is unknown, broken, offline or failing: one state each, and only success is noted", async () => {
    hosts.behaviour = ({ host }) => {
      if (host === "h2") throw new AppError("not_found", "no such host");
      if (host === "h3") throw new Error("broken transport");
      if (host === "h4") return { state: "unreachable", message: "offline" };
      return host === "h5" ? { state: "failed", code: 2, message: "exit code 2" } : {};
    };
    const outcomes = await deploy({ hosts: ["h1", "h2", "h3", "h4", "h5"] });
    expect(outcomes.map(({ state }) => state)).toEqual(["ok", "unreachable", "failed", "unreachable", "failed"]);
    expect(outcomes.map(({ message }) => message)).toEqual([
      "",
      "There is no host h2.",
      "broken transport",
      "offline",
      "exit code 2",
    ]);
    expect(outcomes[4]?.code).toBe(2);
    expect(noted).toHaveLength(1);
    expect(records).toHaveLength(5);
  });

  test("and says nothing ends as timeout by the deadline; what waited behind it too", async () => {
    hosts.behaviour = () => new Promise(() => {});
    const deploying = deploy({
      hosts: ["h1", "h2"],
      depots: ["web", "db"],
      versions: ["1.0.0", "1.0.0"],
      timeoutSeconds: 5,
    });
    await settled();
    expect(sent.map(({ timeoutMs }) => timeoutMs)).toEqual([5_000, 5_000]);
    clock.advance(5_000 + DISPATCH_GRACE_MS);
    expect(states(await deploying)).toEqual([
      ["h1", "web", "timeout"],
      ["h1", "db", "timeout"],
      ["h2", "web", "timeout"],
      ["h2", "db", "timeout"],
    ]);
    expect(sent).toHaveLength(2);
    expect(clock.waiting).toBe(0);
  });
});

describe("a controller that goes away in the middle", () => {
  const later = () => newDeployments(new TestClock(clock.nowMs() + 200_000));
  const open = () => stores.keys("matrix", "deployments/");

  test("leaves a record of what was meant: another one ends it as the agents said, or as expired", async () => {
    hosts.behaviour = () => new Promise(() => {});
    void deploy({ hosts: ["h1", "h2"] });
    await settled();
    said.set(sent.find(({ host }) => host === "h1")?.commandId ?? "", {
      host: "h1",
      state: "ok",
      code: 0,
      message: "",
      startedMs: 1,
      endedMs: 2,
    });
    await newDeployments(clock).maintain("matrix");
    expect(records).toEqual([]);
    await later().maintain("matrix");
    expect(
      records.map(({ record }) => [record.values["host"], record.values["depot"], record.values["state"]]),
    ).toEqual([
      ["h1", "web", "ok"],
      ["h2", "web", "expired"],
    ]);
    expect(noted).toEqual([{ host: "h1", name: "web", version: "1.0.0", present: true }]);
    expect(open()).toEqual([]);
  });

  test("changes nothing when it wakes: what was decided meanwhile is what its caller is told", async () => {
    let wake: (outcome: Partial<CommandOutcome>) => void = () => undefined;
    hosts.behaviour = () => new Promise((resolve) => (wake = resolve));
    const deploying = deploy();
    await settled();
    await later().maintain("matrix");
    wake({});
    expect(states(await deploying)).toEqual([["h1", "web", "expired"]]);
    expect(records.map(({ record }) => record.values["state"])).toEqual(["expired"]);
  });

  test("after it had decided: the rows follow, once", async () => {
    rows.failure = new AppError("unavailable", "away");
    await deploy();
    rows.failure = undefined;
    for (let time = 0; time < 2; time++) await newDeployments(clock).maintain("matrix");
    expect(records.map(({ record }) => record.values["state"])).toEqual(["ok"]);
    prove("deployment-one-final-state", {
      cases: ["dies in the middle", "sleeps through its deadline", "dies before the rows"],
    });
  });
});

test("a message of a host is cut at a character, and half of one does not hold up the record", async () => {
  const longest = `${"x".repeat(DEPLOY_MESSAGE_MAX_CHARACTERS - 1)}\u{1F600}`;
  const messages: Readonly<Record<string, string>> = { h1: longest, h2: "a\ud83d" };
  hosts.behaviour = ({ host }) => ({ state: "failed", code: 1, message: messages[host] ?? "" });
  await deploy({ hosts: ["h1", "h2"] });
  const said = records.map(({ record }) => record.values["message"]).sort();
  expect(said).toEqual(["a\\ud83d", longest.slice(0, -2)]);
});

test("no more than the named number of hosts is worked on at a time", async () => {
  let working = 0;
  let most = 0;
  hosts.behaviour = async () => {
    most = Math.max(most, ++working);
    await settled();
    working--;
    return {};
  };
  await deploy({ hosts: Array.from({ length: 100 }, (_, at) => `h${at}`) });
  expect(most).toBe(32);
});

test("records that cannot be written do not take the answer away", async () => {
  rows.failure = new AppError("unavailable", "away");
  expect(states(await deploy())).toEqual([["h1", "web", "ok"]]);
});

test.each<[Partial<DeploymentRequest>, string]>([
  [{ versions: [] }, "1 depot but 0 versions"],
  [{ depots: ["a", "b"] }, "2 depots but 1 version;"],
  [{ hosts: [] }, "hosts is empty"],
  [{ depots: [], versions: [] }, "depots is empty"],
  [{ depots: ["none"] }, "no depot none"],
  [{ remotepath: "opt/web" }, "not absolute"],
  [{ remotepath: "/opt/../etc" }, "leaves"],
  [{ remotepath: "/" }, "root folder"],
  [{ hosts: Array.from({ length: 2_001 }, (_, at) => `h${at}`) }, "2000 hosts"],
])("a request with %j is refused and nothing is sent", async (request, reason) => {
  await expect(deploy(request)).rejects.toThrow(reason);
  expect(sent).toEqual([]);
  expect(records).toEqual([]);
});

test("undeploying refuses names that are paths", async () => {
  const request = { hosts: ["h1"], depots: ["../web"], versions: ["1.0.0"] };
  await expect(deployments.undeploy(admin, request)).rejects.toMatchObject({ code: "invalid" });
});

test("a viewer deploys nothing", async () => {
  await expect(deploy({}, viewer)).rejects.toMatchObject({ code: "denied" });
  await expect(
    deployments.undeploy(viewer, { hosts: ["h1"], depots: ["web"], versions: ["1.0.0"] }),
  ).rejects.toMatchObject({ code: "denied" });
  expect(sent).toEqual([]);
});

test("work that is about no depot has the same record and notification, and changes no host record", async () => {
  const none = { kind: "none", state: "failed", message: "no settings" } as const;
  const start = { kind: "exec", line: "start" } as const;
  hosts.behaviour = ({ onOutput }) => {
    onOutput?.({ stderr: false, data: Buffer.from("broken\n") });
    return { state: "failed", code: 3, pid: 4711, message: "The command ended with code 3." };
  };
  const work = [
    { host: "h1", depot: "", version: "", command: start },
    { host: "h2", depot: "", version: "", command: none },
  ];
  const outcomes = await deployments.carryOut(admin, work, { action: "start", timeoutSeconds: 5 });
  expect(outcomes.map(({ host, state, message }) => [host, state, message])).toEqual([
    ["h1", "failed", "The command ended with code 3: broken"],
    ["h2", "failed", "no settings"],
  ]);
  expect(sent.map(({ host, timeoutMs }) => [host, timeoutMs])).toEqual([["h1", 5_000]]);
  const rowsOf = records.map(({ record: { values } }) => [
    values["host"],
    values["action"],
    values["depot"],
    values["code"],
  ]);
  expect(rowsOf.sort()).toEqual([
    ["h1", "start", "", 3],
    ["h2", "start", "", null],
  ]);
  expect(records.filter(({ record }) => "pid" in record.values)).toEqual([]);
  expect([published.map(({ title }) => title), noted]).toEqual([["start", "start"], []]);
});

test("work that is about no depot is ended by another controller as its agent said; its late reports are heard", async () => {
  hosts.behaviour = () => new Promise(() => {});
  const commandOf = (host: string) => ({ host, depot: "", version: "", command: { kind: "exec", line: "x" } as const });
  void deployments.carryOut(admin, [commandOf("h1"), commandOf("h2")], { action: "restart" });
  await settled();
  const [first, second] = sent.map(({ commandId }) => commandId);
  expect(await deployments.gave("matrix", "h1", first ?? "")).toBe(true);
  said.set(first ?? "", { host: "h1", state: "ok", code: 0, pid: 1, message: "", startedMs: 1, endedMs: 2 });
  await newDeployments(new TestClock(clock.nowMs() + 200_000)).maintain("matrix");
  expect(records.map(({ record }) => [record.values["action"], record.values["state"]])).toEqual([
    ["restart", "ok"],
    ["restart", "expired"],
  ]);
  expect(records[0]?.record.values).not.toHaveProperty("pid");
  expect([await deployments.gave("matrix", "h2", second ?? ""), noted]).toEqual([true, []]);
});

type By = Parameters<DeploymentService["goesOn"]>[1];

test("what a user began is told until it is over, to who may see it", async () => {
  const [ann, bob] = ["ann", "bob"].map((name) => (user: string) => Promise.resolve(user === name)) as [By, By];
  let finish = (): void => undefined;
  hosts.behaviour = () => new Promise((resolve) => (finish = () => resolve({})));
  const answer = deploy({ hosts: ["h1", "h2"] }, { ...admin, user: "ann" });
  await expect.poll(() => sent.length).toBe(2);
  const [deployment] = await deployments.goesOn(admin, ann);
  expect(deployment).toMatch(/^\w{26}$/);
  expect(await deployments.goesOn(admin, ann)).toHaveLength(1);
  expect(await deployments.goesOn(admin, bob)).toEqual([]);
  expect(await deployments.goesOn(testPrincipal("administrator", "second"), ann)).toEqual([]);
  expect(await deployments.goesOn({ ...admin, grants: ["users:write"] }, ann)).toEqual([]);
  expect(await deployments.goesOn({ ...admin, data: [] }, ann)).toEqual([]);
  await expect(deployments.goesOn(viewer, ann)).rejects.toMatchObject({ code: "denied" });
  clock.advance(3_600_000);
  finish();
  await answer;
  expect(await deployments.goesOn(admin, ann)).toEqual([]);
});
