import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { mapLimited } from "../../../../common/concurrency.ts";
import {
  DEPLOY_LOST_AFTER_MS,
  DEPLOY_MAX_S,
  DEPLOY_WAIT_BEGIN_MS,
  DEPLOY_WAIT_MAX_MS,
  DEPLOY_WAITS_MAX,
} from "../../../../common/limits.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import {
  admin,
  hosts as behaving,
  newDeployments,
  noted,
  published,
  records,
  said,
  sent,
  useDeployments,
} from "../../../../test/helpers/areas/deployment-world.ts";
import { noClasses } from "../../../../test/helpers/objects/memory/objects.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import type { Principal } from "../../permissions/index.ts";
import type { DeploymentRequest } from "../deployment-requests.ts";
import { WaitingDeployments } from "./service.ts";
import { WaitingStore } from "./store.ts";

useDeployments();

const HOUR_MS = 3_600_000;
let engine: TestEngine;
let clock: TestClock;
/** Hosts whose agents are connected. Others that are not in `gone` are away. */
let online: Set<string>;
/** Hosts without a record. */
let gone: Set<string>;
/** The present rights of the user who asked. */
let present: Principal | undefined;
let waiting: WaitingDeployments;
let deployments: ReturnType<typeof newDeployments>;

beforeAll(async () => {
  engine = await openTestEngine();
});
beforeEach(async () => {
  clock = new TestClock(Date.now());
  const { kv } = await engine.tenant("matrix");
  for (const prefix of ["deploy", "latedeploy"])
    for await (const { key } of entriesUnder(kv, prefix)) await kv.delete(key);
  [online, gone, present] = [new Set(), new Set(), admin];
  ({ waiting, deployments } = controller());
});
afterAll(() => engine[Symbol.asyncDispose]());

/** A controller after a restart, or another one. */
function controller(by = clock) {
  const own = newDeployments(by, engine);
  return {
    deployments: own,
    waiting: new WaitingDeployments({
      deployments: own,
      stores: engine,
      runtime: testRuntime(by),
      authors: { present: () => Promise.resolve(present) },
      objects: { visible: noClasses().visible },
      hosts: {
        agentState: (_principal, host) =>
          Promise.resolve(
            gone.has(host) ? undefined : { hasAgent: true, isOnline: online.has(host), policies: {}, confs: {} },
          ),
        settings: () => Promise.resolve({ isextagent: 0, iszabbix: 0, config: {} }),
      },
    }),
  };
}

const asked = { hosts: ["h1"], depots: ["web"], versions: ["1.0.0"] };

async function begin(
  request: Partial<DeploymentRequest> = {},
  { action = "deploy", waitMs = HOUR_MS }: { action?: "deploy" | "undeploy"; waitMs?: number } = {},
): Promise<string> {
  const { deployment } = await waiting.begin(admin, { ...asked, ...request }, { action, waitMs });
  await waiting.settled();
  return deployment;
}

async function back(host: string, on = waiting): Promise<void> {
  online.add(host);
  on.came("matrix", host);
  await on.settled();
}

const statesOf = async (id: string) => (await waiting.get(admin, id)).hosts.map(({ host, state }) => [host, state]);
const commands = () => sent.map(({ host, command }) => [host, command.kind, "version" in command && command.version]);

test("a host that is away gets it once, when it comes back; the others at once", async () => {
  online.add("h2");
  const id = await begin({ hosts: ["h1", "h2"] });
  expect(await statesOf(id)).toEqual([
    ["h1", "waiting"],
    ["h2", "ok"],
  ]);
  expect((await waiting.list(admin)).map(({ isOpen }) => isOpen)).toEqual([true]);
  await back("h1");
  await back("h1");
  await waiting.maintain("matrix");
  await waiting.settled();
  expect(commands()).toEqual([
    ["h2", "deploy", "1.0.0"],
    ["h1", "deploy", "1.0.0"],
  ]);
  expect(await statesOf(id)).toEqual([
    ["h1", "ok"],
    ["h2", "ok"],
  ]);
  expect((await waiting.list(admin)).map(({ isOpen }) => isOpen)).toEqual([false]);
  expect(noted).toHaveLength(2);
  expect(records.map(({ record }) => [record.values["host"], record.values["state"]])).toEqual([
    ["h2", "ok"],
    ["h1", "ok"],
  ]);
  expect(published).toHaveLength(2);
});

