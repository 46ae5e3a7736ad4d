import { isAppError } from "../../../common/errors.ts";
import type { Clock } from "../../../common/time.ts";
import type { TenantStore } from "../engine.ts";
import type { KvOperation, KvPutOptions, KvStore, KvTxn, KvWriteResult } from "../kv.ts";
import type { ClassCount, Page, PageRequest } from "../objects.ts";

/** The store under test. The same store may be returned again: every test uses names and class numbers of its own. */
export interface ContractSubject {
  readonly store: TenantStore;
  /** The store of another tenant of the same engine. */
  readonly other: TenantStore;
  /** The clock that the engine uses, at least approximately. */
  readonly clock: Pick<Clock, "nowMs">;
  /** The key-value store of `store`, for a controller whose time of day differs from that clock by this many ms. */
  readonly at: (offsetMs: number) => KvStore;
  /** Advances that clock and runs what is due; absent for engines with a real clock. */
  readonly advance?: (ms: number) => Promise<void>;
  /** Compacts the history of the key-value store up to now; absent for engines without compaction on demand. */
  readonly compactKv?: () => Promise<void>;
  close(): Promise<void>;
}

export type OpenSubject = () => Promise<ContractSubject>;

const ATTEMPTS_MAX = 200;
const GONE_WITHIN_MS = 20_000;
const LOOK_EVERY_MS = 200;

let names = 0;

/** A name never used before, in this run or an earlier one. */
export function uniqueName(prefix: string): string {
  names += 1;
  return `${prefix}-${process.pid.toString(36)}-${Date.now().toString(36)}-${names}`;
}

/** A class number that, very probably, was never used before. */
export function uniqueCid(): number {
  names += 1;
  return 1 + (((Date.now() % 2_000_000) * 1_000 + (names % 1_000)) % 0x7fff_fff0);
}

/** Repeats a call after an outage or an unknown outcome, as every caller does. */
export async function again<T>(action: () => Promise<T>): Promise<T> {
  return (await attempts(action)).result;
}

async function attempts<T>(action: () => Promise<T>): Promise<{ readonly result: T; readonly doubtful: boolean }> {
  let doubtful = false;
  for (let attempt = 1; ; attempt++) {
    try {
      return { result: await action(), doubtful };
    } catch (error) {
      if (!isAppError(error, "unavailable", "unknown_outcome") || attempt === ATTEMPTS_MAX) throw error;
      doubtful ||= isAppError(error, "unknown_outcome");
    }
  }
}

/** Writes a unique value. If the answer is lost and the value is present, this write was made. */
export async function put(
  kv: KvStore,
  key: string,
  value: Uint8Array,
  options: KvPutOptions = {},
): Promise<KvWriteResult> {
  const { result, doubtful } = await attempts(() => kv.put(key, value, options));
  if (result.ok || !doubtful || result.current === undefined || !same(result.current.value, value)) return result;
  return { ok: true, revision: result.current.revision };
}

/** Like `put`. If the answer is lost and the key is absent, this call removed it. */
export async function remove(
  kv: KvStore,
  key: string,
  options: { readonly ifRevision?: number } = {},
): Promise<boolean> {
  const { result, doubtful } = await attempts(() => kv.delete(key, options));
  return result.ok || (doubtful && result.current === undefined);
}

/** Like `put`. If the answer is lost and all of `then` is in place, this transaction was made. */
export async function txn(kv: KvStore, request: KvTxn): Promise<boolean> {
  const { result, doubtful } = await attempts(() => kv.txn(request));
  if (result.ok || !doubtful) return result.ok;
  const done = await Promise.all(request.then.map((operation) => inPlace(kv, operation)));
  return done.every(Boolean);
}

async function inPlace(kv: KvStore, operation: KvOperation): Promise<boolean> {
  const entry = await again(() => kv.get(operation.key));
  return operation.kind === "delete" ? entry === undefined : entry !== undefined && same(entry.value, operation.value);
}

/** The items of all pages, with pages of any size. */
export async function all<T>(limit: number, read: (page: PageRequest) => Promise<Page<T>>): Promise<readonly T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const request: PageRequest = cursor === undefined ? { limit } : { limit, cursor };
    const page = await again(() => read(request));
    if (page.items.length > limit) throw new Error(`A page of at most ${limit} has ${page.items.length}.`);
    items.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return items;
}

/** The sum of the counts of all parts. Each part is read with the cursor of the part before. */
export async function counted(read: (cursor: string | undefined) => Promise<ClassCount>): Promise<number> {
  let [sum, cursor] = [0, undefined as string | undefined];
  do {
    const part = await again(() => read(cursor));
    sum += part.count;
    cursor = part.cursor;
  } while (cursor !== undefined);
  return sum;
}

/** Advances the clock if possible; otherwise polls until `isOver`, because real time passes in a real store. */
export async function passTime(subject: ContractSubject, ms: number, isOver: () => Promise<boolean>): Promise<void> {
  if (subject.advance !== undefined) return subject.advance(ms);
  const deadline = performance.now() + ms + GONE_WITHIN_MS;
  while (!(await isOver())) {
    if (performance.now() > deadline) throw new Error(`Still there ${GONE_WITHIN_MS} ms after it should have gone.`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function text(value: Uint8Array): string {
  return new TextDecoder().decode(value);
}

export function same(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

/** A seed for this run. `ODP_TEST_SEED` replays a given one. */
export function seedOfRun(name: string): number {
  const seed = Number(process.env.ODP_TEST_SEED ?? Date.now() % 1_000_000_000);
  console.log(`${name}: seed ${seed} (ODP_TEST_SEED=${seed} replays it)`);
  return seed;
}
