import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { gzipSync } from "node:zlib";
import { LOG_LAST_LINE_MS, LOG_ORDER_WAIT_MS, LOG_PACKED_WAIT_MS } from "../../../common/limits.ts";
import { LogLooks } from "./log-looks.ts";
import type { seededRandom } from "../time/clock.ts";

/**
 * Steps of a history, one letter each. The writer appends: `w` two lines, `W` many, `s` as many bytes as were read. The
 * rotation: `m` renames, `c` copies, `t` truncates, `z` packs all rotated files. The agent: `l` looks, `L` often, `r` reads, `C`
 * compares copies, `i` closes its files, `R` restarts, `k` and `K` are killed in a look, before or after its first write.
 */
export type Steps = string;

export interface LogKind {
  /** Names of rotated files: `app.log.1`, or `app.log-20260101`. */
  readonly names?: "numbers" | "dates";
  /** First lines of each life. */
  readonly heading?: string;
  readonly match?: string;
}

interface Written {
  readonly line: string;
  readonly atMs: number;
}

const GENERATIONS = 5;
const MANY = 200;
const STEP_MS = 20;
const ROTATIONS = {
  copy: ["ct", "cwt", "ctz", "cwtz", "ctw", "ctwz", "cltz", "ctlz", "clt", "crwt", "t", "z"],
  rename: ["m", "mz", "mw", "mwz", "mLz", "z"],
};
const OTHERS = { copy: "wwwWsllllrCRkKi", rename: "wwwWsLLLLLLCRRi" };

/**
 * A random history that begins with a log that was read. Between two renames, the agent looks until it has found all
 * lives, as it does within a second.
 */
export function randomSteps(random: ReturnType<typeof seededRandom>): Steps {
  const dice = (sides: number) => Math.floor(random.next() * sides);
  const how = dice(3) === 0 ? "rename" : "copy";
  const oneOf = (steps: ArrayLike<string>) => steps[dice(steps.length)] ?? "";
  const step = () => oneOf(dice(3) === 0 ? ROTATIONS[how] : OTHERS[how]);
  return `wl${Array.from({ length: 2 + dice(6) }, step).join("")}`;
}

/** Plays a history. Answers each fault: a line that is doubled, foreign, out of order, or lost without a gap. */
export async function faultsOf(steps: Steps, kind: LogKind = {}): Promise<readonly string[]> {
  await using history = await LogHistory.begin(kind);
  for (const step of steps) await history.step(step);
  await history.settle();
  return await history.faults();
}

/** A log whose writer, rotation and agent do one step after another, so that nothing depends on the moment. */
class LogHistory implements AsyncDisposable {
  readonly #looks: LogLooks;
  readonly #kind: LogKind;
  readonly #written: Written[] = [];
  /** Lines of lives that no look and no copy has, and that were followed by text: nothing tells of them. */
  readonly #hidden = new Set<string>();
  /** Such lines, until the next look. */
  #unseen: readonly string[] = [];
  #isSeen = false;
  /** The folder may have changed since the last scan, so the agent scans before it reads. */
  #isStale = false;
  /** The file is as long as it was before, so its truncation would look like that of the former life. */
  #isAlike = false;
  /** A copy was made of the file, and no text was truncated since. */
  #isCopied = false;
  #day = 20_260_101;

  private constructor(looks: LogLooks, kind: LogKind) {
    this.#looks = looks;
    this.#kind = kind;
  }

  static async begin(kind: LogKind): Promise<LogHistory> {
    const looks = await LogLooks.begin({ match: kind.match ?? "^app\\.log$" });
    looks.clock.advance(Date.now() - looks.clock.nowMs());
    await looks.look();
    return new LogHistory(looks, kind);
  }

  async step(step: string): Promise<void> {
    // The times of gaps may be those of files, so the clock is not behind the real one.
    this.#looks.clock.advance(Math.max(STEP_MS, Date.now() - this.#looks.clock.nowMs()));
    if ("mczRkK".includes(step)) this.#isStale = true;
    if ("wWs".includes(step)) return this.#write(step);
    if ("mctz".includes(step)) return this.#rotate(step);
    await this.#look(step);
  }

  /** Looks until nothing more is to come. */
  async settle(): Promise<void> {
    await this.#look("L");
    this.#looks.clock.advance(Math.max(LOG_PACKED_WAIT_MS, LOG_ORDER_WAIT_MS, LOG_LAST_LINE_MS));
    await this.#look("L");
  }

