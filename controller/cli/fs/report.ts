import { FILE_SYNC_NAMED_MAX, FILE_SYNC_PROGRESS_EVERY_MS } from "../../../common/limits.ts";
import { counted } from "../../../common/text/counted.ts";
import type { SyncResult } from "./execution.ts";
import { printable } from "../formats/printable.ts";

/** Exit codes of `odp fs sync` and `odp fs cp -r`; 1 is for a failure, 130 for an end by a signal. */
export const SYNC_CONFLICT = 2;
export const SYNC_LEFT_OUT = 3;

export function exitCodeOf({ failed, conflicts, leftOut }: SyncResult): number {
  if (failed.length > 0) return 1;
  if (conflicts.length > 0) return SYNC_CONFLICT;
  return leftOut.length > 0 ? SYNC_LEFT_OUT : 0;
}

/** A line for each entry that is not as in the source, and why; at most `FILE_SYNC_NAMED_MAX` of each kind. */
export function problemLines({ failed, conflicts, leftOut }: SyncResult): readonly string[] {
  return [
    ...named(
      "failed",
      failed.map(({ path, message }) => ({ path, why: message })),
    ),
    ...named("conflict", conflicts),
    ...named("left out", leftOut),
  ];
}

function named(kind: string, entries: readonly { readonly path: string; readonly why: string }[]): readonly string[] {
  const lines = entries
    .slice(0, FILE_SYNC_NAMED_MAX)
    .map(({ path, why }) => `${kind}: ${printable(path)}: ${printable(why)}`);
  const more = entries.length - lines.length;
  return more > 0 ? [...lines, `${kind}: ${more} more, all by --json`] : lines;
}

/** The lines of a dry run. */
export function actionLines({ created, replaced, removed, folders }: SyncResult): readonly string[] {
  const lines = (verb: string, paths: readonly string[]) => paths.map((path) => `${verb} ${printable(path)}`);
  return [
    ...lines(
      "create",
      folders.map((path) => `${path}/`),
    ),
    ...lines("create", created),
    ...lines("replace", replaced),
    ...lines("remove", removed),
  ];
}

export function summary(result: SyncResult): string {
  const { created, replaced, removed, folders, conflicts, leftOut, failed, same, kept, dry } = result;
  const parts = [
    [created.length, "created"],
    [replaced.length, "replaced"],
    [removed.length, "removed"],
    [folders.length, folders.length === 1 ? "folder made" : "folders made"],
    [same, "the same"],
    [kept, `only in ${printable(result.to)}`],
  ] as const;
  const told = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  const problems = [
    ...(conflicts.length > 0 ? [counted(conflicts.length, "conflict")] : []),
    ...(leftOut.length > 0 ? [`${leftOut.length} left out`] : []),
    ...(failed.length > 0 ? [`${failed.length} failed`] : []),
  ];
  const text = [...told, ...problems].join(", ") || "nothing to do";
  return `${printable(result.from)} to ${printable(result.to)}${dry ? " (dry run)" : ""}: ${text}`;
}

/** True if something was changed, or is not as in the source. */
export function isEventful({ created, replaced, removed, folders, conflicts, leftOut, failed }: SyncResult): boolean {
  return [created, replaced, removed, folders, conflicts, leftOut, failed].some(({ length }) => length > 0);
}

interface Terminal {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** One line that is written again and again. On anything but a terminal it writes nothing. */
export class ProgressLine {
  readonly #out: Terminal;
  readonly #monotonicMs: () => number;
  #lastMs = -Infinity;
  #isShown = false;

  constructor(out: Terminal, monotonicMs: () => number) {
    this.#out = out;
    this.#monotonicMs = monotonicMs;
  }

  show(done: number, of: number): void {
    const nowMs = this.#monotonicMs();
    if (this.#out.isTTY !== true || nowMs < this.#lastMs + FILE_SYNC_PROGRESS_EVERY_MS) return;
    this.#lastMs = nowMs;
    this.#isShown = true;
    this.#out.write(`\r\u001b[K${done} of ${of}`);
  }

  clear(): void {
    if (this.#isShown) this.#out.write("\r\u001b[K");
    this.#isShown = false;
  }
}
