import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { QuickJS } from "quickjs-wasi";
import { JAVASCRIPT_TECHNIQUES } from "../../../controller/scripting/contract/techniques-javascript.ts";
import { LUA_TECHNIQUES } from "../../../controller/scripting/contract/techniques-lua.ts";
import { ThreadScripts, type ScriptLanguage } from "../../../controller/scripting/index.ts";
import { form, Installation } from "../../e2e/installation.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { testRuntime } from "../../helpers/time/runtime.ts";
import { Calls, succeeding, type Reply } from "../http/calls.ts";
import { inTurns, median, perSecond, quantile, type Bench, type Figure } from "../driver/frame.ts";
import { anonymousMb, cpuSeconds } from "../driver/process.ts";

const CALLS = 2_000;
const AT_ONCE = 16;
const CORES = 2;
/** Number of calls made one after the other. */
const ALONE = 300;
const ENGINE_CALLS = 200;
const TENANTS = Number(process.env.ODP_BENCH_TENANTS ?? 100);
const SCRIPTS = Number(process.env.ODP_BENCH_SCRIPTS ?? 10_000);
const PASSWORD = "correct horse battery";
const NOTHING = "/cluster/info";

/** A global of Node that is missing in its types. */
const { WebAssembly: Wasm } = globalThis as unknown as {
  readonly WebAssembly: { compile(bytes: Uint8Array): Promise<WebAssembly.Module> };
};

export const TRIVIAL = "OUTPUT = 1;";
export const HOST_CALLS = `var rows = 0;
for (var i = 0; i < 10; i++) rows += odb.mql("select * from /matrix/bench/row limit 100").data.length;
if (rows !== 1000) throw new Error(rows + " rows came");
OUTPUT = rows;`;
const BOMB = "while (true) {}";
/** Timeout in ms of each script that tries to get out of its sandbox. */
const WAY_OUT_MAX_MS = 400;
const LOOKED_EVERY_MS = 1;
export const TRIGGER = "OBJECT.n = (OBJECT.n or 0) + 1";

/** Scripts over HTTP, engine calls alone, triggers before writes, and the cost of many scripts, on embedded. */
export const scriptsBench: Bench = {
  name: "scripts",
  async run() {
    return [await engineFigure(), await waysOutFigure(), ...(await httpFigures()), await storedFigure()];
  },
};

/** A run on a thread of the engine, beside a bare machine that is restored from a snapshot, used once and discarded. */
async function engineFigure(): Promise<Figure> {
  const { clock, random, log } = testRuntime(realClock);
  const file = join(process.cwd(), "dist/controller-script-worker.js");
  const scripts = new ThreadScripts({ file, languages: ["javascript"], functions: () => [], clock, random, log });
  const { resolve } = createRequire(import.meta.url);
  const wasm = await Wasm.compile(readFileSync(resolve("quickjs-wasi/quickjs.wasm")));
  const first = await QuickJS.create({ wasm });
  const snapshot = first.snapshot();
  first.dispose();
  const script = {
    tenant: "matrix",
    kind: "serverjs",
    user: "matrix",
    language: "javascript",
    name: "/bench.js",
    source: TRIVIAL,
    timeoutMs: 10_000,
  } as const;
  const host = { call: () => Promise.resolve(undefined) };
  try {
    const rates = await inTurns(
      () => perSecond(ENGINE_CALLS, 1, () => scripts.run({ ...script, globals: {}, results: ["OUTPUT"] }, host)),
      () =>
        perSecond(ENGINE_CALLS, 1, async () => {
          const vm = await QuickJS.restore(snapshot, { wasm });
          vm.evalCode(TRIVIAL).dispose();
          vm.dispose();
        }),
    );
    return {
      name: "a trivial call of the engine",
      unit: "calls/s",
      ...rates,
      againstName: "bare quickjs-wasi",
      kind: "ratio",
      goal: 0.7,
    };
  } finally {
    await scripts.close();
  }
}

/** Delay of all other calls while all known ways out of the sandboxes are tried, two at a time. */
async function waysOutFigure(): Promise<Figure> {
  const { clock, random, log } = testRuntime(realClock);
  const file = join(process.cwd(), "dist/controller-script-worker.js");
  const languages = ["javascript", "lua"] as const;
  const limits = { shares: [] };
  const scripts = new ThreadScripts({
    file,
    languages,
    functions: () => [],
    clock,
    random,
    log,
    limits,
    threads: CORES,
  });
  const host = { call: () => Promise.resolve(undefined) };
  const waysOut = (language: ScriptLanguage, techniques: typeof LUA_TECHNIQUES) =>
    techniques.map(([, source]) => ({ language, source }));
  const all = [...waysOut("javascript", JAVASCRIPT_TECHNIQUES), ...waysOut("lua", LUA_TECHNIQUES)];
  const delay = monitorEventLoopDelay({ resolution: LOOKED_EVERY_MS });
  try {
    delay.enable();
    // The scripts end in errors. The tests of the sandboxes prove that none gets out.
    await perSecond(all.length, CORES, async (n) => {
      const by = { tenant: "matrix", kind: "serverjs", user: "matrix" } as const;
      const script = { ...by, name: "/bench", timeoutMs: WAY_OUT_MAX_MS, globals: {}, results: ["OUT"] };
      await scripts.run({ ...script, ...all[n]! }, host).catch(() => undefined);
    });
    delay.disable();
    return most("the event loop beside ways out of the sandboxes, p99", "ms", 50, delay.percentile(99) / 1e6);
  } finally {
    await scripts.close();
  }
}