  async faults(): Promise<readonly string[]> {
    const places = new Map(this.#written.map(({ line }, place) => [line, place]));
    const heading = new Set(this.#kind.heading?.split("\n"));
    const faults: string[] = [];
    const seen = new Set<string>();
    let last = -1;
    for (const line of await this.#looks.lines()) {
      if (heading.has(line)) continue;
      const place = places.get(line);
      if (place === undefined) faults.push(`foreign: ${line}`);
      else if (seen.has(line)) faults.push(`doubled: ${line}`);
      else if (place < last) faults.push(`out of order: ${line}`);
      seen.add(line);
      last = Math.max(last, place ?? last);
    }
    return [...faults, ...(await this.#lossFaults(seen))];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#looks[Symbol.asyncDispose]();
  }

  /** A lost line is within the times of a gap, and gaps count no more bytes than are lost. */
  async #lossFaults(seen: ReadonlySet<string>): Promise<readonly string[]> {
    const gaps = await this.#looks.gaps();
    const lost = this.#written.filter(({ line }) => !seen.has(line));
    const bytes = lost.reduce((sum, { line }) => sum + line.length + 1, 0);
    const counted = gaps.reduce((sum, { count }) => sum + count, 0);
    const silent = lost.filter(
      ({ line, atMs }) => !this.#hidden.has(line) && !gaps.some(({ fromMs, toMs }) => fromMs <= atMs && atMs <= toMs),
    );
    return [
      ...silent.map(({ line }) => `lost without a gap: ${line}`),
      ...(counted > bytes ? [`${counted} bytes in gaps, ${bytes} lost`] : []),
    ];
  }

  async #look(step: string): Promise<void> {
    const looks = this.#looks;
    if (step === "k" || step === "K") return looks.killedAfter(step === "k" ? 0 : 1);
    if (step === "R") return looks.restart();
    if (step === "C") return looks.compareCopies();
    if (step === "i") return looks.closeIdle();
    const { size } = statSync(looks.log);
    this.#unseen = [];
    this.#isSeen ||= size > 0;
    if (step === "r" && !this.#isStale) return looks.read();
    this.#isStale = false;
    await looks.looks(step === "L" ? 7 : 1);
  }

  async #rotate(step: string): Promise<void> {
    const { log } = this.#looks;
    if (step === "z") return this.#pack();
    if (step === "t") return this.#truncate();
    if (step === "c" && this.#isCopied) return;
    this.#isCopied = step === "c";
    this.#shift();
    if (step === "c") {
      this.#isSeen ||= statSync(log).size > 0;
      return copyFileSync(log, this.#youngest);
    }
    renameSync(log, this.#youngest);
    this.#isSeen = false;
    await this.#looks.writer.close();
    await this.#looks.reopen();
  }

  async #truncate(): Promise<void> {
    if (this.#isAlike) await this.#write("w");
    this.#isAlike = false;
    this.#isCopied = false;
    this.#waitForTick();
    if (!this.#isSeen) this.#unseen = [...this.#unseen, ...readFileSync(this.#looks.log, "utf8").split("\n")];
    this.#isSeen = false;
    truncateSync(this.#looks.log);
  }

  get #youngest(): string {
    const { log } = this.#looks;
    return this.#kind.names === "dates" ? `${log}-${this.#day}` : `${log}.1`;
  }

  #shift(): void {
    const { log } = this.#looks;
    if (this.#kind.names === "dates") return void this.#day++;
    for (const end of ["", ".gz"])
      for (let number = GENERATIONS; number > 0; number--)
        if (existsSync(`${log}.${number}${end}`)) renameSync(`${log}.${number}${end}`, `${log}.${number + 1}${end}`);
  }

  #pack(): void {
    const { folder } = this.#looks;
    for (const name of readdirSync(folder).filter((one) => /^app\.log[.-]\d+$/.test(one))) {
      const path = `${folder}/${name}`;
      const { atime, mtime } = statSync(path);
      writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 1 }));
      utimesSync(`${path}.gz`, atime, mtime);
      rmSync(path);
    }
  }

  async #write(step: string): Promise<void> {
    const { log, writer } = this.#looks;
    const { size } = statSync(log);
    const heading = size === 0 ? (this.#kind.heading ?? "") : "";
    const missing = this.#readBytes() - size - heading.length;
    const lines = step === "s" ? [this.#line(missing - 1)] : [this.#line(), this.#line()];
    if (step === "W") for (let count = 2; count < MANY; count++) lines.push(this.#line());
    this.#isAlike = step === "s";
    this.#hide();
    await writer.appendFile(`${heading}${lines.join("\n")}\n`);
  }

  /** Nothing tells of lines that are followed by text. */
  #hide(): void {
    for (const line of this.#unseen) this.#hidden.add(line);
    this.#unseen = [];
  }

  /** A new line, different from all others, and of another length than the last ones. */
  #line(length?: number): string {
    const number = this.#written.length;
    const line = `line ${number} `.padEnd(length ?? 12 + ((number * 17) % 41), "x");
    this.#written.push({ line, atMs: this.#looks.clock.nowMs() });
    return line;
  }

  /** Read position in the life that was followed last. */
  #readBytes(): number {
    const states = this.#looks.marks().map(([, value]) => JSON.parse(value) as { serial: number; offset: number });
    return states.toSorted((a, b) => b.serial - a.serial)[0]?.offset ?? 0;
  }

  /** Waits until files get a later time than the log has. */
  #waitForTick(): void {
    const probe = `${this.#looks.folder}/probe`;
    const { mtimeMs } = statSync(this.#looks.log);
    do writeFileSync(probe, "x");
    while (statSync(probe).mtimeMs <= mtimeMs);
  }
}
