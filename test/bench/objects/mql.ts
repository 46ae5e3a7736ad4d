import { parseScript } from "../../../common/mql/index.ts";
import type { Bench } from "../driver/frame.ts";

const STATEMENT =
  "SELECT host, status, count(*) AS total FROM /matrix/devops/performance/ WHERE (host = 'web-1' OR host IN ('web-2','web-3')) " +
  "AND status >= 3 AND vtime > '2026-11-21 00:00:00' AND name LIKE 'cpu*' ORDER BY total DESC LIMIT 20";
const TEXTS = 100_000;

export const mqlBench: Bench = {
  name: "mql",
  run() {
    parseMany(TEXTS / 10);
    const started = performance.now();
    parseMany(TEXTS);
    const ours = (TEXTS * 1_000) / (performance.now() - started);
    const figure = {
      name: `parse a select of ${STATEMENT.length} characters`,
      unit: "statements/s",
      ours,
      against: 200_000,
    } as const;
    return Promise.resolve([{ ...figure, againstName: "the goal of 200,000/s", kind: "ratio", goal: 1 }]);
  },
};

function parseMany(count: number): void {
  for (let n = 0; n < count; n += 1) parseScript(STATEMENT);
}