async function httpFigures(): Promise<readonly Figure[]> {
  const odp = await Installation.start({});
  try {
    const session = await odp.session();
    await odp.ok("POST", "/companys", JSON.stringify({ name: "other", password: PASSWORD }));
    await odp.mql("create class /matrix/bench/row (n int, text varchar)");
    await odp.mql("create class /matrix/bench/triggered (n int, text varchar)");
    const rows = Array.from({ length: 100 }, (_, n) => `insert into /matrix/bench/row n=${n}, text='row ${n}';`);
    await odp.mql(`begin ${rows.join(" ")} end`);
    const trigger = { class: "/matrix/bench/triggered", name: "count", script: TRIGGER, attr: { before: "true" } };
    await odp.ok("PUT", "/mxobject/trigger", JSON.stringify(trigger));
    for (const [name, data] of Object.entries({ trivial: TRIVIAL, hosted: HOST_CALLS }))
      await odp.ok("PUT", `/fs/script/bench/${name}.js`, form({ data }));
    const calls = new Calls({ port: odp.port, atOnce: AT_ONCE });
    const script = (name: string) => () =>
      succeeding(calls.get(`/script/exec/js?filepath=/bench/${name}.js&sessionid=${session}`));
    const insert = (path: string) => () =>
      succeeding(calls.form(`/mxobject/mql?sessionid=${session}`, { mql: `insert into ${path} n=1, text='x'` }));
    const figures = [
      ...(await rateFigures(odp, script("trivial"))),
      await addedFigure("a trivial script adds to an empty call, p95", 3, {
        ours: script("trivial"),
        without: () => succeeding(calls.get(`${NOTHING}?sessionid=${session}`)),
      }),
      most("a script with ten host calls of 100 rows, p50", "ms", 8, median(await times(script("hosted")))),
      await addedFigure("a trigger before it adds to an insert, p95", 1, {
        ours: insert("/matrix/bench/triggered"),
        without: insert("/matrix/bench/row"),
      }),
      await bombFigure(odp, script("trivial")),
    ];
    calls.close();
    return figures;
  } finally {
    await odp.stop();
  }
}

type Call = () => Promise<Reply>;

/** Rates by the clock, and by the processor time of all threads of the controller as if two cores were free for it. */
async function rateFigures(odp: Installation, call: Call): Promise<readonly Figure[]> {
  await perSecond(CALLS, AT_ONCE, call);
  const before = cpuSeconds(odp.controller.pid);
  const byClock = await perSecond(CALLS, AT_ONCE, call);
  const byProcessor = (CORES * CALLS) / (cpuSeconds(odp.controller.pid) - before);
  const goal = { unit: "calls/s", against: 1_500, againstName: "the goal", kind: "ratio", goal: 1 } as const;
  return [
    { ...goal, name: "a trivial script over HTTP", ours: byClock },
    { ...goal, name: "a trivial script over HTTP, by the controller's processor time", ours: byProcessor },
  ];
}

/** Measures in turns, so that a machine that gets slower affects both. */
async function addedFigure(
  name: string,
  limitMs: number,
  { ours, without }: { readonly ours: Call; readonly without: Call },
): Promise<Figure> {
  await times(ours);
  const [taken, bare]: [number[], number[]] = [[], []];
  for (let index = 0; index < ALONE; index += 1) {
    bare.push(await took(without));
    taken.push(await took(ours));
  }
  return most(name, "ms", limitMs, quantile(taken, 0.95) - quantile(bare, 0.95));
}

/** Median of a trivial script while an endless script of another tenant runs, beside the same script alone. */
async function bombFigure(odp: Installation, call: Call): Promise<Figure> {
  const other = await odp.signIn("other", PASSWORD);
  const alone = median(await times(call));
  const end = new AbortController();
  const bomb = fetch(`${odp.url}/script/exec/js?sessionid=${other}`, {
    method: "POST",
    headers: { "content-type": "text/plain" },
    body: BOMB,
    signal: end.signal,
  }).catch(() => undefined);
  const beside = median(await times(call));
  end.abort();
  await bomb;
  const unit = "ms";
  return most("a trivial script beside one of another tenant that never ends, p50", unit, alone * 1.1, beside);
}

/** Memory of stored scripts of many tenants, of which each runs one script once. */
async function storedFigure(): Promise<Figure> {
  const odp = await Installation.start({});
  try {
    const calls = new Calls({ port: odp.port, atOnce: 4 });
    for (let tenant = 0; tenant < TENANTS; tenant += 1) {
      const name = `tenant${tenant}`;
      await odp.ok("POST", "/companys", JSON.stringify({ name, password: PASSWORD }));
      const session = await odp.signIn(name, PASSWORD);
      await perSecond(SCRIPTS / TENANTS, 4, (n) =>
        succeeding(calls.json(`/fs/script/bench/${n}.js?sessionid=${session}`, { data: `${TRIVIAL} // ${n}` }, "PUT")),
      );
      await succeeding(calls.get(`/script/exec/js?filepath=/bench/0.js&sessionid=${session}`));
    }
    calls.close();
    return most(
      `${SCRIPTS} stored scripts of ${TENANTS} tenants, RssAnon`,
      "MB",
      1_024,
      anonymousMb(odp.controller.pid),
    );
  } finally {
    await odp.stop();
  }
}

async function times(call: Call): Promise<number[]> {
  const found: number[] = [];
  for (let index = 0; index < ALONE; index += 1) found.push(await took(call));
  return found;
}

async function took(call: Call): Promise<number> {
  const began = performance.now();
  await call();
  return performance.now() - began;
}

function most(name: string, unit: string, against: number, ours: number): Figure {
  return { name, unit, ours, against, againstName: "the limit", kind: "most", goal: 1 };
}
