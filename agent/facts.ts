import { readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import os from "node:os";
import type { Facts } from "../proto/gen/agent/v1/agent.ts";

/**
 * Reads figures of the host. The share of used CPU time is measured since the previous reading; at the first reading,
 * since the start of the host.
 */
export class FactsReader {
  readonly #name: string;
  readonly #folder: string;
  #cpu: CpuTimes | undefined;

  constructor(name: string, folder: string) {
    this.#name = name;
    this.#folder = folder;
  }

  async read(): Promise<Facts> {
    const addresses = Object.values(os.networkInterfaces()).flatMap((list) => list ?? []);
    return {
      host: this.#name,
      os: `${os.type()} ${os.release()}`,
      arch: os.arch(),
      addresses: addresses.filter(({ internal }) => !internal).map(({ address }) => address),
      pid: process.pid,
      values: await this.values(),
    };
  }

  async values(): Promise<Record<string, string>> {
    const values: Record<string, string> = {
      memory_usedpercent: percent(memoryUsed()),
      uptime_s: String(Math.round(os.uptime())),
      load_1m: String(os.loadavg()[0] ?? 0),
    };
    const cpu = this.#cpuUsed();
    if (cpu !== undefined) values.cpu_usedpercent = percent(cpu);
    const disk = await diskUsed(this.#folder);
    if (disk !== undefined) values.disk_usedpercent = percent(disk);
    return values;
  }

  #cpuUsed(): number | undefined {
    const now = cpuTimes();
    const before = this.#cpu ?? { busy: 0, all: 0 };
    this.#cpu = now;
    const all = now.all - before.all;
    return all > 0 ? (now.busy - before.busy) / all : undefined;
  }
}

interface CpuTimes {
  readonly busy: number;
  readonly all: number;
}

function cpuTimes(): CpuTimes {
  const line = proc("stat")?.split("\n", 1)[0];
  if (line === undefined) return cpuTimesElsewhere();
  // cpu user nice system idle iowait irq softirq steal; guest times are part of user.
  const times = line.trim().split(/\s+/).slice(1, 9).map(Number);
  const all = times.reduce((sum, time) => sum + time, 0);
  return { all, busy: all - (times[3] ?? 0) - (times[4] ?? 0) };
}

function cpuTimesElsewhere(): CpuTimes {
  const times = os.cpus().map(({ times: { user, nice, sys, idle, irq } }) => ({ busy: user + nice + sys + irq, idle }));
  const busy = times.reduce((sum, time) => sum + time.busy, 0);
  return { busy, all: busy + times.reduce((sum, { idle }) => sum + idle, 0) };
}

function memoryUsed(): number {
  const text = proc("meminfo") ?? "";
  const total = Number(/^MemTotal:\s+(\d+)/m.exec(text)?.[1]);
  const available = Number(/^MemAvailable:\s+(\d+)/m.exec(text)?.[1]);
  return total > 0 ? 1 - available / total : 1 - os.freemem() / os.totalmem();
}

async function diskUsed(folder: string): Promise<number | undefined> {
  try {
    const { blocks, bavail, bfree } = await statfs(folder);
    const used = blocks - bfree;
    return used + bavail > 0 ? used / (used + bavail) : undefined;
  } catch {
    return undefined;
  }
}

function proc(name: string): string | undefined {
  try {
    return readFileSync(`/proc/${name}`, "utf8");
  } catch {
    return undefined;
  }
}

function percent(share: number): string {
  return (Math.min(1, Math.max(0, share)) * 100).toFixed(1);
}
