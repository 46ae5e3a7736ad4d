import { LOG_TIME_GRAIN_MS } from "../../../../common/limits.ts";
import type { Emission } from "../../../outbox/outbox.ts";
import type { FileLook } from "../folder.ts";
import type { FollowedFile } from "../followed.ts";
import type { LogWork } from "../work.ts";
import type { FileState } from "./life.ts";
import { compareGenerations } from "./names.ts";
import { comparePlaces, logOf, placeOf } from "./order.ts";

/** A file that is not followed yet, and `home`, the path of its log. */
export interface Found {
  readonly at: FileLook;
  readonly home: string;
  /** First bytes of a packed file. */
  readonly head?: string;
}

type Placed = Found & Pick<FileState, "groups" | "place" | "log">;

/** The files in the order in which they are read. */
export function inOrder(found: readonly Found[], { spec, match }: LogWork): readonly Placed[] {
  const placed = found.map((one) => {
    const groups = match.exec(one.home)?.groups ?? {};
    return { ...one, groups, place: placeOf(spec, groups), log: logOf(spec, one.home, groups) };
  });
  return placed.sort((a, b) => comparePlaces(a.place, b.place) || compareAge(a, b));
}

function compareAge(a: Found, b: Found): number {
  // Packed files are compared by time first, because a rotation during the scan may have changed their names.
  const byTime = a.head === undefined && b.head === undefined ? 0 : a.at.mtimeMs - b.at.mtimeMs;
  const byName = byTime || (a.home === b.home ? compareGenerations(a.at.path, b.at.path) : 0);
  return byName || a.at.mtimeMs - b.at.mtimeMs || (a.at.path < b.at.path ? -1 : 1);
}

/** Unread files with an older life in `found`, which must be read before them. */
export function unreadAfter(found: readonly Found[], files: Iterable<FollowedFile>): FollowedFile[] {
  return [...files].filter(({ isHome, state }) =>
    found.some(
      ({ at, home }) =>
        state.offset === 0 &&
        home === state.home &&
        at.path !== home &&
        (isHome || compareGenerations(at.path, state.path) < 0),
    ),
  );
}

/** Also has logs whose lives have ended since the last scan: later lives of them may have been rotated meanwhile. */
export function livesByHome(
  files: Iterable<FollowedFile>,
  formerHomes: readonly string[],
): ReadonlyMap<string, readonly FollowedFile[]> {
  const lives = new Map<string, FollowedFile[]>(formerHomes.map((home) => [home, []]));
  for (const file of files) lives.set(file.state.home, [...(lives.get(file.state.home) ?? []), file]);
  return lives;
}

/** Gaps for lives whose copies were found, but which no scan has seen before they were truncated. */
export async function unseenLosses(
  files: readonly FollowedFile[],
  found: readonly Found[],
  looks: readonly FileLook[],
): Promise<Emission[]> {
  const gaps: Emission[] = [];
  for (const { losses, isHome, state } of files) {
    if (!isHome) continue;
    const home = looks.find(({ id }) => id === state.id);
    const copies = found.filter((one) => one.home === state.home && isCopyOf(one, home));
    gaps.push(...(await losses.ofCopies(copies.map(({ at }) => at.size))));
  }
  return gaps;
}

/** True if a file was made of the content of `home`, not renamed before `home` was created. */
function isCopyOf({ at, head }: Found, home: FileLook | undefined): boolean {
  if (!home?.birthMs || at.path === home.path) return false;
  // A packed file has the time of the last write to its content.
  return (head === undefined ? (at.birthMs ?? 0) : at.mtimeMs - LOG_TIME_GRAIN_MS) > home.birthMs;
}
