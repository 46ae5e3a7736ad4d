import {
  appendFile,
  copyFile,
  mkdir,
  mkdtemp,
  open,
  readFile,
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
import { afterAll, expect, it } from "vitest";
import type { LogPolicySpec } from "../../../../common/api/policies.ts";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { prove } from "../../../../test/helpers/runs/evidence.ts";
import { LogAgent } from "../../../../test/helpers/hosts/log-agent.ts";
import { seedsOf } from "../../../../test/helpers/time/times.ts";
import type { Log } from "../../../log.ts";

/** Seeds that found something once; what they find depends on the moment as well. */
const FOUND: readonly number[] = [45, 51, 77, 85, 119, 137];
const SEEDS = seedsOf(FOUND, 2);
const PACKED_SEEDS = seedsOf([], 1);
const STEPS = 40;
const GENERATIONS = 5;
const DEADLINE_MS = 30_000;

const kept: number[] = [];
afterAll(() => {
  if (kept.length === SEEDS.length) prove("log-rotation", { histories: kept.length, steps: STEPS, seeds: kept });
});

it.each(SEEDS)(
  "seed %i: every line once, however the log is rotated and whenever the agent is killed",
  { timeout: 120_000 },
  async (seed) => {
    await using history = await History.begin(seed);
    for (let step = 0; step < STEPS; step++) await history.step();
    await history.caughtUp();
    const lines = await history.lines();
    const foreign = lines.filter((line) => !history.written.includes(line));
    const doubled = lines.filter((line, index) => lines.indexOf(line) !== index);
    expect({ foreign, doubled }, history.trace).toEqual({ foreign: [], doubled: [] });
    expect(
      (await history.gaps()).filter(({ count }) => count > 0),
      history.trace,
    ).toEqual([]);
    kept.push(seed);
  },
);

it.each(PACKED_SEEDS)(
  "seed %i: every line once, also out of copies that were packed before they were read",
  { timeout: 120_000 },
  async (seed) => {
    await using history = await History.begin(seed, { packs: true });
    for (let step = 0; step < STEPS; step++) await history.step();
    await history.caughtUp();
    const lines = await history.lines();
    expect(lines.toSorted(), history.trace).toEqual(history.written.toSorted());
  },
);

/** One log, its writer, its rotation and the agent that follows it, by the dice of a seed. */
class History implements AsyncDisposable {
  readonly written: string[] = [];
  readonly #folder: string;
  readonly #logs: string;
  readonly #random: ReturnType<typeof seededRandom>;
  readonly #pattern: string;
  /** Rotations since the agent has read everything: one too many removes a file that was not read. */
  #rotations = 0;
  #packed = 0;
  #isWatched = true;
  #agents = 0;
  #agent: LogAgent | undefined;
  readonly #trace: string[] = [];

  readonly #packs: boolean;

  private constructor(folder: string, seed: number, packs: boolean) {
    this.#packs = packs;
    this.#folder = folder;
    this.#logs = join(folder, "logs");
    this.#random = seededRandom(seed);
    this.#pattern = this.#dice(2) === 0 ? "^access\\.log$" : "^access\\.log(\\.\\d+)?$";
  }

  /** `packs`: copies are packed as soon as the file is cut off. */
  static async begin(seed: number, { packs = false } = {}): Promise<History> {
    const history = new History(await mkdtemp(join(tmpdir(), "odp-rotation-")), seed, packs);
    await mkdir(history.#logs);
    await appendFile(history.#path, "");
    await history.#start();
    await history.#agent?.following();
    return history;
  }

  get trace(): string {
    return this.#trace.join(", ");
  }

  get #path(): string {
    return join(this.#logs, "access.log");
  }

  #dice(sides: number): number {
    return Math.floor(this.#random.next() * sides);
  }

  async step(): Promise<void> {
    const kind = this.#dice(10);
    if (kind < 4) await this.#write();
    else if (kind < 6) await this.#rotateByRename();
    else if (kind < 8) await this.#rotateByCopy();
    else if (kind < 9) await this.#restart();
    else await this.caughtUp();
    if (this.#dice(3) > 0) await pause(this.#dice(12));
  }

  async #write(): Promise<void> {
    const count = 1 + this.#dice(this.#dice(4) === 0 ? 400 : 8);
    const lines = Array.from(
      { length: count },
      (_, index) => `line ${this.written.length + index} ${"x".repeat(this.#dice(60))}`,
    );
    this.#trace.push(`write ${this.written.length}+${count}`);
    await appendFile(this.#path, lines.map((line) => `${line}\n`).join(""));
    this.written.push(...lines);
  }

  /** A life that came, went and was packed between two looks is not read: its lines are in no file that is followed. */
  async #becomeKnown(): Promise<void> {
    if (!this.#packs || !this.#isWatched) return;
    await this.#write();
    await this.caughtUp();
    // Not read yet when the log is rotated.
    await this.#write();
  }

  async #shift(): Promise<void> {
    await this.#becomeKnown();
    // One more rotation would remove what is not read yet.
    if (this.#rotations >= GENERATIONS - 1) await this.caughtUp();
    this.#rotations++;
    for (let generation = GENERATIONS; generation > 1; generation--) {
      await rename(`${this.#path}.${generation - 1}`, `${this.#path}.${generation}`).catch(() => undefined);
      if (this.#dice(8) === 0) await pause(this.#dice(6));
    }
  }

  async #rotateByRename(): Promise<void> {
    await this.#shift();
    this.#trace.push("rename");
    await rename(this.#path, `${this.#path}.1`);
    if (this.#dice(2) === 0) await pause(this.#dice(10));
    await appendFile(this.#path, "");
  }

  /** The writer is halted between copy and truncation; the copy may be slow, and may keep the time of the original. */
  async #rotateByCopy(): Promise<void> {
    await this.#shift();
    const copy = `${this.#path}.1`;
    const { size, atime, mtime } = await stat(this.#path);
    this.#trace.push(`copy ${size}`);
    if (this.#dice(2) === 0) await copyFile(this.#path, copy);
    else await this.#copySlowly(copy, size);
    if (this.#dice(3) === 0) await utimes(copy, atime, mtime);
    if (this.#dice(2) === 0) await pause(this.#dice(10));
    await truncate(this.#path, 0);
    if (this.#packs) await this.#pack(copy);
  }

  async #pack(copy: string): Promise<void> {
    this.#trace.push("pack");
    const packed = gzipSync(await readFile(copy));
    await writeFile(`${this.#path}.${++this.#packed}.gz`, packed);
    await rm(copy);
  }

  async #copySlowly(copy: string, size: number): Promise<void> {
    await using from = await open(this.#path, "r");
    await using to = await open(copy, "w");
    const piece = Buffer.alloc(1 + this.#dice(Math.max(1, size)));
    for (let at = 0; at < size; at += piece.length) {
      await pause(this.#dice(8));
      const { bytesRead } = await from.read(piece, 0, piece.length, at);
      await to.write(piece, 0, bytesRead, at);
    }
  }

  async #restart(): Promise<void> {
    await this.#becomeKnown();
    this.#trace.push("kill");
    this.#isWatched = false;
    await this.#agent?.kill(this.#outbox(this.#agents + 1));
    this.#agents++;
    let isRotated = false;
    for (let away = this.#dice(4); away > 0; away--) {
      if (this.#dice(2) === 0) await this.#write();
      else if (this.#rotations < GENERATIONS - 1 && !(this.#packs && isRotated)) {
        isRotated = true;
        await (this.#dice(2) === 0 ? this.#rotateByRename() : this.#rotateByCopy());
      }
    }
    await this.#start();
    this.#isWatched = true;
  }

  async #start(): Promise<void> {
    this.#trace.push("start");
    const spec: LogPolicySpec = { name: "p", kind: "log", rule: "/r", dir: this.#logs, match: this.#pattern };
    const log: Log = (level, message, fields) =>
      void this.#trace.push(`[${level} ${message} ${JSON.stringify(fields)}]`);
    this.#agent = await LogAgent.start(this.#folder, this.#outbox(this.#agents), { spec, log });
  }

  #outbox(agent: number): string {
    return join(this.#folder, `outbox-${agent}`);
  }

  async caughtUp(): Promise<void> {
    this.#trace.push("wait");
    const end = performance.now() + DEADLINE_MS;
    while ((await this.#missing()) !== "") {
      if (performance.now() > end) throw new Error(`Lines are missing: ${await this.#missing()}\n${this.trace}`);
      await pause(10);
    }
    this.#rotations = 0;
  }

  async #missing(): Promise<string> {
    const lines = new Set(await this.lines());
    return this.written
      .filter((line) => !lines.has(line))
      .map((line) => line.slice(0, 12))
      .slice(0, 20)
      .join(", ");
  }

  async lines(): Promise<string[]> {
    return (await this.#agent?.lines()) ?? [];
  }

  async gaps() {
    return (await this.#agent?.gaps()) ?? [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent?.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