test("deployments that wait for one host act in the order of their calls, also one that removes the depot", async () => {
  await begin();
  clock.advance(1);
  await begin({ versions: ["2.0.0"] });
  clock.advance(1);
  await begin({ versions: ["2.0.0"] }, { action: "undeploy" });
  await back("h1");
  expect(commands()).toEqual([
    ["h1", "deploy", "1.0.0"],
    ["h1", "deploy", "2.0.0"],
    ["h1", "undeploy", "2.0.0"],
  ]);
});

test("another controller goes on, and of two that see the host at once only one acts", async () => {
  const id = await begin();
  await waiting.stop();
  const [a, b] = [controller().waiting, controller().waiting];
  await Promise.all([back("h1", a), back("h1", b)]);
  expect(sent).toHaveLength(1);
  expect(await statesOf(id)).toEqual([["h1", "ok"]]);
});

describe("a controller that dies while a host works", () => {
  async function died(): Promise<string> {
    behaving.behaviour = () => new Promise(() => {});
    online.add("h1");
    const { deployment } = await waiting.begin(admin, asked, { action: "deploy", waitMs: 10 * HOUR_MS });
    await expect.poll(() => sent.length).toBe(1);
    expect(await statesOf(deployment)).toEqual([["h1", "running"]]);
    behaving.behaviour = () => ({});
    return deployment;
  }

  async function goOn(): Promise<void> {
    // The clock of the dead controller stands still.
    const other = controller(new TestClock(clock.nowMs() + DEPLOY_MAX_S * 1_000 + DEPLOY_LOST_AFTER_MS));
    await other.deployments.maintain("matrix");
    await other.waiting.maintain("matrix");
    await other.waiting.settled();
  }

  test("is followed by one that sends the same command again, which hosts never run twice", async () => {
    const id = await died();
    await goOn();
    expect(new Set(sent.map(({ commandId }) => commandId)).size).toBe(1);
    expect(await statesOf(id)).toEqual([["h1", "ok"]]);
    expect(records).toHaveLength(1);
  });

  test("is followed by one that takes the result that the agent reported", async () => {
    const id = await died();
    const ended = { host: "h1", state: "failed", code: 3, message: "no", startedMs: 1, endedMs: 2 } as const;
    said.set(sent[0]?.commandId ?? "", ended);
    await goOn();
    expect(sent).toHaveLength(1);
    expect(await statesOf(id)).toEqual([["h1", "failed"]]);
  });

  test("has given its command, so that a report of the agent is accepted", async () => {
    const id = await died();
    expect(await deployments.gave("matrix", "h1", sent[0]?.commandId ?? "")).toBe(true);
    expect(await deployments.gave("matrix", "h1", `deploy/${id}/other`)).toBe(false);
  });
});

test("a host that goes away before it gets the second depot waits for that one only", async () => {
  let isThere = true;
  behaving.behaviour = () => {
    if (!isThere) return { state: "unreachable", message: "offline" };
    isThere = false;
    return {};
  };
  online.add("h1");
  const id = await begin({ depots: ["web", "db"], versions: ["1.0.0", "2.0.0"] });
  expect(await statesOf(id)).toEqual([["h1", "waiting"]]);
  expect(records).toHaveLength(1);
  behaving.behaviour = () => ({});
  await back("h1");
  expect(await statesOf(id)).toEqual([["h1", "ok"]]);
  expect(commands().map(([, , version]) => version)).toEqual(["1.0.0", "2.0.0", "2.0.0"]);
  expect(new Set(sent.map(({ commandId }) => commandId)).size).toBe(2);
  expect(new Set(records.map(({ record }) => record.identity)).size).toBe(2);
});

