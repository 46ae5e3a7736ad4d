import { wrongs } from "./checks.ts";
import { History } from "./history.ts";
import type { Host } from "./host.ts";
import { ADMIN, addressOf, POLICIES, template, type Template } from "./template.ts";

const POLICY_NAMES = POLICIES.map(({ name }) => name);

export interface RunOptions {
  readonly seed: number;
  readonly tracing?: boolean;
}

export interface Outcome {
  readonly seed: number;
  readonly wrong: readonly string[];
  /** The same for the same seed. */
  readonly fingerprint: string;
  readonly events: number;
  readonly trace: readonly string[];
  readonly lines: number;
  readonly jobs: number;
}

export const TROUBLE_MS = 20_000;
/** When all faults have ended, agents are connected again and runs without a holder have ended within this time. */
const PATIENCE_MS = 300_000;

/** Runs one history: a time of work and faults, then calm, then the checks. */
export async function runHistory({ seed, tracing }: RunOptions): Promise<Outcome> {
  const made: Template = await template();
  const history = new History({
    seed,
    template: made,
    controllers: seed % 5 < 2 ? 2 : 1,
    hosts: seed % 3 === 0 ? 2 : 1,
    ...(tracing === undefined ? {} : { tracing }),
  });
  const { world } = history;
  // Every clock is wrong.
  for (const one of [...history.controllers, ...history.hosts]) one.skew.ms = Math.round(world.between(-5_000, 5_000));
  await history.begin(seed % 4 === 0 ? ["tick", "tail"] : ["tick"]);
  for (let left = 2 + Math.floor(world.random.next() * 5); left > 0; left--) plan(history, trouble(history));
  for (let left = Math.floor(world.random.next() * 4); left > 0; left--) plan(history, () => job(history));
  if (world.chance(0.3)) plan(history, () => history.editRule());
  await world.advance(TROUBLE_MS);
  await history.heal();
  const wrong = await account(history);
  world.note(wrong.length === 0 ? "all is right" : wrong.join("; "));
  const { fingerprint, events, trace } = world;
  return { seed, wrong, fingerprint, events, trace, lines: history.ledger.printed.size, jobs: history.jobs.length };
}

/** Runs the action at a random time of the first part. */
function plan({ world }: History, action: () => void): void {
  world.after(world.between(0, TROUBLE_MS), "plan", action);
}

function job(history: History): void {
  const { world } = history;
  const ms = Math.round(world.between(100, 20_000));
  history.runJob({
    ms,
    lines: Math.floor(world.random.next() * 5),
    code: world.chance(0.8) ? 0 : 3,
    timeoutS: Math.round(world.between(2, 40)),
  });
}

/** Causes a temporary fault. */
export function trouble(history: History): () => void {
  const { world, network, controllers, hosts } = history;
  const [controller, host] = [
    world.pick([controllers[0]!, ...controllers.slice(1)]),
    world.pick([hosts[0]!, ...hosts.slice(1)]),
  ];
  const lastsMs = world.between(0, 1) ** 2 * 40_000;
  const later = (action: () => unknown): void => void world.after(lastsMs, "trouble ends", () => void action());
  const address = addressOf(controller.name);
  return world.pick([
    () => {
      host.kill(world.chance(0.5));
      later(() => begin(host));
    },
    () => {
      controller.kill();
      later(() => (controller.process?.alive ? undefined : controller.start()));
    },
    () => {
      controller.pause();
      later(() => controller.resume());
    },
    () => network.cut(host.name, address, world.chance(0.5)),
    () => {
      network.partition(host.name, address);
      later(() => network.heal());
    },
    () => {
      Object.assign(controller.faults, {
        slow: 0.3,
        slowMaxMs: world.between(10, 2_000),
        away: world.chance(0.3) ? 0.5 : 0.05,
        unknown: 0.1,
      });
      later(() => Object.assign(controller.faults, { slow: 0, away: 0, unknown: 0 }));
    },
    () => {
      network.latency = { fromMs: 1, toMs: world.between(10, 3_000) };
      later(() => (network.latency = { fromMs: 0.2, toMs: 5 }));
    },
  ]);
}

function begin(host: Host): void {
  if (!host.running) host.start();
}

/** Brings everything to its end and checks the results. */
export async function account(history: History): Promise<readonly string[]> {
  const { world, controllers, hosts, ledger } = history;
  const [services] = controllers.flatMap((controller) => controller.services ?? []);
  if (!services) return ["no controller lives"];
  for (const name of POLICY_NAMES) await world.settle(services.policies.undeploy(ADMIN, name));
  const patience = { withinMs: PATIENCE_MS, stepMs: 1_000 };
  const idle = await world.until(
    () => hosts.every(({ name, linked }) => linked && ledger.policies.get(name) === 0),
    patience,
  );
  if (!idle) return [`not all agents came back within ${PATIENCE_MS} ms`];
  await world.until(() => history.jobs.every(({ told, hosts: wanted }) => told.size === wanted.length), {
    withinMs: 240_000,
    stepMs: 5_000,
  });
  const left: string[] = [];
  for (const host of hosts) left.push(...(await ended(history, host)));
  return [...left, ...(await world.settle(wrongs(history, services)))];
}

/** Stops the agent in good order; all its entries must be acknowledged by then. */
async function ended({ world }: History, host: Host): Promise<readonly string[]> {
  await world.settle(host.stop());
  const { acknowledged, next } = await world.settle(host.unsent());
  return acknowledged === next - 1
    ? []
    : [`${host.name} has written ${next - 1} entries, ${acknowledged} are acknowledged`];
}
