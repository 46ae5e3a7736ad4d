import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { seededRandom } from "../helpers/time/clock.ts";
import { eventually } from "../helpers/programs/programs.ts";
import { writeAccessLog, type Rotation } from "./access-log.ts";
import type { Installation } from "./installation.ts";
import { everyRunOnce } from "./scheduled-runs.ts";

/** One host whose log is followed and whose command runs every second, while all its programs are killed. */

export const HOST = "web-1";
export const LINES_CLASS = "/matrix/once/access";
const GENERATIONS_KEPT = 5;
/** Most rotations while the agent is down. With more, lines would be lost, and counted. */
const ROTATIONS_UNSEEN_MAX = 3;
const SETTLE_DEADLINE_MS = 240_000;
const NUMBERS_PER_PAGE = 50_000;
const SHOWN_CHARACTERS = 2_000;

export interface Scenario {
  readonly odp: Installation;
  readonly seed: number;
  readonly lines: number;
  readonly from?: number;
  readonly linesPerBurst: number;
  readonly pauseMs: number;
  readonly rotateEveryLines: number;
  readonly rotations: readonly Rotation[];
  /** Notes when each line was written. */
  readonly times?: WriteTimes;
  /** Called after a racing truncation, before the next line is written. */
  readonly onCut?: () => Promise<void>;
  /** Blows to the installation, each at its own moment, one after the other. */
  readonly blows: readonly Blow[];
}

export interface Blow {
  readonly what: string;
  readonly strike: () => Promise<void>;
  /** The agent is down meanwhile. */
  readonly blind?: boolean;
}

export interface Outcome {
  readonly rotations: number;
  readonly runs: number;
  readonly skipped: number;
}

/** `count` kills of the agent and the controller, in turns. */
export function kills(odp: Installation, count: number): Blow[] {
  const agent: Blow = {
    what: "the agent is killed",
    blind: true,
    strike: async () => {
      await odp.agent(HOST).kill("SIGKILL");
      await odp.startAgent(HOST);
    },
  };
  const controller: Blow = {
    what: "the controller is killed",
    strike: async () => {
      await odp.controller.kill("SIGKILL");
      await odp.startController();
    },
  };
  return Array.from({ length: count }, (_, index) => (index % 2 === 0 ? agent : controller));
}

/** Creates the classes, the rules, the host and its two policies. */
export async function prepare(odp: Installation, match: string): Promise<void> {
  await mkdir(logsOf(odp), { recursive: true });
  await odp.enrol(HOST);
  await odp.mql(`create class ${LINES_CLASS} (path varchar, n bigint) with kind='record'`);
  await odp.mql("create class /matrix/once/tick (text varchar) with kind='record'");
  await putRule(odp, "access", LINES_CLASS);
  await odp.ok(
    "PUT",
    "/mxobject/rule",
    new URLSearchParams({
      key: "/matrix/rules/once/tick",
      value: "--class=/matrix/once/tick\n--parser=text\n--fields=text\n",
    }),
  );
  await odp.ok(
    "POST",
    "/monitoring/policy/log",
    JSON.stringify({ name: "access", rule: "/matrix/rules/once/access", dir: logsOf(odp), match, hosts: [HOST] }),
  );
  await odp.ok(
    "POST",
    "/monitoring/policy",
    JSON.stringify({
      name: "tick",
      rule: "/matrix/rules/once/tick",
      command: "echo tick",
      ctype: 1,
      interval: 1,
      unit: "second",
      hosts: [HOST],
    }),
  );
}

/** A line becomes an object only if it is complete, with its number in it twice. */
export function putRule(odp: Installation, name: string, path: string, body = ""): Promise<unknown> {
  const grok = `--class=${path}\n--parser=grok\n--pattern_1=%{IP} - - \\[%{HTTPDATE}\\] "GET %{NOTSPACE:path} HTTP/1\\.1" 200 %{INT:n:int}$\n${body}`;
  return odp.ok("PUT", "/mxobject/rule", new URLSearchParams({ key: `/matrix/rules/once/${name}`, value: grok }));
}

function logsOf(odp: Installation): string {
  return join(odp.folder, "logs");
}

/** Writes the log, strikes at moments that the seed selects, and returns the number of rotations when all is over. */
export async function carryOut(scenario: Scenario): Promise<number> {
  const { odp, seed, lines, blows } = scenario;
  const random = seededRandom(seed);
  const moments = blows.map((_, index) => Math.floor(((index + 0.2 + 0.6 * random.next()) / blows.length) * lines));
  const striking = new Strikes(blows, moments);
  console.log(`exactly once: seed ${seed}, ${lines} lines, blows at ${moments.join(", ")}`);
  let shown = 0;
  const rotations = await writeAccessLog({
    folder: logsOf(odp),
    lines,
    from: scenario.from ?? 0,
    generations: GENERATIONS_KEPT,
    rotateEveryLines: scenario.rotateEveryLines,
    linesPerBurst: scenario.linesPerBurst,
    pauseMs: scenario.pauseMs,
    ...(scenario.onCut ? { onCut: scenario.onCut } : {}),
    unseen: (cut) => odp.agent(HOST).standing(cut),
    rotation: () => striking.mayRotate(() => scenario.rotations[Math.floor(random.next() * scenario.rotations.length)]),
    onProgress: async (written) => {
      scenario.times?.wrote(written, Date.now());
      await striking.goOn(written);
      if (written - shown < lines / 10) return;
      shown = written;
      console.log(`${written} of ${lines} lines written, ${striking.done} of ${blows.length} blows`);
    },
  });
  await striking.end();
  return rotations;
}

