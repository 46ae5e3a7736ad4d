import { describe, expect, test } from "vitest";
import { DEPLOY_DEPOTS_MAX, DEPLOY_LATE_PER_HOST_MAX, DISPATCH_GRACE_MS } from "../../../common/limits.ts";
import type { CommandOutcome } from "../hosts/index.ts";
import {
  clock,
  sent,
  noted,
  records,
  hosts,
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

describe("a host that answers after the deadline", () => {
  const timedOut = async (version: string) => {
    hosts.behaviour = () => new Promise(() => {});
    const deploying = deploy({ versions: [version], timeoutSeconds: 5 });
    await settled();
    clock.advance(5_000 + DISPATCH_GRACE_MS);
    expect(states(await deploying)).toEqual([["h1", "web", "timeout"]]);
    return sent.at(-1)?.commandId ?? "";
  };
  const says = async (commandId: string, state: CommandOutcome["state"]) => {
    expect(await newDeployments(clock).gave("matrix", "h1", commandId)).toBe(true);
    said.set(commandId, { host: "h1", state, message: "", startedMs: 1, endedMs: 2 });
  };
  const maintain = () => newDeployments(clock).maintain("matrix");

  test("is heard, and its record shows what is there; the deployment's own record stays", async () => {
    const commandId = await timedOut("1.0.0");
    await maintain();
    expect(noted).toEqual([]);
    await says(commandId, "ok");
    for (let time = 0; time < 2; time++) await maintain();
    expect(noted).toEqual([{ host: "h1", name: "web", version: "1.0.0", present: true }]);
    expect(records.map(({ record }) => record.values["state"])).toEqual(["timeout"]);
    // An agent may report it again.
    expect(await deployments.gave("matrix", "h1", commandId)).toBe(true);
    expect(await deployments.gave("matrix", "h2", commandId)).toBe(false);
    expect(await deployments.gave("matrix", "h1", `${commandId.slice(0, -1)}_`)).toBe(false);
  });

  test("while the deployment is being ended is heard as well", async () => {
    const commandId = await timedOut("1.0.0");
    said.set(commandId, { host: "h1", state: "ok", message: "", startedMs: 1, endedMs: 2 });
    await maintain();
    expect(noted).toHaveLength(1);
  });

  test("a day later is heard", async () => {
    const commandId = await timedOut("1.0.0");
    clock.advance(86_400_000);
    await says(commandId, "ok");
    await maintain();
    expect(noted).toHaveLength(1);
  });

  test("that it failed changes nothing", async () => {
    await says(await timedOut("1.0.0"), "failed");
    await maintain();
    expect(noted).toEqual([]);
  });

  test("is heard, but no more believed once another deployment of the depot has ended", async () => {
    const first = await timedOut("1.0.0");
    clock.advance(1_000);
    hosts.behaviour = () => ({});
    await deploy({ versions: ["2.0.0"] });
    await says(first, "ok");
    await maintain();
    expect(noted).toEqual([{ host: "h1", name: "web", version: "2.0.0", present: true }]);
    expect(await deployments.gave("matrix", "h1", first)).toBe(true);
  });

  test("is not believed while another deployment of the depot is under way", async () => {
    const first = await timedOut("1.0.0");
    const deploying = deploy({ versions: ["2.0.0"], timeoutSeconds: 5 });
    await settled();
    await says(first, "ok");
    await maintain();
    expect(noted).toEqual([]);
    clock.advance(5_000 + DISPATCH_GRACE_MS);
    await deploying;
    await says(sent.at(-1)?.commandId ?? "", "ok");
    await maintain();
    expect(noted).toEqual([{ host: "h1", name: "web", version: "2.0.0", present: true }]);
  });

  test("of ever so many commands the latest are remembered", async () => {
    const first = await timedOut("1.0.0");
    const depots = Array.from({ length: DEPLOY_DEPOTS_MAX }, (_, at) => `d${at}`);
    for (let count = 0; count < DEPLOY_LATE_PER_HOST_MAX; count += depots.length) {
      hosts.behaviour = () => new Promise(() => {});
      const deploying = deploy({ depots, versions: depots.map(() => "1.0.0"), timeoutSeconds: 5 });
      await settled();
      clock.advance(5_000 + DISPATCH_GRACE_MS);
      await deploying;
    }
    expect(await deployments.gave("matrix", "h1", first)).toBe(false);
    await maintain();
    expect(stores.keys("matrix", "latedeployments/").length).toBeLessThanOrEqual(DEPLOY_LATE_PER_HOST_MAX);
  });
});
