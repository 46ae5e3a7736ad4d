import { expect, test } from "vitest";
import { AppError, isAppError } from "../../../common/errors.ts";
import { noClasses } from "../../../test/helpers/objects/memory/objects.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import { again } from "../../store/contract/harness.ts";
import type { Stores } from "../../store/engine.ts";
import type { KvTxn } from "../../store/kv.ts";
import { DepotUsers } from "../depots/index.ts";
import type { Rule } from "../rules/index.ts";
import { PolicyService } from "./service.ts";
import { ALONE, NAMED_HOSTS, noReports } from "../../../test/helpers/hosts/named-hosts.ts";

const admin = testPrincipal();
const HOSTS = ["h1", "h2", "h3", "h4"];
const NAMES = ["a", "b"];
const STEPS = 60;

const serviceOver = (stores: Stores) =>
  new PolicyService({
    targets: NAMED_HOSTS,
    controllers: ALONE,
    limit: { percent: 20, hosts: 5 },
    stores,
    runtime: testRuntime(),
    rules: { load: () => Promise.resolve({} as Rule) },
    objects: noClasses(),
    actAs: () => Promise.reject(new Error("not asked")),
    hosts: {
      wayTo: () => Promise.resolve("agent" as const),
      policyReports: () => noReports(),
      refresh: () => undefined,
      agentState: () => Promise.resolve(undefined),
    },
    depots: {
      toDeploy: () => Promise.reject(new Error("not asked")),
      users: new DepotUsers(),
    },
  });

const specOf = (name: string, interval: number) =>
  ({ kind: "command", name, rule: "/matrix/rules/a", command: "true", ctype: 1, interval, unit: "second" }) as const;

/** Repeats as a person would after an error. What the attempt before removed is no longer found. */
function insist(action: () => Promise<unknown>): Promise<unknown> {
  return again(() =>
    action().catch((error: unknown) => {
      if (!isAppError(error, "not_found")) throw error;
    }),
  );
}

test.each(onCluster ? [1] : [1, 2, 3, 4])(
  "on a store that fails and loses answers the lists of hosts are in the end what the policies say (seed %i)",
  async (seed) => {
    await using engine = await openTestEngine({ faultySeed: seed });
    const random = seededRandom(seed);
    const one = <T>(all: readonly T[]): T => all[Math.floor(random.next() * all.length)] as T;
    const policies = serviceOver(engine);
    const wanted = new Map<string, { hosts: readonly string[]; deployed: boolean }>();
    for (let step = 0; step < STEPS; step++) {
      const name = one(NAMES);
      const now = wanted.get(name);
      const roll = random.next();
      if (now === undefined || roll < 0.4) {
        const hosts = HOSTS.filter(() => random.next() < 0.5);
        await insist(() => policies.save(admin, { spec: specOf(name, 1 + (step % 3)), hosts }));
        wanted.set(name, { hosts, deployed: hosts.length > 0 });
      } else if (roll < 0.6) {
        await insist(() => policies.undeploy(admin, name));
        wanted.set(name, { ...now, deployed: false });
      } else if (roll < 0.85) {
        const host = one(HOSTS);
        await insist(() => policies.deploy(admin, name, [host]));
        wanted.set(name, { hosts: [...new Set([...now.hosts, host])], deployed: true });
      } else {
        await insist(() => policies.remove(admin, name, { force: true }));
        wanted.delete(name);
      }
      for (const host of HOSTS) {
        const expected = NAMES.filter(
          (policy) => wanted.get(policy)?.deployed && wanted.get(policy)?.hosts.includes(host),
        );
        const desired = await again(() => policies.desired("matrix", host));
        expect(
          desired.policies.map((policy) => policy.name),
          `${host} after step ${step}`,
        ).toEqual(expected);
      }
    }
  },
);

test("a change whose every answer is lost is made, and is no conflict", async () => {
  await using engine = await openTestEngine();
  const lossy = async (name: string) => {
    const store = await engine.tenant(name);
    let isTold = false;
    const txn = async (request: KvTxn) => {
      // The repetition is told again, so that each write loses just one answer.
      const answer = await store.kv.txn(request);
      isTold = !isTold;
      if (isTold && answer.ok) throw new AppError("unknown_outcome", "done, not told");
      return answer;
    };
    return { ...store, kv: wrappedKv(store.kv, { txn }) };
  };
  const policies = serviceOver({ system: () => engine.system(), tenant: lossy });
  const desired = async () => (await policies.desired("matrix", "h1")).policies.map(({ name }) => name);
  expect(await policies.save(admin, { spec: specOf("p", 1), hosts: ["h1"] })).toMatchObject({ hosts: ["h1"] });
  expect(await desired()).toEqual(["p"]);
  expect(await policies.undeploy(admin, "p")).toMatchObject({ status: "undeployed" });
  expect(await desired()).toEqual([]);
  expect(await policies.deploy(admin, "p")).toMatchObject({ status: "deployed" });
  expect(await desired()).toEqual(["p"]);
  await policies.remove(admin, "p", { force: true });
  expect([await desired(), await policies.list(admin)]).toEqual([[], []]);
});
