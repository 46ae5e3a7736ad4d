import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isAppError } from "../../common/errors.ts";
import type { QueryResult } from "../../controller/areas/query/index.ts";
import { QUERY_TENANT_MEMORY_MAX_BYTES } from "../../common/limits.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import type { HostileRequest } from "./hostile.ts";
import type { World } from "./objects.ts";

const viewer = testPrincipal("viewer");
const writer = testPrincipal();
const SAMPLE_MS = 2;
/** A request in slices may take long; its caller leaves after this time. */
const PATIENCE_MS = 600;
/** In addition to the memory of queries: the text, its syntax tree, and garbage. */
export const HELD_HEAP_MAX_MB = (2 * QUERY_TENANT_MEMORY_MAX_BYTES) / 1_048_576;

export interface Held {
  /**
   * Longest time in ms during which the event loop stood still while this process worked, without waits for a
   * processor.
   */
  readonly stopMs: number;
  /** Maximum growth of the heap in MB. */
  readonly heapMb: number;
  /** `ok`, or the code of the error. */
  readonly outcome: string;
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/**
 * Measures the effect of one request on the thread and the memory of all others. Its caller leaves on the signal, or
 * after `PATIENCE_MS`.
 */
export async function held(world: World, request: HostileRequest, signal?: AbortSignal): Promise<Held> {
  const text = request.text();
  const values = request.values?.();
  const cursor = request.cursor?.();
  return heldBy(() =>
    outcomeOf(() => ask(world, request, { text, values, cursor, signal: signal ?? AbortSignal.timeout(PATIENCE_MS) })),
  );
}

/** Measures the effect of some work; `work` returns its outcome. */
export async function heldBy(work: () => Promise<string>): Promise<Held> {
  collectGarbage();
  const before = getHeapStatistics().used_heap_size;
  const seen = { stopMs: 0, heapMb: 0, last: now() };
  const look = (): void => {
    const { wallMs, workedMs } = now();
    seen.stopMs = Math.max(seen.stopMs, Math.min(wallMs - seen.last.wallMs - SAMPLE_MS, workedMs - seen.last.workedMs));
    seen.heapMb = Math.max(seen.heapMb, (getHeapStatistics().used_heap_size - before) / 1_048_576);
    seen.last = now();
  };
  await turn();
  seen.last = now();
  const timer = setInterval(look, SAMPLE_MS);
  const outcome = await work();
  await turn();
  look();
  clearInterval(timer);
  return { stopMs: seen.stopMs, heapMb: seen.heapMb, outcome };
}

interface Asked {
  readonly text: string;
  readonly values: ReturnType<NonNullable<HostileRequest["values"]>> | undefined;
  readonly cursor: string | undefined;
  readonly signal: AbortSignal;
}

function ask(
  { query, search }: World,
  { language, by }: HostileRequest,
  { text, values, cursor, signal }: Asked,
): Promise<QueryResult> {
  const principal = by === "writer" ? writer : viewer;
  if (language === "search") return search.search(principal, text, { signal });
  return query.run(principal, text, {
    signal,
    ...(values ? { values } : {}),
    ...(cursor === undefined ? {} : { cursor }),
  });
}

async function outcomeOf(work: () => Promise<QueryResult>): Promise<string> {
  try {
    for await (const page of (await work()).rows) if (page.length === 0) await turn();
    return "ok";
  } catch (error) {
    return isAppError(error) ? error.code : `not an AppError: ${String(error)}`;
  }
}

function now(): { readonly wallMs: number; readonly workedMs: number } {
  const { user, system } = process.cpuUsage();
  return { wallMs: performance.now(), workedMs: (user + system) / 1_000 };
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
