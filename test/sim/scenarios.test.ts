import { expect, it } from "vitest";
import { History, type HistoryOptions } from "./history.ts";
import { account } from "./run.ts";
import { ADMIN, template } from "./template.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const TIMEOUT_MS = 300_000;

async function begun(policies: readonly string[], options: Partial<HistoryOptions> = {}): Promise<History> {
  const history = new History({ seed: 1, template: await template(), controllers: 1, hosts: 1, ...options });
  await history.begin(policies);
  return history;
}

async function rowsOf(history: History, path: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const rows: Readonly<Record<string, unknown>>[] = [];
  const [services] = history.controllers.flatMap((controller) => controller.services ?? []);
  const read = async (): Promise<void> => {
    if (services)
      for await (const page of services.objects.unrestricted.read(ADMIN, { class: path, subtree: false }))
        rows.push(...page.map((row) => row.values));
  };
  await history.world.settle(read());
  return rows;
}

it(
  "a controller that is away for an hour gets every run of a policy that runs each second, and every line",
  async () => {
    const history = await begun(["beat"], { outboxBytes: 64 * 1024 * 1024 });
    await history.world.advance(MINUTE_MS);
    history.controllers[0]?.kill();
    await history.world.advance(HOUR_MS);
    await history.heal();
    expect(await account(history)).toEqual([]);
    const runs = await rowsOf(history, "/matrix/system/policyrun");
    expect(runs.length).toBeGreaterThanOrEqual(HOUR_MS / 1_000);
    // The last run may have been in progress when the policy was removed.
    expect(runs.filter(({ state }) => state !== "ok").length).toBeLessThanOrEqual(1);
    expect(await rowsOf(history, "/matrix/system/policygap")).toEqual([]);
  },
  TIMEOUT_MS,
);

it(
  "an hour that is too much for the outbox ends in runs, and in gaps that count the others",
  async () => {
    const history = await begun(["beat"]);
    await history.world.advance(MINUTE_MS);
    history.controllers[0]?.kill();
    await history.world.advance(HOUR_MS);
    await history.heal();
    await history.world.advance(MINUTE_MS);
    expect(await account(history)).toEqual([]);
    const gaps = await rowsOf(history, "/matrix/system/policygap");
    expect(gaps.length).toBeGreaterThan(0);
    const skipped = gaps.reduce((sum, { count }) => sum + Number(count), 0);
    expect(skipped + (await rowsOf(history, "/matrix/system/policyrun")).length).toBeGreaterThanOrEqual(
      HOUR_MS / 1_000,
    );
  },
  TIMEOUT_MS,
);

it(
  "a policy that is taken off after an hour in a full outbox leaves no due time uncounted",
  async () => {
    const history = await begun(["beat"]);
    await history.world.advance(MINUTE_MS);
    history.controllers[0]?.kill();
    await history.world.advance(HOUR_MS);
    await history.heal();
    const takenOffMs = history.world.nowMs;
    expect(await account(history)).toEqual([]);
    const gaps = await rowsOf(history, "/matrix/system/policygap");
    expect(Math.max(...gaps.map(({ etime }) => Number(etime)))).toBeGreaterThanOrEqual(
      Math.floor(takenOffMs / 1_000) * 1_000,
    );
  },
  TIMEOUT_MS,
);

it(
  "an agent's clock that jumps ahead and back again leaves no due time out and none doubled",
  async () => {
    const history = await begun(["tick"]);
    const [host] = history.hosts;
    for (const jumpMs of [10 * MINUTE_MS, -10 * MINUTE_MS, 1_500, -1_500]) {
      // Jumps between two runs.
      await history.world.advance(MINUTE_MS + 1_000);
      if (host) host.skew.ms += jumpMs;
    }
    await history.world.advance(12 * MINUTE_MS);
    expect(await account(history)).toEqual([]);
    const gaps = await rowsOf(history, "/matrix/system/policygap");
    expect(gaps).toContainEqual(expect.objectContaining({ reason: "clock_jump", count: 200 }));
  },
  TIMEOUT_MS,
);

it(
  "a certificate that is renewed on the way costs nothing",
  async () => {
    // Two thirds of its lifetime end one minute after the start.
    const history = await begun(["beat", "tail"], { laterMs: 16 * HOUR_MS - 12 * MINUTE_MS, tracing: true });
    await history.world.advance(5 * MINUTE_MS);
    const renewed = history.world.trace.filter((line) => line.includes("certificate renewed"));
    const sessions = history.world.trace.filter((line) => line.includes("h1 info connected"));
    expect(renewed).toHaveLength(1);
    expect(sessions).toHaveLength(2);
    expect(await account(history)).toEqual([]);
    expect((await rowsOf(history, "/matrix/system/policyrun")).every(({ state }) => state !== "failed")).toBe(true);
  },
  TIMEOUT_MS,
);

it.each(Array.from({ length: 30 }, (_, at) => at + 1))(
  "a controller held up at the %ith write of a batch does no harm when it goes on",
  async (nth) => {
    const history = await begun(["tick", "tail"], { seed: nth, controllers: 2 });
    const { world, controllers, network } = history;
    await world.advance(5_000);
    const holder = controllers.find(({ services }) => services?.hosts.agents.sessionCount === 1);
    let writes = 0;
    if (holder) {
      holder.onCall = (name) => {
        if (!/append|kv\.get rule-text/.test(name) || (writes += 1) !== nth) return;
        holder.pause();
        history.editRule();
        world.after(world.between(1_000, 60_000), "goes on", () => holder.resume());
      };
    }
    network.latency = { fromMs: 1, toMs: 300 };
    history.runJob({ ms: 8_000, lines: 5, code: 0, timeoutS: 30 });
    await world.advance(90_000);
    expect(writes).toBeGreaterThanOrEqual(nth);
    await history.heal();
    expect(await account(history)).toEqual([]);
  },
  TIMEOUT_MS,
);
