import type { EntityChange, EntityTrace, ObjectStore } from "../../../../store/objects.ts";
import { outgoing } from "../edges/links.ts";

/** Traces by the part of the id after the colon. */
export type Traces = ReadonlyMap<string, EntityTrace>;

/** Traces of objects that were removed and are inserted again. */
export function recreatedOf(traces: Traces): Traces {
  const recreated = new Map<string, EntityTrace>();
  for (const [id, trace] of traces) if (trace.entity === undefined && trace.lastUs > 0) recreated.set(id, trace);
  return recreated;
}

/**
 * Removes cells that an update left because it ran at the same time as the removal of its object. Otherwise the next
 * object with the same id would show them. Each cell is removed with its own time, so nothing else is removed.
 */
export function leftoverCells(cid: number, recreated: Traces): EntityChange[] {
  return [...recreated].flatMap(([id, { leftover }]) =>
    leftover.keys.map(
      (name, at): EntityChange => ({
        key: { cid, id },
        timeUs: leftover.timeUs(at),
        cells: new Map([[name, undefined]]),
      }),
    ),
  );
}

/** Does the same for edges, object by object. Edges can be read only after the object exists again. */
export async function* leftoverEdges(
  cid: number,
  recreated: Traces,
  source: { readonly store: ObjectStore },
): AsyncGenerator<readonly EntityChange[]> {
  for (const [id, { lastUs }] of recreated) {
    const key = { cid, id };
    const left = (await outgoing(key, source)).filter((edge) => edge.timeUs <= lastUs);
    yield left.map(({ timeUs, type, to }) => ({ key, timeUs, dropEdges: [{ type, to }] }));
  }
}
