import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { USAGE_INTERVAL_MS } from "../common/limits.ts";
import { ExternalAgents } from "./external-agents.ts";
import type { Clock } from "../common/time.ts";

/** Processor time and memory of the processes of one program. */
export interface Usage {
  /** Percent of one processor since the reading before. Absent at the first reading. */
  readonly cpu?: number;
  /** Bytes of memory in use (resident set). Pages that several processes share are counted for each. */
  readonly memory: number;
  readonly processes: number;
}

/** Key of the usage of all external agents of the host together. */
const EXTERNAL = "extagent";
/** Ticks of processor time per second, in which Linux tells them on all common processors (`USER_HZ`). */
const TICKS_PER_SECOND = 100;
const KIB = 1_024;
const MS_PER_SECOND = 1_000;

interface Process {
  readonly pid: number;
  readonly group: number;
  /** Processor time in ticks. */
  readonly ticks: number;
  /** Start of the process, which identifies it together with its pid. */
  readonly birth: string;
}

/** A process as it was read before. */
interface Known {
  readonly birth: string;
  readonly ticks: number;
  readonly isExternal: boolean;
}

/**
 * Reads the usage of daemons and external agents from `/proc`, at most once per `USAGE_INTERVAL_MS`. Other systems than
 * Linux have none. A process of a daemon that left its process group is not counted.
 */
export class UsageReader {
  readonly #clock: Clock;
  readonly #root: string;
  #known: ReadonlyMap<number, Known> = new Map();
  #readAtMs: number | undefined;
  #last: ReadonlyMap<string, Usage> = new Map();

  constructor(clock: Clock, root = "/proc") {
    this.#clock = clock;
    this.#root = root;
  }

  /** `daemons`: leader of the process group by policy. Keys of the answer: `policy/<name>`, and `extagent`. */
  read(daemons: ReadonlyMap<string, number>): ReadonlyMap<string, Usage> {
    const nowMs = this.#clock.monotonicMs();
    const passedMs = this.#readAtMs === undefined ? Infinity : nowMs - this.#readAtMs;
    if (passedMs < USAGE_INTERVAL_MS) return this.#last;
    const isFirst = this.#readAtMs === undefined;
    this.#readAtMs = nowMs;
    const names = new Map([...daemons].map(([name, pid]) => [pid, `policy/${name}`]));
    const known = new Map<number, Known>();
    const external = new ExternalAgents(this.#root);
    const sums = new Map<string, { ticks: number; memory: number; processes: number }>();
    for (const process of this.#processes()) {
      const before = this.#before(process);
      const isExternal = before?.isExternal ?? external.includes(process.pid);
      known.set(process.pid, { birth: process.birth, ticks: process.ticks, isExternal });
      const name = names.get(process.group) ?? (isExternal ? EXTERNAL : undefined);
      if (name === undefined) continue;
      const sum = sums.get(name) ?? { ticks: 0, memory: 0, processes: 0 };
      sum.ticks += process.ticks - (before?.ticks ?? 0);
      sum.memory += this.#memory(process.pid);
      sum.processes++;
      sums.set(name, sum);
    }
    this.#known = known;
    const perTick = (100 * MS_PER_SECOND) / TICKS_PER_SECOND / passedMs;
    this.#last = new Map(
      [...sums].map(([name, { ticks, ...sum }]) => [
        name,
        isFirst ? sum : { cpu: Math.round(ticks * perTick * 10) / 10, ...sum },
      ]),
    );
    return this.#last;
  }

  #before({ pid, birth }: Process): Known | undefined {
    const known = this.#known.get(pid);
    return known?.birth === birth ? known : undefined;
  }

  *#processes(): Generator<Process> {
    for (const name of this.#names()) {
      const text = this.#text(join(name, "stat"));
      // The name of the program is in brackets, and may contain any character.
      const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
      const [group, user, system, birth] = [fields[2], fields[11], fields[12], fields[19]];
      if (birth === undefined) continue;
      yield { pid: Number(name), group: Number(group), ticks: Number(user) + Number(system), birth };
    }
  }

  #names(): readonly string[] {
    try {
      return readdirSync(this.#root).filter((name) => /^\d+$/.test(name));
    } catch {
      return [];
    }
  }

  #memory(pid: number): number {
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(this.#text(join(String(pid), "status")))?.[1] ?? 0) * KIB;
  }

  /** Empty for a process that has ended. */
  #text(path: string): string {
    try {
      return readFileSync(join(this.#root, path), "latin1");
    } catch {
      return "";
    }
  }
}