describe("what ends without being sent is recorded and announced with its reason", () => {
  const recorded = () => records.map(({ record }) => [record.values["state"], record.values["message"]]);

  test("expired: the host does not come back in time, and gets nothing when it comes later", async () => {
    const id = await begin();
    clock.advance(HOUR_MS);
    await waiting.maintain("matrix");
    await back("h1");
    expect(sent).toEqual([]);
    expect(await statesOf(id)).toEqual([["h1", "expired"]]);
    expect(recorded()).toEqual([["expired", "The host did not come back in time."]]);
    expect(published).toHaveLength(1);
  });

  test("cancelled: on the hosts that wait, by a user who may deploy; one that has it keeps it", async () => {
    online.add("h2");
    const id = await begin({ hosts: ["h1", "h2"] });
    await expect(waiting.cancel(testPrincipal("viewer"), id)).rejects.toMatchObject({ code: "denied" });
    for (let time = 0; time < 2; time++) await waiting.cancel(admin, id);
    await back("h1");
    expect(sent).toHaveLength(1);
    expect(await statesOf(id)).toEqual([
      ["h1", "cancelled"],
      ["h2", "ok"],
    ]);
    expect(recorded().at(-1)).toEqual(["cancelled", "administrator cancelled it."]);
    await expect(waiting.cancel(admin, "none")).rejects.toMatchObject({ code: "not_found" });
  });

  test("cancelled also if it runs but does not reach the host", async () => {
    let id = "";
    behaving.behaviour = async () => {
      await waiting.cancel(admin, id);
      return { state: "unreachable", message: "offline" };
    };
    id = await begin();
    await back("h1");
    expect(await statesOf(id)).toEqual([["h1", "cancelled"]]);
  });

  test.each([
    ["the user is gone", () => (present = undefined), "administrator who asked for it does not exist"],
    ["the user lost the right", () => (present = testPrincipal("viewer")), "depots:run"],
    ["the host is gone", () => gone.add("h1"), "There is no host h1."],
  ])("failed: %s", async (_name, change, reason) => {
    const id = await begin();
    change();
    await back("h1");
    expect([sent, await statesOf(id)]).toEqual([[], [["h1", "failed"]]]);
    expect(recorded()).toMatchObject([["failed", expect.stringContaining(reason)]]);
  });
});

test("a call is refused without the right, without hosts or depots that exist, and for too long a time", async () => {
  const options = { action: "deploy", waitMs: HOUR_MS } as const;
  await expect(waiting.begin(testPrincipal("viewer"), asked, options)).rejects.toMatchObject({ code: "denied" });
  await expect(waiting.begin(admin, { ...asked, depots: ["none"] }, options)).rejects.toMatchObject({
    code: "not_found",
  });
  for (const waitMs of [0, DEPLOY_WAIT_MAX_MS + 1])
    await expect(waiting.begin(admin, asked, { ...options, waitMs })).rejects.toMatchObject({ code: "invalid" });
  expect(await waiting.list(admin)).toEqual([]);
});

test(`at most ${DEPLOY_WAITS_MAX} wait`, async () => {
  const store = new WaitingStore(engine);
  const id = await begin();
  const [of, host] = [
    await store.find("matrix", id),
    await store.host({ tenant: "matrix", deployment: id, host: "h1" }),
  ];
  if (!of || !host) throw new Error("nothing is stored");
  const others = Array.from(
    { length: DEPLOY_WAITS_MAX - 1 },
    (_, at) => `${id.slice(0, -4)}Z${String(at).padStart(3, "0")}`,
  );
  await mapLimited(others, 32, (deployment) =>
    store.begin({ ...of.value, deployment }, [{ ...host.value, deployment }]),
  );
  await expect(begin()).rejects.toMatchObject({ code: "too_large" });
});

test("hosts of a deployment whose controller died before it was stored are removed, and nothing runs there", async () => {
  const store = new WaitingStore(engine);
  const id = await begin();
  await store.remove({ tenant: "matrix", deployment: id });
  clock.advance(DEPLOY_WAIT_BEGIN_MS);
  await waiting.maintain("matrix");
  await back("h1");
  expect([sent, await store.oldest("matrix", "h1")]).toEqual([[], undefined]);
});
