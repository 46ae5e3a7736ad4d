import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Installation } from "../e2e/installation.ts";
import { freePort } from "../helpers/programs.ts";

export interface Turned {
  /** Processor time of the main thread in the longest turn of its event loop. */
  readonly turnMs: number;
  /** Heap and buffers, more than before, at most. */
  readonly heapMb: number;
}

/**
 * Is loaded into the controller before its program. The scheduler's account of the main thread leaves out the threads
 * of scripts and of the collector, and what the thread waited for a processor.
 */
const PROGRAM = `
import { openSync, readSync } from "node:fs";
import { createServer } from "node:http";
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
  let [turnMs, mostMb, before, last, timer] = [0, 0, 0, undefined, undefined];
  const look = () => {
    const next = { wall: performance.now(), processor: processorMs() };
    const ms = Math.min(next.wall - last.wall - EVERY_MS, next.processor - last.processor);
    turnMs = Math.max(turnMs, ms);
    mostMb = Math.max(mostMb, heapMb() - before);
    last = next;
  };
  const begin = () => {
    collect();
    [turnMs, mostMb, before] = [0, 0, heapMb()];
    last = { wall: performance.now(), processor: processorMs() };
    timer = setInterval(look, EVERY_MS);
  };
  const end = () => {
    look();
    clearInterval(timer);
    return JSON.stringify({ turnMs, heapMb: mostMb });
  };
  const server = createServer(({ url }, answer) => {
    if (url === "/end") return setImmediate(() => answer.end(end()));
    setImmediate(() => (begin(), answer.end("{}")));
  });
  // A connection that is closed while it is asked again would end the bench.
  server.keepAliveTimeout = 0;
  server.listen(Number(process.env.TURN_PROBE_PORT), "127.0.0.1");
}`;

/** A controller as it ships that tells how long its turns are. */
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
    const settings = { NODE_OPTIONS: `--import=${file}`, TURN_PROBE_PORT: String(port) };
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
    // A stop in good order would wait for calls whose callers have left.
    await this.odp.controller.kill();
    await this.odp.stop();
    await rm(this.#folder, { recursive: true });
  }
}
