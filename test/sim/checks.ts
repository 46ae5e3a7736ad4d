import type { CommandPolicySpec } from "../../common/api/policies.ts";
import type { Assembly } from "../../controller/assembly.ts";
import type { ObjectRow } from "../../controller/areas/objects/index.ts";
import type { History } from "./history.ts";
import { ADMIN, POLICIES } from "./template.ts";

const FINAL = new Set(["ok", "failed", "timeout", "unreachable", "cancelled", "expired"]);

/** Returns every broken promise in the results of a history; empty if all were kept. */
export async function wrongs(history: History, services: Assembly): Promise<readonly string[]> {
  const rows = (path: string): Promise<readonly ObjectRow[]> => readAll(services, path);
  const lines = [...(await rows("/matrix/line")), ...(await rows("/matrix/line2"))];
  const runs = await rows("/matrix/system/policyrun");
  const gaps = await rows("/matrix/system/policygap");
  return [
    ...history.ledger.violations,
    ...wrongLines(history, lines, runs),
    ...(await rows("/matrix/consolelog/rule")).map(({ values }) => `a record was not parsed: ${String(values.msg)}`),
    ...history.hosts.flatMap(({ name }) =>
      POLICIES.flatMap((policy) => (policy.isdaemon ? [] : wrongRuns({ host: name, policy }, runs, gaps))),
    ),
    ...gaps
      .filter(({ values }) => values.unit === "entries")
      .map(({ values }) => `entries of ${String(values.source)} are missing: ${String(values.count)}`),
    ...wrongJobs(history, await rows("/matrix/jobs/jobrun"), await rows("/matrix/system/command")),
  ];
}

async function readAll({ objects }: Assembly, path: string): Promise<readonly ObjectRow[]> {
  const rows: ObjectRow[] = [];
  for await (const page of objects.unrestricted.read(ADMIN, { class: path, subtree: false })) rows.push(...page);
  return rows;
}

/** Each line must be stored once: every line that the agent took from a daemon, and as many as the runs report. */
function wrongLines({ ledger }: History, lines: readonly ObjectRow[], runs: readonly ObjectRow[]): string[] {
  const stored = new Map<string, number>();
  for (const { values } of lines) {
    const text = `${String(values.name)},${String(values.n)}`;
    stored.set(text, (stored.get(text) ?? 0) + 1);
  }
  const told = runs.reduce((sum, { values }) => sum + Number(values.records), 0);
  const whole = [...ledger.taken].filter((line) => line.includes(".tail,"));
  return [
    ...[...stored].filter(([, count]) => count !== 1).map(([line, count]) => `${line} is there ${count} times`),
    ...[...stored.keys()].filter((line) => !ledger.printed.has(line)).map((line) => `${line} was never printed`),
    ...whole.filter((line) => !stored.has(line)).map((line) => `${line} was taken and is not there`),
    ...(told === lines.length ? [] : [`the runs speak of ${told} records, there are ${lines.length}`]),
  ];
}

/** Every due time between the first and the last recorded one must have one run, or be inside one gap. */
function wrongRuns(
  { host, policy }: { host: string; policy: CommandPolicySpec },
  runs: readonly ObjectRow[],
  gaps: readonly ObjectRow[],
): string[] {
  const mine = (row: ObjectRow): boolean => row.values.host === host && row.values.policy === policy.name;
  const intervalMs = policy.interval * 1_000;
  const covered = new Map<number, number>();
  const cover = (timeMs: number): void => void covered.set(timeMs, (covered.get(timeMs) ?? 0) + 1);
  const wrong: string[] = [];
  for (const { values } of runs.filter(mine)) cover(Number(values.scheduled));
  for (const { values } of gaps.filter(mine)) {
    let count = 0;
    for (let timeMs = Number(values.stime); timeMs <= Number(values.etime); timeMs += intervalMs, count++)
      cover(timeMs);
    if (count !== values.count) wrong.push(`a gap of ${host} counts ${String(values.count)} where ${count} were due`);
  }
  const times = [...covered.keys()].sort((a, b) => a - b);
  const [first = 0, last = -1] = [times[0], times.at(-1)];
  for (let timeMs = first; timeMs <= last; timeMs += intervalMs) {
    const count = covered.get(timeMs) ?? 0;
    if (count !== 1) wrong.push(`the run of ${host} at ${timeMs / 1_000} is accounted for ${count} times`);
    covered.delete(timeMs);
  }
  return [...wrong, ...[...covered.keys()].map((timeMs) => `${host} ran at ${timeMs / 1_000}, which was not due`)];
}

/** Each started target must have one row, in the final state that the caller was told, and have run at most once. */
function wrongJobs({ jobs, ledger }: History, rows: readonly ObjectRow[], results: readonly ObjectRow[]): string[] {
  const wrong: string[] = [];
  for (const { values } of rows)
    if (!FINAL.has(String(values.status)))
      wrong.push(`${String(values.runid)} on ${String(values.host)} is still ${String(values.status)}`);
  for (const job of jobs) {
    for (const host of job.hosts) {
      const row = rows.find(({ values }) => values.runid === job.runId && values.host === host);
      if (job.runId !== undefined && !row) wrong.push(`${job.name} on ${host} has no record`);
      const told = job.told.get(host);
      if (told !== undefined && row && told !== row.values.status)
        wrong.push(`${job.name} on ${host}: ${told} was told, ${String(row.values.status)} is on record`);
      if (row) wrong.push(...wrongEnd(`${host}/${job.name}`, row, ledger));
    }
  }
  const ended = results.map(({ values }) => `${String(values.host)} ${String(values.command)}`);
  return [
    ...wrong,
    ...ended.filter((key, at) => ended.indexOf(key) !== at).map((key) => `${key} has more than one result`),
  ];
}

function wrongEnd(key: string, { values }: ObjectRow, ledger: History["ledger"]): string[] {
  const wrote = ledger.wrote.get(key);
  if (values.status !== "ok") return [];
  if (ledger.begun.get(key) !== 1) return [`${key} is ok and was begun ${ledger.begun.get(key) ?? 0} times`];
  return values.out === wrote
    ? []
    : [`${key} wrote ${JSON.stringify(wrote)}, on record is ${JSON.stringify(values.out)}`];
}
