import { join } from "node:path";
import { RuleBodies, RuleMemory, type Rule } from "../../../controller/areas/rules/index.ts";
import { RECORD_HOST_OBJECT, RULE_LOCAL_OBJECT } from "../../../controller/areas/rules/bodies/body-objects.ts";
import { compileRule } from "../../../controller/areas/rules/definitions/compile.ts";
import { NO_SUPPLEMENTS } from "../../../controller/areas/rules/definitions/supplements.ts";
import { HostObjects, ThreadScripts } from "../../../controller/scripting/index.ts";
import { UNAUDITED } from "../../helpers/areas/audit.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { testPrincipal, testRuntime } from "../../helpers/time/runtime.ts";
import { combinedLine } from "./access.ts";
import { median, type Bench, type Figure } from "../driver/frame.ts";

const ROUNDS = 5;
const COLUMNS = ["host", "path", "status", "ms", "level"].map((name) => ({ name }));
const CSV = "--class=/matrix/line\n--parser=csv\n--fields=host,path,status,ms\n--fields_type=VAR,VAR,INT,INT\n";
const LUA = `${CSV}if OBJECT.status >= 500 then setvar("level", "error") else setvar("level", "ok") end
setvar("path", string.lower(OBJECT.path))
_ms = OBJECT.ms / 1000
`;
const JAVASCRIPT = `${CSV}--language=javascript
setvar("level", OBJECT.status >= 500 ? "error" : "ok");
setvar("path", OBJECT.path.toLowerCase());
_ms = OBJECT.ms / 1000;
`;

/** Processor time of records in the parsers and bodies of rules, before they are stored. */
export const rulesBench: Bench = {
  name: "rules",
  async run() {
    const { clock, random, log } = testRuntime(realClock);
    const objects = new HostObjects([RECORD_HOST_OBJECT, RULE_LOCAL_OBJECT]);
    const scripts = new ThreadScripts({
      file: join(process.cwd(), "dist/controller-script-worker.js"),
      languages: ["lua", "javascript"],
      functions: () => objects.names,
      clock,
      random,
      log,
    });
    const bodies = new RuleBodies({
      audit: UNAUDITED,
      engine: scripts,
      hostObjects: () => objects,
      author: () => Promise.resolve(testPrincipal()),
      objects: { catalog: () => Promise.resolve(NO_CLASSES) },
      rules: { forwarded: () => Promise.reject(new Error("Nothing is passed on.")) },
      logs: { append: () => Promise.resolve() },
      memory: new RuleMemory(clock),
      runtime: { clock, random, log },
    });
    try {
      const csv = (n: number): string => `web-${n % 50},/Index/${n},${n % 10 ? 200 : 500},${n % 900}`;
      return [
        await figure("a body in Lua", 60_000, { text: LUA, line: csv, count: 10_000, bodies }),
        await figure("a body in JavaScript", 5_000, { text: JAVASCRIPT, line: csv, count: 2_000, bodies }),
        await figure("grok of an access log", 150_000, { text: GROK, line: combinedLine, count: 20_000 }),
        await figure("JSON", 200_000, { text: JSON_RULE, line: (n) => JSON.stringify(objectOf(n)), count: 20_000 }),
        await figure("CSV", 300_000, { text: CSV, line: csv, count: 20_000 }),
      ];
    } finally {
      await scripts.close();
    }
  },
};

const GROK = "--class=/matrix/line\n--parser=grok\n--pattern_1=%{COMBINEDAPACHELOG}\n--var_path=field request\n";
const JSON_RULE = "--class=/matrix/line\n--parser=json\n";

function objectOf(n: number): object {
  return { host: `web-${n % 50}`, path: `/index/${n}`, status: n % 10 ? 200 : 500, ms: n % 900, note: "ordinary" };
}

/** Finds no class, so rows are written to the class of the rule. */
const NO_CLASSES = { get: () => undefined } as never;

interface Work {
  readonly text: string;
  readonly line: (n: number) => string;
  readonly count: number;
  readonly bodies?: RuleBodies;
}

async function figure(name: string, goal: number, { text, line, count, bodies }: Work): Promise<Figure> {
  const compiled = compileRule(text, { path: "/matrix/line", columns: COLUMNS });
  const supplements = { ...NO_SUPPLEMENTS, author: "admin" };
  const rule: Rule = { key: "/matrix/rules/a", digest: "", text, supplements, ...compiled };
  const rates: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const records = Array.from({ length: count }, (_, n) => ({
      text: line(n),
      timeMs: 1_763_880_000_000 + n,
      host: "web-1",
      source: "/var/log/access.log",
      groups: {},
    }));
    const before = process.cpuUsage();
    const parsed = rule.parse(records);
    const rows = bodies
      ? await bodies.work({
          rule,
          records,
          parsed,
          tenant: "matrix",
          authors: new Map(),
          chain: [],
          parse: () => Promise.resolve([]),
        })
      : parsed;
    const { user, system } = process.cpuUsage(before);
    if (rows.length !== count || rows.some(({ ok }) => !ok)) throw new Error(`${name}: ${rows.length} rows.`);
    // The first round warms up the compilers.
    if (round > 0) rates.push((count * 1_000_000) / (user + system));
  }
  const ours = median(rates);
  return { name, unit: "records/s", ours, against: goal, againstName: "the goal", kind: "ratio", goal: 1 };
}
