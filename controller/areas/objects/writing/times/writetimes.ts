import type { Row } from "../../../../../common/value.ts";
import type { Entity, ObjectStore } from "../../../../store/objects.ts";
import { inPages, keyText, placeText, type Place } from "../../reading/locate.ts";
import type { PresetUpdate } from "../../types.ts";
import type { ColumnEdit } from "../../values/compose.ts";
import { leastRewrittenUs } from "./rewritten.ts";
import type { WriteClock } from "./writeclock.ts";

interface Source {
  readonly store: ObjectStore;
  readonly clock: WriteClock;
}

/**
 * Times for writes that are made later, in the order of `refs`. Each is above all known times of its object. All
 * objects that are not ahead of the clock get the same time.
 */
export async function writeTimes(refs: readonly (readonly Place[])[], { store, clock }: Source): Promise<number[]> {
  const keys = new Map(
    refs.flat().flatMap(({ view, key }) => (view.kind === "entity" ? [[keyText(key), key] as const] : [])),
  );
  const traces = await inPages([...keys.values()], (page) => store.trace(page));
  const lastUs = new Map([...keys.keys()].map((key, at) => [key, traces[at]?.lastUs ?? 0]));
  const commonUs = clock.presetUs();
  return refs.map((places) => {
    const names = places.map(placeText);
    const leastUs = places.map(({ view, key }) => (view.kind === "record" ? leastRewrittenUs(key.id) : 0));
    const knownUs = Math.max(0, ...leastUs, ...names.map((name) => lastUs.get(name) ?? 0));
    return clock.ofObject(names, knownUs, commonUs);
  });
}

/** The edits of one update. */
export interface UpdateEdits {
  readonly edits: readonly ColumnEdit[];
  /** Names of columns whose new values depend on what was read. */
  readonly computed: ReadonlySet<string>;
}

/**
 * The time of an update: the preset time, or `laterUs` without one. With `retimed` it is also `laterUs` if a list that
 * the update adds to or takes from, or a computed column, was written after the preset time. `retimed` then receives it
 * first.
 */
export async function timeOf(
  { edits, computed }: UpdateEdits,
  entity: Entity,
  of: PresetUpdate & { readonly laterUs: () => number },
): Promise<number> {
  const { writeUs, retimed, laterUs } = of;
  if (writeUs === undefined) return laterUs();
  if (!retimed || !edits.some((edit) => (readUs(edit, entity, computed) ?? 0) > writeUs)) return writeUs;
  const timeUs = laterUs();
  await retimed(timeUs);
  return timeUs;
}

/**
 * The edits of a write at a preset time, which may have been made already. A list and a computed value are one cell
 * each. If the cell's time is not below the preset time, the edit was made or lost to a later write, so the cell keeps
 * its value.
 */
export function editsOnce(
  { edits, computed }: UpdateEdits,
  old: { readonly entity: Entity; readonly row: Row },
  writeUs: number,
): readonly ColumnEdit[] {
  return edits.map((edit) => {
    const knownUs = readUs(edit, old.entity, computed);
    return knownUs === undefined || knownUs < writeUs
      ? edit
      : { ...edit, operation: "set", value: old.row[edit.column.name] };
  });
}

/** Time of the cell if its new value depends on the stored one; otherwise undefined. */
function readUs({ column, operation }: ColumnEdit, entity: Entity, computed: ReadonlySet<string>): number | undefined {
  const isComputed = computed.has(column.name);
  if (!isComputed && (column.type !== "list" || operation === "set")) return undefined;
  return entity.cells.get(column.cellKey)?.timeUs;
}
