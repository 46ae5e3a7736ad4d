import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Installation } from "../../e2e/installation.ts";
import { freePort } from "../../helpers/programs/programs.ts";

export interface Turned {
  /** Processor time of the main thread in the longest turn of its event loop. */
  readonly turnMs: number;
  /** Highest growth of heap and buffers. */
  readonly heapMb: number;
  /** Stacks of the longest turn with the milliseconds spent in each, most first. Absent without profiles. */
  readonly stacks?: readonly string[];
}

/** Number of stacks reported of the longest turn, and of functions in each, the innermost first. */
const STACKS = 12;
const STACK_FUNCTIONS = 14;
const SAMPLE_US = 500;

/**
 * Code loaded into the controller before its program. It reads the scheduler's account of the main thread, which
 * excludes the threads of scripts and of the collector, and the time that the thread waits for a processor.
 */
const PROGRAM = `
import { openSync, readSync } from "node:fs";
import { createServer } from "node:http";
import { Session } from "node:inspector/promises";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isMainThread } from "node:worker_threads";
const EVERY_MS = 1;
if (isMainThread && process.argv[1]?.endsWith("/controller.js")) {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  const account = openSync("/proc/self/task/" + process.pid + "/schedstat", "r");
  const bytes = Buffer.alloc(64);
  const processorMs = () => Number.parseInt(bytes.latin1Slice(0, readSync(account, bytes, 0, 64, 0))) / 1e6;
  const heapMb = () => {
    const { used_heap_size, external_memory } = getHeapStatistics();
    return (used_heap_size + external_memory) / 1048576;
  };
  let [turnMs, mostMb, before, last, timer, longest] = [0, 0, 0, undefined, undefined, undefined];
  const session = process.env.TURN_PROBE_PROFILES === "1" ? new Session() : undefined;
  session?.connect();
  await session?.post("Profiler.enable");
  await session?.post("Profiler.setSamplingInterval", { interval: ${SAMPLE_US} });
  const monotonicUs = () => Number(process.hrtime.bigint() / 1000n);
  const stacksOf = ({ nodes, samples, timeDeltas, startTime }, [from, to]) => {
    const byId = new Map(nodes.map((node) => [node.id, node]));
    for (const node of nodes) for (const id of node.children ?? []) byId.get(id).parent = node;
    const spent = new Map();
    let at = startTime;
    samples.forEach((id, index) => {
      at += timeDeltas[index];
      if (at < from || at > to) return;
      const names = [];
      for (let node = byId.get(id); node && names.length < ${STACK_FUNCTIONS}; node = node.parent) {
        const { functionName, url, lineNumber } = node.callFrame;
        names.push((functionName || "?") + (url ? ":" + (lineNumber + 1) : ""));
      }
      const stack = names.join(" < ");
      // A sample that came late waited for a processor.
      spent.set(stack, (spent.get(stack) ?? 0) + Math.min(timeDeltas[index], 2 * ${SAMPLE_US}) / 1000);
    });
    const most = [...spent].sort((a, b) => b[1] - a[1]).slice(0, ${STACKS});
    return most.map(([stack, ms]) => ms.toFixed(1) + " ms " + stack);
  };
  const look = () => {
    const next = { wall: performance.now(), processor: processorMs() };
    const ms = Math.min(next.wall - last.wall - EVERY_MS, next.processor - last.processor);
    const nowUs = monotonicUs();
    if (ms > turnMs) [turnMs, longest] = [ms, [last.us, nowUs]];
    mostMb = Math.max(mostMb, heapMb() - before);
    last = { ...next, us: nowUs };
  };
  const begin = async () => {
    collect();
    await session?.post("Profiler.start");
    [turnMs, mostMb, before, longest] = [0, 0, heapMb(), undefined];
    last = { wall: performance.now(), processor: processorMs(), us: monotonicUs() };
    timer = setInterval(look, EVERY_MS);
  };
  const end = async () => {
    look();
    clearInterval(timer);
    const { profile } = (await session?.post("Profiler.stop")) ?? {};
    return JSON.stringify({ turnMs, heapMb: mostMb, ...(profile && { stacks: stacksOf(profile, longest) }) });
  };
  const server = createServer(({ url }, answer) => {
    const work = url === "/end" ? end : begin;
    setImmediate(async () => answer.end((await work()) ?? "{}"));
  });
  // A connection that is closed while it is asked again would end the bench.
  server.keepAliveTimeout = 0;
  server.listen(Number(process.env.TURN_PROBE_PORT), "127.0.0.1");
}`;

/** A controller as it ships that reports the length of its turns. */
export class ProbedController implements AsyncDisposable {
  readonly odp: Installation;
  readonly #url: string;
  readonly #folder: string;

  private constructor(odp: Installation, url: string, folder: string) {
    this.odp = odp;
    this.#url = url;
    this.#folder = folder;
  }

  static async start(): Promise<ProbedController> {
    const folder = await mkdtemp(join(tmpdir(), "odp-turns-"));
    const file = join(folder, "probe.mjs");
    await writeFile(file, PROGRAM);
    const port = await freePort();
    const profiles = process.env["ODP_BENCH_PROFILES"] ?? "";
    const probe = { TURN_PROBE_PORT: String(port), TURN_PROBE_PROFILES: profiles };
    const settings = { NODE_OPTIONS: `--import=${file}`, ...probe };
    return new ProbedController(await Installation.start(settings), `http://127.0.0.1:${port}`, folder);
  }

  async during(work: () => Promise<unknown>): Promise<Turned> {
    await this.#ask("begin");
    await work();
    return this.#ask("end");
  }

  async #ask(what: string): Promise<Turned> {
    return (await (await fetch(`${this.#url}/${what}`)).json()) as Turned;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // An orderly stop would wait for calls whose callers have left.
    await this.odp.controller.kill();
    await this.odp.stop();
    await rm(this.#folder, { recursive: true });
  }
}
