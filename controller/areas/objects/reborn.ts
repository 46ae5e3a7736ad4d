import type { EntityChange, EntityTrace, ObjectStore } from "../../store/objects.ts";
import { outgoing } from "./links.ts";
import type { Patience } from "./patience.ts";

/** By the part of the id after the colon. */
export type Traces = ReadonlyMap<string, EntityTrace>;

/** Those of objects that were removed and are made again. */
export function rebornOf(traces: Traces): Traces {
  const reborn = new Map<string, EntityTrace>();
  for (const [id, trace] of traces) if (trace.entity === undefined && trace.lastUs > 0) reborn.set(id, trace);
  return reborn;
}

/**
 * An update that crossed the removal of its object left cells that would be seen again in the next object of that name. Each is removed with
 * its own time, so that nothing else is.
 */
export function leftoverCells(cid: number, reborn: Traces): EntityChange[] {
  return [...reborn].flatMap(([id, { leftover }]) =>
    leftover.keys.map(
      (name, at): EntityChange => ({
        key: { cid, id },
        timeUs: leftover.timeUs(at),
        cells: new Map([[name, undefined]]),
      }),
    ),
  );
}

/** The same for its edges, object by object; they can be read only when there is one again. */
export async function* leftoverEdges(
  cid: number,
  reborn: Traces,
  source: { readonly store: ObjectStore; readonly patience: Patience },
): AsyncGenerator<readonly EntityChange[]> {
  for (const [id, { lastUs }] of reborn) {
    const key = { cid, id };
    const left = (await outgoing(key, source)).filter((edge) => edge.timeUs <= lastUs);
    yield left.map(({ timeUs, type, to }) => ({ key, timeUs, dropEdges: [{ type, to }] }));
  }
}
