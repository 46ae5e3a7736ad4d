import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { eventually } from "../helpers/programs/programs.ts";
import { prove } from "../helpers/runs/evidence.ts";
import { TIMES } from "../helpers/time/times.ts";
import {
  amiss,
  carryOut,
  everythingOnce,
  gapsOf,
  HOST,
  kills,
  LINES_CLASS,
  prepare,
  putRule,
  settled,
  WriteTimes,
  type Blow,
} from "./exactly-once.ts";
import { accessLine } from "./access-log.ts";
import { clusterVariables, Installation } from "./installation.ts";
import { unaccounted } from "./scheduled-runs.ts";

/** Selects the moments of the blows, always the same in CI; `ODP_TEST_SEED` selects others. */
const SEED = Number(process.env["ODP_TEST_SEED"] ?? 4);
const KILLS = 10;
/** Factor for the lines between two rotations and for all lines; more in `npm run soak`. */
const MORE = TIMES > 1 ? 6 : 1;
const DEADLINE_MS = 600_000;
const SECOND_MS = 1_000;
const TOLD_DEADLINE_MS = 120_000;
const EDIT_DEADLINE_MS = 60_000;

const cluster = inject("cluster");
const engines = [
  {
    name: "embedded",
    lines: 60_000 * MORE,
    rotateEveryLines: 2_800 * MORE,
    linesPerBurst: 300,
    match: "^access\\.log(\\.\\d+)?$",
    settings: { ODP_STORE: "embedded" },
  },
  {
    name: "cluster",
    lines: 25_000 * MORE,
    rotateEveryLines: 1_500 * MORE,
    linesPerBurst: 200,
    match: "^access\\.log$",
    settings: cluster.available ? clusterVariables(cluster.settings) : undefined,
  },
] as const;

describe.each(engines)("on the $name engine", ({ name, lines, settings, ...log }) => {
  test.skipIf(settings === undefined)(
    "every line and every scheduled run is there exactly once, through rotation and ten kills",
    { timeout: DEADLINE_MS },
    async () => {
      const odp = await Installation.start(settings ?? {});
      try {
        await prepare(odp, log.match);
        const blows = kills(odp, KILLS);
        const rotations = await carryOut({
          odp,
          seed: SEED,
          lines,
          pauseMs: 50,
          rotations: ["rename", "copy-truncate"],
          blows,
          ...log,
        });
        const told = await everythingOnce(odp, lines);
        prove("exactly-once", { engine: name, lines, kills: KILLS, rotations, ...told, seed: SEED });
      } finally {
        await odp.stop();
      }
    },
  );
});

const SMALLER = { seed: SEED, pauseMs: 40, linesPerBurst: 200, match: "^access\\.log$" } as const;

test("a writer that is not halted loses what it writes between copy and truncation: each hole is told, with no byte less where the writer's place shows it", {
  timeout: DEADLINE_MS,
}, async () => {
  const lines = 30_000;
  const odp = await Installation.start({ ODP_STORE: "embedded" });
  try {
    await prepare(odp, SMALLER.match);
    const times = new WriteTimes();
    const log = {
      ...SMALLER,
      odp,
      rotateEveryLines: 2_500,
      rotations: ["racing copy-truncate"],
      blows: [],
      times,
    } as const;
    // First a writer that waits for nothing: its lines right after a truncation hide how far the log had come.
    const free = await carryOut({ ...log, lines: lines / 2 });
    await settled(odp, lines / 2, [LINES_CLASS], { last: true });
    const before = await toldTimes(odp, free);
    let cuts = 0;
    // Then a writer that pauses after each truncation.
    const slow = await carryOut({
      ...log,
      from: lines / 2,
      lines,
      onCut: async () => void (await toldTimes(odp, free + ++cuts)),
    });
    await settled(odp, lines, [LINES_CLASS], { last: true });
    const gaps = await toldTimes(odp, free + slow);
    const { missing, doubled } = await amiss(odp, lines);
    expect(doubled).toEqual([]);
    const silent = missing.filter(
      (n) => !gaps.some(({ stime, etime }) => times.within(n, Number(stime), Number(etime))),
    );
    expect(
      silent.map((n) => times.of(n)),
      `written then and missing, and no gap speaks of it: ${JSON.stringify(gaps)}`,
    ).toEqual([]);
    const [lostFreely, lostSlowly] = [
      bytesOf(missing.filter((n) => n < lines / 2)),
      bytesOf(missing.filter((n) => n >= lines / 2)),
    ];
    expect(gaps.length, JSON.stringify(gaps)).toBe(free + slow);
    expect(lostFreely).toBeGreaterThan(0);
    expect(lostSlowly).toBeGreaterThan(0);
    // The part of a copy that the agent had no time to compare counts too; `copies.test.ts` of log-policy proves that.
    expect(countsOf(gaps.slice(free))).toBeGreaterThanOrEqual(lostSlowly);
    prove("truncation-is-told", {
      lines,
      truncations: gaps.length,
      lostFreely,
      toldFreely: countsOf(before),
      lostSlowly,
      toldSlowly: countsOf(gaps.slice(free)),
      seed: SEED,
    });
  } finally {
    await odp.stop();
  }
});

