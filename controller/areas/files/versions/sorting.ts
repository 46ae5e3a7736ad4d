import { FILE_LIST_RUN_MAX_BYTES } from "../../../../common/limits.ts";
import { lineOf, type KeptEntry } from "./kept-entry.ts";
import type { EntryLists } from "./lists.ts";

/** Two entries of one path. Absent: the tree on this side lacks the path. */
export interface Pair {
  readonly before: KeptEntry | undefined;
  readonly after: KeptEntry | undefined;
}

/** The list of a tree that does not exist. */
export const NO_ENTRIES: AsyncIterable<KeptEntry> = {
  [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }),
};

/**
 * The entries in the order of their paths, each path once; of equal paths the first. Entries beyond
 * `FILE_LIST_RUN_MAX_BYTES` are sorted in runs, which are stored as the lists `<name>/run0`, `run1`, … and merged
 * (external merge sort). The caller removes the runs (`removeRuns`).
 */
export async function* sorted(
  lists: EntryLists,
  name: string,
  entries: AsyncIterable<KeptEntry>,
): AsyncGenerator<KeptEntry> {
  let run: KeptEntry[] = [];
  let bytes = 0;
  let runs = 0;
  for await (const entry of entries) {
    run.push(entry);
    bytes += lineOf(entry).length;
    if (bytes < FILE_LIST_RUN_MAX_BYTES) continue;
    await lists.write(runOf(name, runs++), inOrder(run));
    [run, bytes] = [[], 0];
  }
  const stored = Array.from({ length: runs }, (_, at) => lists.read(runOf(name, at)));
  yield* once(merged([...stored, inOrder(run)]));
}

/** Removes the runs that an attempt left. The last one first: a run is never there without those before it. */
export async function removeRuns(lists: EntryLists, name: string): Promise<void> {
  let runs = 0;
  while (await lists.isThere(runOf(name, runs))) runs += 1;
  for (let at = runs; at >= 0; at--) await lists.remove(runOf(name, at));
}

/** The paths of both lists, in order. */
export async function* pairs(before: AsyncIterable<KeptEntry>, after: AsyncIterable<KeptEntry>): AsyncGenerator<Pair> {
  const [one, other] = [before[Symbol.asyncIterator](), after[Symbol.asyncIterator]()];
  try {
    let [left, right] = [await next(one), await next(other)];
    while (left !== undefined || right !== undefined) {
      const takesLeft = left !== undefined && (right === undefined || left.path <= right.path);
      const takesRight = right !== undefined && (left === undefined || right.path <= left.path);
      yield { before: takesLeft ? left : undefined, after: takesRight ? right : undefined };
      if (takesLeft) left = await next(one);
      if (takesRight) right = await next(other);
    }
  } finally {
    await one.return?.();
    await other.return?.();
  }
}

function runOf(name: string, at: number): string {
  return `${name}/run${at}`;
}

async function* inOrder(entries: readonly KeptEntry[]): AsyncGenerator<KeptEntry> {
  yield* [...entries].sort((one, other) => (one.path < other.path ? -1 : one.path > other.path ? 1 : 0));
}

interface Head {
  readonly rest: AsyncIterator<KeptEntry>;
  entry: KeptEntry;
}

async function* merged(sources: readonly AsyncGenerator<KeptEntry>[]): AsyncGenerator<KeptEntry> {
  const heads: Head[] = [];
  try {
    for (const rest of sources) {
      const entry = await next(rest);
      if (entry) heads.push({ rest, entry });
    }
    while (heads.length > 0) {
      const least = heads.reduce((least, head) => (head.entry.path < least.entry.path ? head : least));
      yield least.entry;
      const entry = await next(least.rest);
      if (entry) least.entry = entry;
      else heads.splice(heads.indexOf(least), 1);
    }
  } finally {
    for (const source of sources) await source.return(undefined);
  }
}

/** Without repeated paths: an entry that was moved while its folder was read may be read twice. */
async function* once(entries: AsyncIterable<KeptEntry>): AsyncGenerator<KeptEntry> {
  let last: string | undefined;
  for await (const entry of entries) {
    if (entry.path !== last) yield entry;
    last = entry.path;
  }
}

async function next(entries: AsyncIterator<KeptEntry>): Promise<KeptEntry | undefined> {
  const { done, value } = await entries.next();
  return done ? undefined : value;
}
