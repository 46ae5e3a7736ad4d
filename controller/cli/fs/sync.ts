import { mapLimited } from "../../../common/concurrency.ts";
import { errorText, isAppError } from "../../../common/errors.ts";
import { FILE_SYNC_AT_ONCE } from "../../../common/limits.ts";
import { Execution, isFatal, type SyncResult } from "./execution.ts";
import { comparedKeys, planOf, type Base } from "./plan.ts";
import { ChangedWhileRead } from "./local-source.ts";
import type { KnownDigest, ScanOptions, Side, SyncOptions } from "./side.ts";
import { Tree } from "./tree.ts";

export interface Synchronised {
  readonly result: SyncResult;
  /** Folders of the source, below its root. */
  readonly folders: readonly string[];
  /** Entries that both sides have in common now. */
  readonly base: Base;
  /** The failure that ended the work before its end. */
  readonly error?: unknown;
}

/** Compares both folders as a whole, and makes the target as the source is. */
export async function synchronise(options: SyncOptions, base: Base): Promise<Synchronised> {
  const { source, target, isDry } = options;
  const trees = await scanned(options, base);
  await compareContents(options, trees, base);
  const { isForced, isDeleting, isExcluded, isUp } = options;
  const plan = planOf({
    ...trees,
    ...{ base, isForced, isDeleting, isExcluded },
    sourceName: source.name,
    targetName: target.name,
    // In the direction down, such a content is a local change that the controller may not have.
    own: isUp ? base.sent : new Map<string, string>(),
    refusal: (path) => target.refusal(path),
  });
  const execution = new Execution(options, plan);
  const folders = [...trees.source.entries.values()].flatMap(({ kind, path }) => (kind === "folder" ? [path] : []));
  if (isDry) return { result: execution.foreseen(), folders, base };
  const error = await execution.run();
  const done = { result: execution.result(), folders, base: execution.common(base, trees) };
  return error === undefined ? done : { ...done, error };
}

interface Trees {
  readonly source: Tree;
  readonly target: Tree;
}

/** Both trees. A target that is missing is made, except by a dry run. */
async function scanned(options: SyncOptions, base: Base): Promise<Trees> {
  const { source, target, isDry, isExcluded, signal } = options;
  const scan: ScanOptions = { isExcluded, signal, known: knownIn(base) };
  const trees = { source: await source.scan(scan), target: new Tree() };
  let isThere = true;
  try {
    trees.target = await target.scan(scan);
  } catch (error) {
    if (!isAppError(error, "not_found")) throw error;
    isThere = !isDry;
    if (!isDry) await target.makeFolder("", signal);
  }
  if (isThere) await leaveOutCaseTwins(trees.source, target);
  return trees;
}

function knownIn({ files }: Base): KnownDigest {
  return (key, version) => {
    const file = files.get(key);
    return file !== undefined && version !== "" && file.local === version ? file.digest : undefined;
  };
}

/** Reads the files whose digests are needed and not known. */
async function compareContents({ source, target, signal }: SyncOptions, trees: Trees, base: Base): Promise<void> {
  const keys = comparedKeys({ ...trees, base });
  for (const [side, tree] of [
    [source, trees.source],
    [target, trees.target],
  ] as const) {
    await mapLimited(keys, FILE_SYNC_AT_ONCE, async (key) => {
      const entry = tree.entries.get(key);
      if (entry?.kind !== "file" || entry.digest !== undefined) return;
      try {
        const { digest, isSettled } = await side.digest(entry, signal);
        tree.note(key, { digest, isSettled });
      } catch (error) {
        signal.throwIfAborted();
        if (isFatal(error)) throw error;
        tree.leaveOut(entry.path, `could not be read: ${errorText(error)}`, isPassing(error));
      }
    });
  }
}

/** True if the file was changed or replaced while it was read, so that it may be read soon. */
function isPassing(error: unknown): boolean {
  return error instanceof ChangedWhileRead || isAppError(error, "stale");
}

/** On a disk that does not tell upper case from lower case, such files would be one. */
async function leaveOutCaseTwins(source: Tree, target: Side): Promise<void> {
  const groups = new Map<string, string[]>();
  for (const key of source.entries.keys()) {
    const lower = key.toLowerCase();
    groups.set(lower, [...(groups.get(lower) ?? []), key]);
  }
  const twins = [...groups.values()].filter(({ length }) => length > 1).flat();
  if (twins.length === 0 || (await target.isCaseSensitive())) return;
  for (const key of twins)
    source.leaveOut(key, `differs from another name only in case, which ${target.name} does not tell apart`);
}
