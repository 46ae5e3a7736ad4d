import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { prove } from "../helpers/runs/evidence.ts";
import { eventually } from "../helpers/programs/programs.ts";
import { writeAccessLog, type Rotation } from "./access-log.ts";
import { amiss, gapsOf, LINES_CLASS, prepare } from "./exactly-once.ts";
import { Installation } from "./installation.ts";

/** Number of lines for all kinds of rotation together; the soak writes a million. */
const LINES = Number(process.env["ODP_TEST_LINES"] ?? 40_000);
const KINDS = ["rename", "copy-truncate", "copy-truncate-compress", "link"] as const satisfies readonly Rotation[];
const LINES_PER_BURST = 500;
const PAUSE_MS = 40;
const LIVES_OF_KIND = 12;
/** No generation is removed, because a slow agent reads them later. */
const GENERATIONS_KEPT = LIVES_OF_KIND + 1;
const DEADLINE_MS = 3_600_000;
const ROWS_PER_PAGE = 20_000;
/** Timeout for one page of rows to arrive. After that, the comparison reports the missing rows. */
const ARRIVAL_MS = 300_000;

/** Writes all logs and returns the number of the first line of each life. */
async function writeAll(odp: Installation): Promise<readonly number[]> {
  const begins: number[] = [];
  const each = LINES / KINDS.length;
  for (const [at, kind] of KINDS.entries()) {
    const folder = join(odp.folder, "logs", kind);
    await mkdir(folder, { recursive: true });
    begins.push(at * each);
    await writeAccessLog({
      folder,
      from: at * each,
      lines: (at + 1) * each,
      rotateEveryLines: Math.floor(each / LIVES_OF_KIND),
      linesPerBurst: LINES_PER_BURST,
      pauseMs: PAUSE_MS,
      generations: GENERATIONS_KEPT,
      rotation: () => kind,
      onRotated: (next) => void begins.push(next),
    });
  }
  return begins;
}

async function arrived(odp: Installation): Promise<void> {
  for (let from = 0; from < LINES; from += ROWS_PER_PAGE) {
    const to = Math.min(LINES, from + ROWS_PER_PAGE);
    const isThere = await eventually(`lines ${from} to ${to}`, ARRIVAL_MS, async () => {
      const [row] = await odp.mql(`select count(*) from ${LINES_CLASS} where n >= ${from} and n < ${to}`);
      return Number(row?.["count"]) >= to - from || undefined;
    }).catch(() => false);
    if (!isThere) return;
  }
}

/** Lines of a life whose ids do not ascend with their numbers. */
async function disordered(odp: Installation, begins: readonly number[]): Promise<readonly number[]> {
  const first = new Set(begins);
  const wrong: number[] = [];
  let last = "";
  for (let from = 0; from < LINES; from += ROWS_PER_PAGE) {
    const rows = await odp.mql(
      `select n, id from ${LINES_CLASS} where n >= ${from} and n < ${from + ROWS_PER_PAGE} limit -1`,
    );
    for (const row of rows.sort((a, b) => Number(a["n"]) - Number(b["n"]))) {
      const [n, id] = [Number(row["n"]), String(row["id"])];
      if (!first.has(n) && id <= last) wrong.push(n);
      last = id;
    }
  }
  return wrong;
}

test(`${LINES} lines through every kind of rotation: none is lost, none is there twice, each life is in order`, {
  timeout: DEADLINE_MS,
}, async () => {
  const odp = await Installation.start({ ODP_STORE: "embedded" });
  try {
    await prepare(odp, "^[a-z-]+/access\\.log$");
    // Without an index, every page would read all of a million rows.
    await odp.mql(`alter class ${LINES_CLASS} add index n`);
    const begins = await writeAll(odp);
    await arrived(odp);
    expect(await amiss(odp, LINES)).toEqual({ missing: [], doubled: [] });
    expect(await disordered(odp, begins)).toEqual([]);
    const gaps = await gapsOf(odp);
    expect(gaps.filter(({ count }) => Number(count) > 0)).toEqual([]);
    expect(gaps.filter(({ source }) => String(source).includes("/rename/"))).toEqual([]);
    prove("log-rotation", { lines: LINES, kinds: KINDS.length, lives: begins.length, unknownGaps: gaps.length });
  } finally {
    await odp.stop();
  }
});