/** Waits until this many truncations are reported, and returns the gaps. */
function toldTimes(odp: Installation, count: number): Promise<Record<string, unknown>[]> {
  return eventually(`${count} truncations are told`, TOLD_DEADLINE_MS, async () => {
    const gaps = await gapsOf(odp);
    expect(gaps.filter(({ reason }) => reason !== "truncated")).toEqual([]);
    return gaps.length >= count ? gaps : undefined;
  });
}

function countsOf(gaps: readonly Record<string, unknown>[]): number {
  return gaps.reduce((sum, { count }) => sum + Number(count), 0);
}

function bytesOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, n) => sum + accessLine(n).length, 0);
}

test("while its rule is edited again and again each line is an object by one of the rules, none by two", {
  timeout: DEADLINE_MS,
}, async () => {
  const lines = 30_000;
  const other = "/matrix/once/other";
  const odp = await Installation.start({ ODP_STORE: "embedded" });
  try {
    await prepare(odp, SMALLER.match);
    await odp.mql(`create class ${other} (path varchar, n bigint) with kind='record'`);
    const edits = Array.from(
      { length: 8 },
      (_, index): Blow => ({
        what: "the rule is edited",
        strike: async () => void (await putRule(odp, "access", index % 2 === 0 ? other : LINES_CLASS)),
      }),
    );
    const blows = kills(odp, 2).flatMap((kill, index) => [kill, ...edits.slice(4 * index, 4 * index + 4)]);
    const log = { ...SMALLER, odp, rotateEveryLines: 4_000, rotations: ["rename", "copy-truncate"] } as const;
    const both = [LINES_CLASS, other];
    let written = 1_000;
    await carryOut({ ...log, lines: written, blows: [] });
    await settled(odp, written);
    await carryOut({ ...log, from: written, lines, blows });
    // An agent keeps its copy of a rule for a second, so all edits so far may have fallen between two of its requests.
    await putRule(odp, "access", other);
    written = lines;
    const byOther = await eventually(
      "a line is an object by the rule as it was edited last",
      EDIT_DEADLINE_MS,
      async () => {
        await carryOut({ ...log, from: written, lines: written + 200, blows: [] });
        written += 200;
        return Number((await odp.mql(`select count(*) from ${other}`))[0]?.["count"]) || undefined;
      },
    );
    await settled(odp, written, both);
    expect(await amiss(odp, written, both)).toEqual({ missing: [], doubled: [] });
    expect(byOther).toBeLessThan(lines);
    prove("rule-edited", { lines, edits: edits.length, kills: 2, byTheOtherRule: byOther, seed: SEED });
  } finally {
    await odp.stop();
  }
});

test("an outbox deleted by hand while the agent is down is told, and the log goes on where it was", {
  timeout: DEADLINE_MS,
}, async () => {
  const lines = 20_000;
  const odp = await Installation.start({ ODP_STORE: "embedded" });
  try {
    await prepare(odp, SMALLER.match);
    const log = {
      ...SMALLER,
      odp,
      rotateEveryLines: 3_000,
      rotations: ["rename", "copy-truncate"],
      blows: [],
    } as const;
    await carryOut({ ...log, lines: lines / 2 });
    await settled(odp, lines / 2);
    await odp.agent(HOST).kill("SIGTERM");
    await rm(join(odp.folder, `agent-${HOST}`, "outbox"), { recursive: true });
    await carryOut({ ...log, from: lines / 2, lines: lines / 2 + 5_000 });
    await odp.startAgent(HOST);
    await carryOut({ ...log, from: lines / 2 + 5_000, lines });
    await settled(odp, lines);
    expect(await amiss(odp, lines)).toEqual({ missing: [], doubled: [] });
    const told = await odp.mql(
      "select source, stime, etime from /matrix/system/policygap where reason='outbox_lost' limit -1",
    );
    expect(told).toMatchObject([{ source: "outbox" }]);
    const [{ stime, etime } = {}] = told;
    const isLost = (dueMs: number): boolean => dueMs >= Number(stime) - SECOND_MS && dueMs <= Number(etime) + SECOND_MS;
    let unknown: readonly number[] = [];
    // Entries that an agent sends together are stored in any order.
    await expect
      .poll(async () => (unknown = await unaccounted(odp, "tick")).filter((dueMs) => !isLost(dueMs)), {
        message: `due runs that are nowhere, and not between ${String(stime)} and ${String(etime)}`,
      })
      .toEqual([]);
    prove("outbox-lost", { lines, runsNobodyKnowsOf: unknown.length, seed: SEED });
  } finally {
    await odp.stop();
  }
});
