import { expect, test } from "vitest";
import { isAppError } from "../../../common/errors.ts";
import { noClasses } from "../../../test/helpers/memory-objects.ts";
import { seededRandom } from "../../../test/helpers/clock.ts";
import { onCluster, openTestEngine } from "../../../test/helpers/engine.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/runtime.ts";
import { again } from "../../store/contract/harness.ts";
import type { Rule } from "../rules/index.ts";
import { PolicyService } from "./service.ts";

const admin = testPrincipal();
const HOSTS = ["h1", "h2", "h3", "h4"];
const NAMES = ["a", "b"];
const STEPS = 60;

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
    const policies = new PolicyService({
      stores: engine,
      runtime: testRuntime(),
      rules: { load: () => Promise.resolve({} as Rule) },
      objects: noClasses(),
      hosts: { exists: () => Promise.resolve(true), refresh: () => undefined },
      depots: {
        deployable: () => Promise.reject(new Error("not asked")),
        toDeploy: () => Promise.reject(new Error("not asked")),
        beforeRemove: () => undefined,
        onReplaced: () => undefined,
      },
    });
    const spec = (name: string, interval: number) =>
      ({
        kind: "command",
        name,
        rule: "/matrix/rules/a",
        command: "true",
        ctype: 1,
        interval,
        unit: "second",
      }) as const;
    const wanted = new Map<string, { hosts: readonly string[]; deployed: boolean }>();
    for (let step = 0; step < STEPS; step++) {
      const name = one(NAMES);
      const now = wanted.get(name);
      const roll = random.next();
      if (now === undefined || roll < 0.4) {
        const hosts = HOSTS.filter(() => random.next() < 0.5);
        await insist(() => policies.save(admin, { spec: spec(name, 1 + (step % 3)), hosts }));
        wanted.set(name, { hosts, deployed: hosts.length > 0 });
      } else if (roll < 0.6) {
        await insist(() => policies.undeploy(admin, name));
        wanted.set(name, { ...now, deployed: false });
      } else if (roll < 0.85) {
        const host = one(HOSTS);
        await insist(() => policies.deploy(admin, name, [host]));
        wanted.set(name, { hosts: [...new Set([...now.hosts, host])], deployed: true });
      } else {
        await insist(() => policies.remove(admin, name));
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
