import { TARGET_TAKEN_WINDOW_MS } from "../../../../common/limits.ts";
import type { HeldRemoval, StoredEntries, StoredTargets } from "../store.ts";

/** A removal of hosts is held if it is both: more than so many percent of the matched hosts, and at least so many. */
export interface HoldLimit {
  readonly percent: number;
  readonly hosts: number;
}

export interface Evaluation {
  /** The hosts that the entries mean now. */
  readonly wanted: readonly string[];
  /** Hosts whose records are gone. They leave without being held. */
  readonly gone: ReadonlySet<string>;
  /** The hosts that the entries name. */
  readonly named: readonly string[];
}

interface Deciding {
  readonly limit: HoldLimit;
  readonly nowMs: number;
  readonly newId: () => string;
}

/** Targets whose entries contain an expression. */
export type EvaluatedTargets = StoredTargets & { readonly entries: StoredEntries };

/**
 * The targets after an evaluation; undefined if it changes nothing. Hosts that join do so at once. Hosts that leave are
 * counted for `TARGET_TAKEN_WINDOW_MS`, because a change of many hosts is evaluated in parts. Beyond the limit they stay
 * and are held; then all that leave later are held, too, until they are confirmed or match again.
 */
export function nextTargets(
  now: EvaluatedTargets,
  { wanted, gone, named }: Evaluation,
  deciding: Deciding,
): EvaluatedTargets | undefined {
  const want = new Set(wanted);
  const had = new Set(now.hosts);
  const leaving = now.hosts.filter((host) => !want.has(host) && !gone.has(host));
  const joining = wanted.filter((host) => !had.has(host));
  const { list, by, held: before } = now.entries;
  const taken = takenSince(now, named, deciding);
  const total = taken.hosts + leaving.length;
  const isOver = total >= deciding.limit.hosts && total * 100 > deciding.limit.percent * taken.of;
  const isHeld = leaving.length > 0 && (isOver || (before?.hosts.some((host) => leaving.includes(host)) ?? false));
  const stays = isHeld ? new Set([...want, ...leaving]) : want;
  const hosts = [...now.hosts.filter((host) => stays.has(host)), ...joining];
  const held = isHeld ? heldOf(before, leaving, deciding) : undefined;
  const counted = isHeld || leaving.length === 0 ? now.entries.taken : { ...taken, hosts: total };
  if (hosts.length === had.size && joining.length === 0 && held === before) return undefined;
  return { ...now, hosts, entries: { list, by, ...(held && { held }), ...(counted && { taken: counted }) } };
}

/** The targets without the held hosts. */
export function confirmedTargets(now: EvaluatedTargets, held: HeldRemoval): EvaluatedTargets {
  const leaving = new Set(held.hosts);
  const { list, by } = now.entries;
  return { ...now, hosts: now.hosts.filter((host) => !leaving.has(host)), entries: { list, by } };
}

function takenSince({ hosts, entries: { taken } }: EvaluatedTargets, named: readonly string[], { nowMs }: Deciding) {
  if (taken && nowMs - taken.sinceMs < TARGET_TAKEN_WINDOW_MS) return taken;
  const names = new Set(named);
  return { sinceMs: nowMs, hosts: 0, of: hosts.filter((host) => !names.has(host)).length };
}

/** A held removal gets another id if hosts are added to it, so a confirmation never takes off hosts that were not shown. */
function heldOf(before: HeldRemoval | undefined, leaving: readonly string[], { nowMs, newId }: Deciding): HeldRemoval {
  const known = new Set(before?.hosts);
  if (!before || leaving.some((host) => !known.has(host)))
    return { id: newId(), sinceMs: before?.sinceMs ?? nowMs, hosts: leaving };
  return leaving.length === before.hosts.length ? before : { ...before, hosts: leaving };
}
