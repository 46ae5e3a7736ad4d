import {
  appendFile,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  rename,
  rm,
  stat,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { LogAgent } from "../../../../test/helpers/hosts/log-agent.ts";
import { seedsOf } from "../../../../test/helpers/time/times.ts";
import type { Log } from "../../../log.ts";

/** Seeds that found something once; what they find depends on the moment as well. */
const FOUND: readonly number[] = [7, 9, 12];
const SEEDS = seedsOf(FOUND, 1);
const STEPS = 40;
const GENERATIONS = 5;
const DEADLINE_MS = 30_000;

const W3C = [
  "#Software: Server 10.0",
  "#Version: 1.0",
  `#Fields: ${Array.from({ length: 40 }, (_, at) => `field-${at}`).join(" ")}`,
];
const HEADINGS: Readonly<Record<string, readonly string[]>> = {
  "a banner": Array.from({ length: 12 }, () => `# ${"*".repeat(60)}`),
  "a long banner": Array.from({ length: 120 }, () => `# ${"=".repeat(60)}`),
  "a CSV heading": [Array.from({ length: 40 }, (_, at) => `column-${at}`).join(";")],
  "a W3C heading": W3C,
  "a short line": ["started"],
};
const MATCHES = ["\\.log$", "^app(-error)?\\.log$", "\\.log(\\.\\d+)?$"];

describe.each(Object.entries(HEADINGS))("files that begin with the same: %s", (_, heading) => {
  it.each(MATCHES)(
    "%s: both cut off in place, the new and shorter lives are read wholly",
    { timeout: 120_000 },
    async (match) => {
      await using folder = await LogFolder.begin({ seed: 1, heading, match });
      const logs = ["app.log", "app-error.log"];
      for (const name of logs) await folder.write(name, 40);
      await folder.caughtUp();
      for (const killed of [false, true]) {
        if (killed) await folder.kill();
        for (const name of logs) await folder.cut(name);
        for (const name of logs) await folder.write(name, 5);
        if (killed) await folder.start();
        await folder.caughtUp();
      }
      await folder.verify();
    },
  );
});

it("a log beside one that is rotated by copies is not taken for its copy", { timeout: 120_000 }, async () => {
  await using folder = await LogFolder.begin({ seed: 1, heading: HEADINGS["a banner"] ?? [], match: "^app\\.log$" });
  await folder.write("app.log", 0);
  await folder.write("app-error.log", 3);
  await folder.write("app.log", 3);
  await folder.caughtUp();
  await folder.kill();
  await folder.cut("app.log");
  await folder.write("app-error.log", 300);
  await folder.start();
  await folder.write("app.log", 2);
  await folder.caughtUp();
  await folder.verify();
});

it("a copy is compared to its end: what differs late is read", { timeout: 120_000 }, async () => {
  const heading = Array.from({ length: 4_000 }, () => `# ${"-".repeat(60)}`);
  await using folder = await LogFolder.begin({ seed: 1, heading, match: "\\.log(\\.\\d+)?$" });
  await folder.write("app.log", 3);
  await folder.caughtUp();
  await folder.write("app.log.1", 3);
  await folder.caughtUp();
  await folder.verify();
});

it.each(SEEDS)(
  "seed %i: every line once under its own name, or counted where it is lost",
  { timeout: 120_000 },
  async (seed) => {
    const random = seededRandom(seed);
    const headings = Object.values(HEADINGS);
    const heading = headings[Math.floor(random.next() * headings.length)] ?? [];
    await using folder = await LogFolder.begin({ seed, heading, match: MATCHES[seed % MATCHES.length] ?? "" });
    for (let step = 0; step < STEPS; step++) await folder.step();
    await folder.caughtUp();
    await folder.verify();
  },
);

function logOf(source: string): string {
  return source.replace(/(\.log)\.\d+$/, "$1");
}

interface Setting {
  readonly seed: number;
  /** Lines every file begins with. */
  readonly heading: readonly string[];
  readonly match: string;
}

interface Line {
  readonly name: string;
  readonly text: string;
  /** It was cut off before it was surely read. */
  atRisk: boolean;
}

/** Logs that look alike, their writers and rotations, and an agent that follows those that match. */
class LogFolder implements AsyncDisposable {
  readonly #folder: string;
  readonly #logs: string;
  readonly #setting: Setting;
  readonly #random: ReturnType<typeof seededRandom>;
  readonly #written: Line[] = [];
  readonly #begun = new Set<string>();
  readonly #known = new Set<string>();
  readonly #rotations = new Map<string, number>();
  readonly #trace: string[] = [];
  #agents = 0;
  #agent: LogAgent | undefined;

  private constructor(folder: string, setting: Setting) {
    this.#folder = folder;
    this.#logs = join(folder, "logs");
    this.#setting = setting;
    this.#random = seededRandom(setting.seed);
  }

  static async begin(setting: Setting): Promise<LogFolder> {
    const folder = new LogFolder(await mkdtemp(join(tmpdir(), "odp-lookalikes-")), setting);
    await mkdir(folder.#logs);
    await folder.start();
    return folder;
  }

  #dice(sides: number): number {
    return Math.floor(this.#random.next() * sides);
  }

  #path(name: string): string {
    return join(this.#logs, name);
  }

  #follows(name: string): boolean {
    return new RegExp(this.#setting.match).test(name);
  }

  async step(): Promise<void> {
    const name = ["app.log", "app-error.log", "app.error.log", "application.log"][this.#dice(4)] ?? "";
    const kind = this.#dice(12);
    if (kind < 5) await this.write(name, this.#dice(this.#dice(4) === 0 ? 200 : 6));
    else if (kind < 6) await this.#rotate(name);
    else if (kind < 7) await this.#rotateByCopy(name);
    else if (kind < 9) await this.#cutTogether(name);
    else if (kind < 10) await this.#away();
    else if (kind < 11) await writeFile(this.#path(`${name}.9.gz`), gzipSync(this.#setting.heading.join("\n")));
    else await this.caughtUp();
    if (this.#dice(3) > 0) await pause(this.#dice(12));
  }

  async write(name: string, count: number): Promise<void> {
    this.#trace.push(`write ${name} ${this.#written.length}+${count}`);
    const lines = Array.from({ length: count }, (_, at): Line => {
      return { name, text: `${this.#written.length + at} ${"x".repeat(this.#dice(60))}`, atRisk: false };
    });
    const heading = this.#begun.has(name) ? [] : this.#setting.heading;
    await appendFile(
      this.#path(name),
      [...heading, ...lines.map(({ text }) => text)].map((line) => `${line}\n`).join(""),
    );
    this.#begun.add(name);
    this.#written.push(...lines);
  }

  /** A new life follows; what was not read by now is lost, and must be counted. */
  async cut(name: string): Promise<void> {
    this.#trace.push(`cut ${name}`);
    const missing = await this.#missing();
    for (const line of missing) if (line.name === name) line.atRisk = true;
    await truncate(this.#path(name), 0).catch(() => undefined);
    this.#begun.delete(name);
  }

  async #cutTogether(name: string): Promise<void> {
    const names = [name, ...[...this.#begun].filter((other) => other !== name && this.#dice(2) === 0)];
    // A line of its own that was read tells a life from the next.
    for (const each of names) await this.write(each, 1);
    await this.caughtUp();
    const away = this.#dice(3) === 0;
    if (away) await this.kill();
    for (const each of names) {
      if (this.#dice(3) === 0) await this.write(each, 1 + this.#dice(3));
      await this.cut(each);
      await this.write(each, this.#dice(8));
    }
    if (away) await this.start();
  }

  async #shift(name: string): Promise<void> {
    if (!this.#begun.has(name)) await this.write(name, 1);
    // A log that was never there at a look is not known.
    if (!this.#known.has(name) && this.#agent) await this.caughtUp();
    // One more and what is not read yet would be gone.
    if ((this.#rotations.get(name) ?? 0) >= GENERATIONS - 1) await this.caughtUp();
    this.#rotations.set(name, (this.#rotations.get(name) ?? 0) + 1);
    for (let generation = GENERATIONS; generation > 1; generation--) {
      await rename(this.#path(`${name}.${generation - 1}`), this.#path(`${name}.${generation}`)).catch(() => undefined);
    }
  }

  async #rotate(name: string): Promise<void> {
    await this.#shift(name);
    this.#trace.push(`rename ${name}`);
    await rename(this.#path(name), this.#path(`${name}.1`));
    this.#begun.delete(name);
  }

  async #rotateByCopy(name: string): Promise<void> {
    await this.#shift(name);
    this.#trace.push(`copy ${name}`);
    const copy = this.#path(`${name}.1`);
    const { atime, mtime } = await stat(this.#path(name));
    await copyFile(this.#path(name), copy);
    if (this.#dice(3) === 0) await utimes(copy, atime, mtime);
    if (this.#dice(2) === 0) await pause(this.#dice(10));
    await truncate(this.#path(name), 0);
    this.#begun.delete(name);
  }

  async #away(): Promise<void> {
    // A life whose heading alone was read looks like the next one.
    for (const name of [...this.#begun]) await this.write(name, 1);
    await this.caughtUp();
    await this.kill();
    for (let steps = this.#dice(4); steps > 0; steps--) {
      const name = [...this.#begun][this.#dice(this.#begun.size)];
      if (name === undefined) continue;
      const kind = this.#dice(3);
      if (kind === 0) await this.#rotate(name);
      else if (kind === 1) await this.#rotateByCopy(name);
      await this.write(name, 1 + this.#dice(8));
    }
    await this.start();
  }

  async start(): Promise<void> {
    this.#trace.push("start");
    const log: Log = (level, message, fields) =>
      void this.#trace.push(`[${level} ${message} ${JSON.stringify(fields)}]`);
    const spec = { name: "p", kind: "log" as const, rule: "/r", dir: this.#logs, match: this.#setting.match };
    this.#agent = await LogAgent.start(this.#folder, this.#outbox(), { spec, log });
  }

  #outbox(): string {
    return join(this.#folder, `outbox-${this.#agents}`);
  }

  async kill(): Promise<void> {
    this.#trace.push("kill");
    this.#agents++;
    await this.#agent?.kill(this.#outbox());
    this.#agent = undefined;
  }

  async caughtUp(): Promise<void> {
    this.#trace.push("wait");
    const end = performance.now() + DEADLINE_MS;
    for (let missing = await this.#untold(); missing.length > 0; missing = await this.#untold()) {
      if (performance.now() > end)
        throw new Error(
          `Missing: ${JSON.stringify(missing.slice(0, 20))}\n${this.#trace.join(", ")}\n${await this.#scene()}`,
        );
      await pause(10);
    }
    this.#rotations.clear();
    for (const { name } of this.#written) this.#known.add(name);
  }

  /** The files that are there, and the lives that the agent knows. */
  async #scene(): Promise<string> {
    const names = await readdir(this.#logs);
    const files = await Promise.all(names.map(async (name) => ({ name, ...(await stat(this.#path(name))) })));
    const there = files.map(({ name, ino, size, mtimeMs }) => `${name} inode ${ino} size ${size} of ${mtimeMs}`);
    return [`state ${this.#agent?.state}`, ...there, ...(this.#agent?.lives() ?? [])].join("\n");
  }

  /** Lines of followed logs that were neither delivered nor are lost by a gap of their file. */
  async #untold(): Promise<Line[]> {
    const missing = await this.#missing();
    const gaps = missing.length === 0 ? [] : await this.#gaps();
    const isTold = ({ name, atRisk }: Line) =>
      gaps.some(({ source, count }) => source === this.#path(name) && (atRisk || count > 0));
    return missing.filter((line) => !isTold(line));
  }

  async #missing(): Promise<Line[]> {
    const delivered = new Set((await this.#delivered()).map(({ text }) => text));
    return this.#written.filter(({ name, text }) => this.#follows(name) && !delivered.has(text));
  }

  async #gaps() {
    return (await this.#agent?.gaps()) ?? [];
  }

  async #delivered(): Promise<{ source: string; text: string }[]> {
    const heading = new Set(this.#setting.heading);
    const entries = (await this.#agent?.records()) ?? [];
    const all = entries.flatMap(({ source, records }) =>
      records.map((record) => ({ source, text: record.toString() })),
    );
    return all.filter(({ text }) => !heading.has(text));
  }

  /** Each line of a followed log once, under its name or the one its rotation gave it; no line of another. */
  async verify(): Promise<void> {
    const names = new Map(this.#written.map(({ name, text }) => [text, name]));
    const seen = new Set<string>();
    const wrong = [];
    for (const { source, text } of await this.#delivered()) {
      const name = names.get(text);
      const isIts = name !== undefined && this.#follows(name) && logOf(source) === logOf(this.#path(name));
      if (!isIts || seen.has(text)) wrong.push({ source, text, name, again: seen.has(text) });
      seen.add(text);
    }
    expect(wrong, this.#trace.join(", ")).toEqual([]);
    const counted = (await this.#gaps()).filter(({ count }) => count > 0).map(({ source }) => source);
    const lost = new Set((await this.#missing()).map(({ name }) => this.#path(name)));
    const atRisk = new Set(this.#written.filter((line) => line.atRisk).map(({ name }) => this.#path(name)));
    expect(
      counted.filter((source) => !atRisk.has(source) && !lost.has(source)),
      this.#trace.join(", "),
    ).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent?.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
