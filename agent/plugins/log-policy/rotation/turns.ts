import type { FollowedFile } from "../followed.ts";
import { comparePlaces } from "./order.ts";

/**
 * Logs with something to read. The files of each log are in reading order, without those that must wait for others.
 * `isAwaited`: an older life of that home is being packed.
 */
export function dirtyLogs(files: Iterable<FollowedFile>, isAwaited: (home: string) => boolean): FollowedFile[][] {
  const logs = new Map<string, FollowedFile[]>();
  for (const file of files) logs.set(file.state.log, [...(logs.get(file.state.log) ?? []), file]);
  const dirty = [...logs.values()].filter((log) => log.some((file) => file.dirty));
  for (const log of dirty) {
    log.sort((a, b) => comparePlaces(a.state.place, b.state.place) || a.state.serial - b.state.serial);
    log.forEach((file, index) => file.supersede(index < log.length - 1));
  }
  return dirty.map((log) => readable(log, isAwaited)).filter((log) => log.some((file) => file.dirty));
}

/**
 * Leaves out lives that wait for the rest of an older life of the same home, so that the older lines are sent first.
 */
function readable(log: readonly FollowedFile[], isAwaited: (home: string) => boolean): FollowedFile[] {
  const unsettled = log.filter((file) => file.isAwaited);
  return log.filter(
    ({ state, isHome }) =>
      !unsettled.some((older) => older.state.home === state.home && older.state.serial < state.serial) &&
      !(isHome && state.offset === 0 && isAwaited(state.home)),
  );
}
