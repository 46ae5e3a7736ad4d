import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { SHUTDOWN_STREAMS_MS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import { realClock } from "../../test/helpers/time/clock.ts";
import type { TestEngine } from "../../test/helpers/engines/engine.ts";
import type { Stores } from "../store/engine.ts";
import type { KvStore } from "../store/kv.ts";
import { openTestHosts } from "../../test/helpers/hosts/hosts.ts";
import { testRuntime } from "../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../test/helpers/engines/wrapped-kv.ts";
import { world, useAgentPort, agentOf, connected } from "../../test/helpers/hosts/agent-port-world.ts";

useAgentPort();

describe("two controllers on one store", () => {
  it("agree on the authority; a session taken over elsewhere ends here", async () => {
    const other = await openTestHosts({ beside: world });
    const { agent, identity, epoch } = await connected("wandering");
    const moved = agentOf(identity, other.agentPort);
    const welcome = await moved.hello();
    expect(welcome.epoch).toBeGreaterThan(epoch);
    expect(await agent.next("refused")).toMatchObject({ code: "conflict" });
    expect(await other.hosts.isOnline("matrix", "wandering")).toBe(true);
    moved.close();
    await other[Symbol.asyncDispose]();
  });

  it("tell their agents when they end, whatever is closed first", async () => {
    // The forced end of remaining streams never comes.
    const after: Clock["after"] = (delayMs, callback) =>
      delayMs === SHUTDOWN_STREAMS_MS ? () => undefined : realClock.after(delayMs, callback);
    const runtime = { ...testRuntime({ ...realClock, after }), random: { next: Math.random, bytes: randomBytes } };
    const brief = await openTestHosts({ beside: world, runtime });
    const agent = agentOf(await world.enrol("left-behind"), brief.agentPort);
    await agent.hello();
    await brief.server.close();
    expect(await agent.next("refused")).toMatchObject({ code: "unavailable" });
    await expect.poll(() => world.hosts.isOnline("matrix", "left-behind"), { timeout: 30_000 }).toBe(false);
    await brief[Symbol.asyncDispose]();
  });

  it("send their agents away when the lease of the sessions is lost, and take them again", async () => {
    const lost: AbortController[] = [];
    let woken = false;
    const stores = (engine: TestEngine): Stores => ({
      tenant: (name) => engine.tenant(name),
      system: async () => {
        const system = await engine.system();
        const lease: KvStore["lease"] = async (ttlMs) => {
          const stop = new AbortController();
          lost.push(stop);
          const granted = await system.kv.lease(ttlMs);
          return {
            id: granted.id,
            lost: stop.signal,
            held: () => !stop.signal.aborted && !woken,
            revoke: () => granted.revoke(),
          };
        };
        return { ...system, kv: wrappedKv(system.kv, { lease }) };
      },
    });
    const lonely = await openTestHosts({ beside: world, stores });
    const identity = await world.enrol("lonely");
    const agent = agentOf(identity, lonely.agentPort);
    const { epoch } = await agent.hello();
    // As after a resume of the controller's machine: the lease has expired by the clock, but no timer has fired yet.
    woken = true;
    const late = lonely.hosts.dispatch(
      lonely.principal(),
      "lonely",
      { kind: "exec", line: "true" },
      { commandId: "late", timeoutMs: 100 },
    );
    expect(await late).toMatchObject({ state: "unreachable" });
    expect(agent.frames.map(({ $case }) => $case)).not.toContain("command");
    woken = false;
    // The first lease belongs to the controller itself.
    lost[1]?.abort();
    expect(await agent.next("refused")).toMatchObject({ code: "unavailable" });
    const again = agentOf(identity, lonely.agentPort);
    expect((await again.hello()).epoch).toBeGreaterThan(epoch);
    expect(lost).toHaveLength(3);
    again.close();
    await lonely[Symbol.asyncDispose]();
  });
});
