import { AppError } from "./errors.ts";
import type { Clock, Random } from "./time.ts";

/** Mark of one change of a definition, stored with the definition. */
export interface Stamp {
  /** A random text. It tells nothing of the definition, of which rules may hide something. */
  readonly revision: string;
  /** The user who made the change; absent: odp itself. */
  readonly by?: string;
  readonly atMs: number;
}

/** A definition with the stamp of its last change; absent if it was stored before definitions had stamps. */
export interface Stamped {
  readonly stamp?: Stamp | undefined;
}

const REVISION_BYTES = 12;
/** Revision of a definition without a stamp. */
const FIRST_REVISION = "0";

/**
 * The state that a change expects of the present definition. It comes from `If-Match` and `If-None-Match` of a call.
 * `undefined` where neither was sent: then the change is made on any definition.
 */
export interface Expected {
  /** The definition must be there, with one of these revisions; `*`: with any. */
  readonly revisions?: readonly string[] | "*";
  /** True: there must be none. */
  readonly isAbsent: boolean;
}

/** The result of a change of a definition. */
export interface Revised {
  /** Revision of the definition after the change. */
  readonly revision: string;
  readonly warnings: readonly string[];
}

interface StampSources {
  readonly clock: Pick<Clock, "nowMs">;
  readonly random: Pick<Random, "bytes">;
}

/** The stamp of a change that this user makes now. */
export function newStamp(by: string | undefined, { clock, random }: StampSources): Stamp {
  const revision = Array.from(random.bytes(REVISION_BYTES), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { revision, ...(by !== undefined && { by }), atMs: clock.nowMs() };
}

export function revisionOf({ stamp }: Stamped): string {
  return stamp?.revision ?? FIRST_REVISION;
}

/**
 * `AppError("stale")` unless the definition is as expected; `now` is `undefined` if there is none. Its details are the
 * present `revision`, and `by` and `changed` of the last change, as far as they are known.
 *
 * Call it where the condition of the write is read, so that no other change comes between. `what` begins the message,
 * as `The job a`.
 */
export function requireExpected(expected: Expected | undefined, what: string, now: Stamped | undefined): void {
  if (expected === undefined) return;
  const { revisions, isAbsent } = expected;
  if (isAbsent && now !== undefined) throw stale(`${what} exists already`, now);
  if (revisions === undefined) return;
  if (now === undefined) throw stale(`${what} does not exist`);
  if (revisions !== "*" && !revisions.includes(revisionOf(now))) throw stale(`${what} has changed`, now);
}

/** The definition without its stamp. Bounds of users' definitions are about what users write. */
export function unstamped<T extends Stamped>({ stamp: _stamp, ...definition }: T): Omit<T, "stamp"> {
  return definition;
}

/** The revision as the value of the header `ETag`. */
export function etagOf(revision: string): string {
  return `"${revision}"`;
}

function stale(text: string, now?: Stamped): AppError {
  const { by, atMs } = now?.stamp ?? {};
  const last = atMs === undefined ? "" : `, last by ${by ?? "odp"} at ${new Date(atMs).toISOString()}`;
  return new AppError("stale", `${text}${last}. Nothing was done.`, {
    details: {
      ...(now && { revision: revisionOf(now) }),
      ...(by !== undefined && { by }),
      ...(atMs !== undefined && { changed: atMs }),
    },
  });
}
