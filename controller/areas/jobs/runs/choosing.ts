import { createHash } from "node:crypto";
import { JOB_CHANGE_ATTEMPTS_MAX } from "../../../../common/limits.ts";
import type { Random } from "../../../../common/time.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvStore } from "../../../store/kv.ts";
import { hostsToOpen } from "./executions.ts";
import { OPEN_RUNS } from "./open-runs.ts";

export interface Choice {
  readonly kv: KvStore;
  readonly random: Random;
  /** `<name>@<dir>` */
  readonly job: string;
  readonly algorithm: string;
}

/**
 * The order in which an execution of group mode `one` tries its hosts. `roundrobin` begins one host further than the
 * last execution; all controllers share that count (KvStore `jobs/turn/<name>@<dir>`). `leastload` begins with the host
 * that has the fewest open job runs, including those about to open. `random` shuffles the hosts. `sticky` always begins
 * with the same host, unless that host is removed or a new one ranks before it. Without an algorithm, the order is that
 * of the definition.
 */
export async function inOrderOf(hosts: readonly string[], choice: Choice): Promise<readonly string[]> {
  switch (choice.algorithm) {
    case "roundrobin":
      return rotated(hosts, await nextTurn(choice));
    case "leastload":
      return byOpenRuns(hosts, choice.kv);
    case "random":
      return shuffled(hosts, choice.random);
    case "sticky":
      return sortedBy(hosts, (host) => digestOf(`${choice.job}\n${host}`));
    default:
      return hosts;
  }
}

/** Reads and increments the shared count. If others change it all the time, two executions may get the same count. */
async function nextTurn({ kv, job }: Choice): Promise<number> {
  const key = `jobs/turn/${job}`;
  for (let attempt = 1; ; attempt++) {
    const entry = await kv.get(key);
    const turn = entry ? decodeStored<number>(entry.value) : 0;
    const { ok } = await kv.put(key, encodeJson(turn + 1), { ifRevision: entry?.revision ?? 0 });
    if (ok || attempt === JOB_CHANGE_ATTEMPTS_MAX) return turn;
  }
}

async function byOpenRuns(hosts: readonly string[], kv: KvStore): Promise<readonly string[]> {
  const open = new Map<string, number>();
  const count = (host: string): unknown => open.set(host, (open.get(host) ?? 0) + 1);
  // Count these before the open runs: a run that is opened meanwhile counts twice. In the other order it would be
  // missed.
  for await (const host of hostsToOpen(kv)) count(host);
  for await (const { key } of entriesUnder(kv, OPEN_RUNS))
    count(decodeURIComponent(key.slice(key.lastIndexOf("/") + 1)));
  return sortedBy(hosts, (host) => open.get(host) ?? 0);
}

function rotated(hosts: readonly string[], turn: number): readonly string[] {
  const first = turn % Math.max(1, hosts.length);
  return [...hosts.slice(first), ...hosts.slice(0, first)];
}

function shuffled(hosts: readonly string[], random: Random): readonly string[] {
  const left = [...hosts];
  return hosts.flatMap(() => left.splice(Math.floor(random.next() * left.length), 1));
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** Sorts by key. Hosts with equal keys keep their order. */
function sortedBy<K extends string | number>(hosts: readonly string[], keyOf: (host: string) => K): readonly string[] {
  const keys = new Map(hosts.map((host) => [host, keyOf(host)]));
  return [...hosts].sort((one, other) =>
    keys.get(one)! < keys.get(other)! ? -1 : keys.get(one)! > keys.get(other)! ? 1 : 0,
  );
}
