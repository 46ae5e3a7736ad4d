import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { prove } from "../helpers/evidence.ts";
import { amiss, carryOut, everythingOnce, gapsOf, HOST, kills, LINES_CLASS, prepare, putRule, settled, WriteTimes, type Blow } from "./exactly-once.ts";
import { accessLine } from "./access-log.ts";
import { clusterVariables, Installation } from "./installation.ts";
import { unaccounted } from "./scheduled-runs.ts";

/** In CI always the same moments; `ODP_SEED` tries others. */
const SEED = Number(process.env["ODP_SEED"] ?? 4);
const KILLS = 10;
const DEADLINE_MS = 600_000;
const SECOND_MS = 1_000;

const cluster = inject("cluster");
const engines = [
  { name: "embedded", lines: 300_000, rotateEveryLines: 14_000, linesPerBurst: 600, match: "^access\\.log(\\.\\d+)?$", settings: { ODP_STORE: "embedded" } },
  { name: "cluster", lines: 100_000, rotateEveryLines: 6_000, linesPerBurst: 200, match: "^access\\.log$", settings: cluster.available ? clusterVariables(cluster.settings) : undefined },
] as const;

describe.each(engines)("on the $name engine", ({ name, lines, settings, ...log }) => {
  test.skipIf(settings === undefined)("every line and every scheduled run is there exactly once, through rotation and ten kills", { timeout: DEADLINE_MS }, async () => {
    const odp = await Installation.start(settings ?? {});
    try {
      await prepare(odp, log.match);
      const blows = kills(odp, KILLS);
      const rotations = await carryOut({ odp, seed: SEED, lines, pauseMs: 80, rotations: ["rename", "copy-truncate"], blows, ...log });
      const told = await everythingOnce(odp, lines);
      prove("exactly-once", { engine: name, lines, kills: KILLS, rotations, ...told, seed: SEED });
    } finally {
      await odp.stop();
    }
  });
});

const SMALLER = { seed: SEED, pauseMs: 40, linesPerBurst: 200, match: "^access\\.log$" } as const;

test("a writer that is not halted loses what it writes between copy and truncation: each hole is told, with what was seen of it", { timeout: DEADLINE_MS }, async () => {
  const lines = 60_000;
  const odp = await Installation.start({ ODP_STORE: "embedded" });
  try {
    await prepare(odp, SMALLER.match);
    const times = new WriteTimes();
    const rotations = await carryOut({ ...SMALLER, odp, lines, rotateEveryLines: 5_000, rotations: ["racing copy-truncate"], blows: [], times });
    const { missing, doubled } = await untilStill(odp, lines);
    expect(doubled).toEqual([]);
    const gaps = await gapsOf(odp);
    expect(gaps.filter(({ reason }) => reason !== "truncated")).toEqual([]);
    expect(gaps).toHaveLength(rotations);
    const silent = missing.filter((n) => !gaps.some(({ stime, etime }) => times.within(n, Number(stime), Number(etime))));
    expect(silent.map((n) => times.of(n)), `written then and missing, and no gap speaks of it: ${JSON.stringify(gaps)}`).toEqual([]);
    const lostBytes = missing.reduce((sum, n) => sum + accessLine(n).length, 0);
    const toldBytes = gaps.reduce((sum, { count }) => sum + Number(count), 0);
    expect(toldBytes).toBeLessThanOrEqual(lostBytes);
    prove("truncation-is-told", { lines, rotations, missing: missing.length, lostBytes, toldBytes, seed: SEED });
  } finally {
    await odp.stop();
  }
});

test("while its rule is edited again and again each line is an object by one of the rules, none by two", { timeout: DEADLINE_MS }, async () => {
  const lines = 60_000;
  const other = "/matrix/once/other";
  const odp = await Installation.start({ ODP_STORE: "embedded" });
  try {
    await prepare(odp, SMALLER.match);
    await odp.mql(`create class ${other} (path varchar, n bigint) with kind='record'`);
    const edits = Array.from({ length: 8 }, (_, index): Blow => ({ what: "the rule is edited", strike: async () => void (await putRule(odp, "access", index % 2 === 0 ? other : LINES_CLASS)) }));
    const blows = kills(odp, 4).flatMap((kill, index) => [kill, ...edits.slice(2 * index, 2 * index + 2)]);
    await carryOut({ ...SMALLER, odp, lines, rotateEveryLines: 8_000, rotations: ["rename", "copy-truncate"], blows });
    const both = [LINES_CLASS, other];
    await settled(odp, lines, both);
    expect(await amiss(odp, lines, both)).toEqual({ missing: [], doubled: [] });
    const byOther = Number((await odp.mql(`select count(*) from ${other}`))[0]?.["count"]);
    expect(byOther).toBeGreaterThan(0);
    expect(byOther).toBeLessThan(lines);
    prove("rule-edited", { lines, edits: edits.length, kills: 4, byTheOtherRule: byOther, seed: SEED });
  } finally {
    await odp.stop();
  }
});

test("an outbox deleted by hand while the agent is down is told, and the log goes on where it was", { timeout: DEADLINE_MS }, async () => {
  const lines = 20_000;
  const odp = await Installation.start({ ODP_STORE: "embedded" });
  try {
    await prepare(odp, SMALLER.match);
    const log = { ...SMALLER, odp, rotateEveryLines: 3_000, rotations: ["rename", "copy-truncate"], blows: [] } as const;
    await carryOut({ ...log, lines: lines / 2 });
    await settled(odp, lines / 2);
    await odp.agent(HOST).kill("SIGTERM");
    await rm(join(odp.folder, `agent-${HOST}`, "outbox"), { recursive: true });
    await carryOut({ ...log, from: lines / 2, lines: lines / 2 + 5_000 });
    await odp.startAgent(HOST);
    await carryOut({ ...log, from: lines / 2 + 5_000, lines });
    await settled(odp, lines);
    expect(await amiss(odp, lines)).toEqual({ missing: [], doubled: [] });
    const told = await odp.mql("select source, stime, etime from /matrix/system/policygap where reason='outbox_lost' limit -1");
    expect(told).toMatchObject([{ source: "outbox" }]);
    const [{ stime, etime } = {}] = told;
    const unknown = await unaccounted(odp, "tick");
    for (const dueMs of unknown) expect(dueMs >= Number(stime) - SECOND_MS && dueMs <= Number(etime) + SECOND_MS, `run due ${dueMs} is nowhere`).toBe(true);
    prove("outbox-lost", { lines, runsNobodyKnowsOf: unknown.length, seed: SEED });
  } finally {
    await odp.stop();
  }
});

/** What is missing when the last line has come and everything before it has been told. */
async function untilStill(odp: Installation, lines: number) {
  await settled(odp, lines, [LINES_CLASS], { last: true });
  return amiss(odp, lines);
}
