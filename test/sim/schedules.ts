import { parseSchedule } from "../../common/schedule/index.ts";
import type { Assembly } from "../../controller/assembly.ts";
import type { ScheduleState } from "../../controller/areas/jobs/schedule/firings.ts";
import { definitionKey, scheduleKey, type StoredJob } from "../../controller/areas/jobs/store.ts";
import { decodeStored } from "../../controller/store/format.ts";
import { History } from "./history.ts";
import { trouble, TROUBLE_MS } from "./run.ts";
import { ADMIN, TENANT, template } from "./template.ts";

const SCHEDULES = {
  often: "every 5s;missed=all;overlap=allow",
  queued: "every 7s;missed=all;overlap=queue",
  late: "0/4 * * * * *;missed=all;overlap=allow;jitter=3s",
} as const;
const NAMES = Object.keys(SCHEDULES) as (keyof typeof SCHEDULES)[];
const FINAL = /^(ok|failed|timeout|unreachable|cancelled|expired|interrupted)$/;
const PATIENCE_MS = 600_000;

export interface ScheduleOutcome {
  readonly wrong: readonly string[];
  readonly runs: number;
  readonly trace: readonly string[];
}

/** Runs schedules through a time of faults. Every due time must have exactly one run on every host. */
export async function runSchedules(seed: number, tracing = false): Promise<ScheduleOutcome> {
  const made = await template();
  const history = new History({ seed, template: made, controllers: 2, hosts: seed % 2 === 0 ? 2 : 1, tracing });
  const { world } = history;
  for (const one of history.controllers) one.skew.ms = Math.round(world.between(-2_000, 2_000));
  await history.begin([]);
  await define(history);
  for (let left = 2 + Math.floor(world.random.next() * 4); left > 0; left--)
    world.after(world.between(0, TROUBLE_MS), "plan", trouble(history));
  await world.advance(2 * TROUBLE_MS);
  await history.heal();
  return { ...(await account(history)), trace: world.trace };
}

function servicesOf(history: History): Assembly {
  const [services] = history.controllers.flatMap((controller) => controller.services ?? []);
  if (!services) throw new Error("No controller lives.");
  return services;
}

async function define(history: History): Promise<void> {
  const { jobs } = servicesOf(history);
  const host = history.hosts.map(({ name }) => name);
  for (const [name, schedule] of Object.entries(SCHEDULES)) {
    const exec = ["$ODP_RUN_ID ms=1500 lines=1 code=0"];
    await history.world.settle(jobs.save(ADMIN, { name, exec, host, schedule, timeout: 600 }));
  }
}

async function account(history: History): Promise<Omit<ScheduleOutcome, "trace">> {
  const { world, database, ledger } = history;
  const { kv } = database.tenant(TENANT);
  const untilMs = world.nowMs;
  const stored = <T>(key: string): T => decodeStored<T>(kv.get(key)!.value);
  const state = (name: string) => (kv.get(scheduleKey(name)) ? stored<ScheduleState>(scheduleKey(name)) : undefined);
  const isDecided = () => NAMES.every((name) => (state(name)?.decidedMs ?? 0) >= untilMs);
  if (!(await world.until(isDecided, { withinMs: PATIENCE_MS, stepMs: 1_000 })))
    return { wrong: [`what was due is not decided: ${JSON.stringify(NAMES.map(state))}`], runs: 0 };
  const services = servicesOf(history);
  for (const name of NAMES) await world.settle(services.jobs.enable(ADMIN, name, false));
  const open = () => [...kv.list("jobs/execution/", {}).entries, ...kv.list("jobs/open/", {}).entries].length;
  if (!(await world.until(() => open() === 0, { withinMs: PATIENCE_MS, stepMs: 1_000 })))
    return { wrong: [`${open()} executions and runs are open still`], runs: 0 };
  const rows: Readonly<Record<string, unknown>>[] = [];
  await world.settle(
    (async () => {
      for await (const page of services.objects.unrestricted.read(ADMIN, {
        class: "/matrix/jobs/jobrun",
        subtree: false,
      }))
        rows.push(...page.map(({ values }) => values));
    })(),
  );
  const hosts = history.hosts.map(({ name }) => name);
  const wrong = NAMES.flatMap((name) => {
    const { scheduledMs = 0 } = stored<StoredJob>(definitionKey(name));
    const mine = rows.filter((row) => row["name"] === name);
    return wrongTimes(name, { scheduledMs, decidedMs: state(name)!.decidedMs }, mine).concat(wrongHosts(hosts, mine));
  });
  return { wrong: [...ledger.violations, ...wrong], runs: rows.length };
}

type Rows = readonly Readonly<Record<string, unknown>>[];

/** Each due time must have one run, and there must be no other run. */
function wrongTimes(name: keyof typeof SCHEDULES, { scheduledMs, decidedMs }: Span, rows: Rows): string[] {
  const runs = new Map<number, Set<unknown>>();
  for (const { due, runid } of rows) runs.set(Number(due), (runs.get(Number(due)) ?? new Set()).add(runid));
  const schedule = parseSchedule(SCHEDULES[name], "UTC");
  const wrong: string[] = [];
  for (let ms = schedule?.next(scheduledMs); ms !== undefined && ms <= decidedMs; ms = schedule?.next(ms)) {
    const count = runs.get(ms)?.size ?? 0;
    if (count !== 1) wrong.push(`${name} was run ${count} times for ${new Date(ms).toISOString()}`);
    runs.delete(ms);
  }
  return [...wrong, ...[...runs.keys()].map((ms) => `${name} was run for ${ms}, which is not due`)];
}

interface Span {
  readonly scheduledMs: number;
  readonly decidedMs: number;
}

/** Each run must have each host once, in a final state. */
function wrongHosts(hosts: readonly string[], rows: Rows): string[] {
  const byRun = new Map<unknown, string[]>();
  for (const { runid, host } of rows) byRun.set(runid, [...(byRun.get(runid) ?? []), String(host)]);
  return [
    ...[...byRun].flatMap(([runid, those]) =>
      those.sort().join() === [...hosts].sort().join()
        ? []
        : [`the run ${String(runid)} has the hosts ${those.join()}`],
    ),
    ...rows.filter(({ status }) => !FINAL.test(String(status))).map((row) => `not over: ${JSON.stringify(row)}`),
  ];
}