/** Earliest and latest time at which each line was written. */
export class WriteTimes {
  readonly #bursts: { readonly end: number; readonly fromMs: number; readonly toMs: number }[] = [];
  #lastMs = 0;

  wrote(end: number, nowMs: number): void {
    this.#bursts.push({ end, fromMs: this.#lastMs, toMs: nowMs });
    this.#lastMs = nowMs;
  }

  of(n: number) {
    return this.#bursts.find(({ end }) => n < end);
  }

  /** True if line `n` may have been written between these two times. */
  within(n: number, fromMs: number, toMs: number): boolean {
    const burst = this.of(n);
    return burst !== undefined && burst.toMs >= fromMs && burst.fromMs <= toMs;
  }
}

/** One blow at a time, while the writer continues. It waits only if the next blow is due before the last is over. */
class Strikes {
  readonly #blows: readonly Blow[];
  readonly #moments: readonly number[];
  #striking: Promise<void> = Promise.resolve();
  #over = true;
  #begun = 0;
  #unseen = 0;

  constructor(blows: readonly Blow[], moments: readonly number[]) {
    this.#blows = blows;
    this.#moments = moments;
  }

  get done(): number {
    return this.#begun;
  }

  async goOn(written: number): Promise<void> {
    const blow = this.#blows[this.#begun];
    if (blow === undefined || written < (this.#moments[this.#begun] ?? 0)) return;
    await this.#striking;
    this.#begun++;
    this.#unseen = 0;
    this.#over = false;
    this.#striking = blow.strike().then(() => void (this.#over = true));
    // The next wait for it throws its failure.
    this.#striking.catch(() => undefined);
  }

  mayRotate<T>(rotate: () => T): T | undefined {
    const blind = !this.#over && this.#blows[this.#begun - 1]?.blind === true;
    if (blind && this.#unseen >= ROTATIONS_UNSEEN_MAX) return undefined;
    if (blind) this.#unseen++;
    return rotate();
  }

  async end(): Promise<void> {
    await this.#striking;
  }
}

/**
 * Waits until as many lines are counted as were written; with `last`, until the last one is stored, even if lines
 * before it are missing.
 */
export async function settled(
  odp: Installation,
  lines: number,
  paths: readonly string[] = [LINES_CLASS],
  { last }: { last?: boolean } = {},
): Promise<void> {
  let shown = "";
  await eventually(`${lines} lines are counted`, SETTLE_DEADLINE_MS, async () => {
    const found = await Promise.all(
      paths.map(async (path) => (await odp.mql(`select count(*), max(n) as high from ${path}`))[0]),
    );
    const counted = found.reduce((sum, row) => sum + Number(row?.["count"]), 0);
    const high = Math.max(...found.map((row) => Number(row?.["high"] ?? -1)));
    const line = `${counted} of ${lines} lines counted, the highest is ${high}`;
    if (line !== shown) console.log((shown = line));
    return (last ? high === lines - 1 : counted >= lines) || undefined;
  }).catch(async (error: unknown) => {
    throw new Error(
      `${String(error)}; ${shown}. ${JSON.stringify(await problems(odp))} ${JSON.stringify(await amiss(odp, lines, paths)).slice(0, SHOWN_CHARACTERS)}`,
    );
  });
}

/** Checks every line, every run, and everything that the agent reports as missing. */
export async function everythingOnce(odp: Installation, lines: number): Promise<Omit<Outcome, "rotations">> {
  await settled(odp, lines);
  const { due, runs, skipped } = await everyRunOnce(odp, "tick");
  expect(due).toBe(runs + skipped);
  const [sums] = await odp.mql(`select count(*), sum(n) as total, min(n) as low, max(n) as high from ${LINES_CLASS}`);
  expect(await amiss(odp, lines)).toEqual({ missing: [], doubled: [] });
  expect(sums).toMatchObject({ count: lines, total: (lines * (lines - 1)) / 2, low: 0, high: lines - 1 });
  expect(await problems(odp)).toEqual({ lost: [], unparsed: [] });
  return { runs, skipped };
}

/** Gaps that report losses of the log, and lines from which no object was made. */
async function problems(odp: Installation) {
  const lost = (await gapsOf(odp)).filter((gap) => Number(gap["count"]) > 0);
  const unparsed = await odp.mql("select * from /matrix/consolelog/rule limit 20");
  return { lost, unparsed };
}

/** Gaps in the order in which they were reported. */
export async function gapsOf(odp: Installation): Promise<Record<string, unknown>[]> {
  const gaps = await odp.mql(
    "select reason, count, unit, source, stime, etime from /matrix/system/policygap where policy='access' limit -1",
  );
  return gaps.sort((a, b) => Number(a["etime"]) - Number(b["etime"]));
}

/** Numbers of the lines that are in none of the classes, and of those that are stored more than once. */
export async function amiss(
  odp: Installation,
  lines: number,
  paths: readonly string[] = [LINES_CLASS],
): Promise<{ missing: number[]; doubled: number[] }> {
  const seen = new Uint8Array(lines);
  for (const path of paths) {
    for (let from = 0; from < lines; from += NUMBERS_PER_PAGE) {
      const rows = await odp.mql(
        `select n from ${path} where n >= ${from} and n < ${from + NUMBERS_PER_PAGE} limit -1`,
      );
      for (const row of rows) seen[Number(row["n"])] = Math.min(255, (seen[Number(row["n"])] ?? 0) + 1);
    }
  }
  const numbers = Array.from(seen.keys());
  return { missing: numbers.filter((n) => seen[n] === 0), doubled: numbers.filter((n) => (seen[n] ?? 0) > 1) };
}
