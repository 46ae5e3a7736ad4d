import { AppError } from "../../../common/errors.ts";
import { EDGES_PER_WRITE_MAX, OBJECT_PAGE_MAX } from "../../../common/limits.ts";
import type { Edge, EdgeEnd, EntityKey, ObjectStore } from "../../store/objects.ts";
import { resolveTargets } from "./locate.ts";
import type { Patience } from "./patience.ts";
import type { LinkEdit } from "./rows.ts";
import type { Snapshot } from "./snapshot.ts";

export interface LinkWrite {
  readonly addEdges?: readonly EdgeEnd[];
  readonly dropEdges?: readonly EdgeEnd[];
  /** The greatest time of an edge that was seen: write above it. */
  readonly lastUs: number;
}

interface Source {
  readonly store: ObjectStore;
  readonly patience: Patience;
}

/** Edges to add and drop so that the object has what its links say. */
export async function linkWrite(
  snapshot: Snapshot, from: EntityKey, of: Source & { readonly links: readonly LinkEdit[]; readonly exists: boolean },
): Promise<LinkWrite> {
  if (of.links.length === 0) return { lastUs: 0 };
  const targets = await resolveTargets(snapshot, of.links.flatMap((link) => link.ids), of);
  const add = new Map<string, EdgeEnd>();
  const drop = new Map<string, EdgeEnd>();
  let lastUs = 0;
  for (const link of of.links) {
    const ends = link.ids.flatMap((id) => edgeEnd(link.type, targets.get(id)));
    const known = link.operation === "set" && of.exists ? await outgoing(from, of, link.type) : [];
    for (const { timeUs } of known) lastUs = Math.max(lastUs, timeUs);
    // What the same write added before is replaced, too.
    const replaced = link.operation === "set" ? [...known, ...add.values()].filter(({ type }) => type === link.type) : [];
    for (const { type, to } of replaced) move({ type, to }, { from: add, to: drop });
    for (const end of ends) move(end, link.operation === "take" ? { from: add, to: drop } : { from: drop, to: add });
  }
  if (add.size + drop.size > EDGES_PER_WRITE_MAX) throw tooManyEdges();
  return { addEdges: [...add.values()], dropEdges: [...drop.values()], lastUs };
}

/** All edges from an object, or those of one type. */
export async function outgoing(from: EntityKey, { store, patience }: Source, type?: string): Promise<Edge[]> {
  const edges: Edge[] = [];
  let cursor: string | undefined;
  do {
    const page = { limit: OBJECT_PAGE_MAX, ...(type === undefined ? {} : { type }), ...(cursor === undefined ? {} : { cursor }) };
    const answer = await patience.repeat(() => store.edges(from, "out", page));
    edges.push(...answer.items);
    if (edges.length > EDGES_PER_WRITE_MAX) throw tooManyEdges();
    cursor = answer.cursor;
  } while (cursor !== undefined);
  return edges;
}

function edgeEnd(type: string, to: EntityKey | undefined): EdgeEnd[] {
  return to === undefined ? [] : [{ type, to }];
}

function move(end: EdgeEnd, ends: { readonly from: Map<string, EdgeEnd>; readonly to: Map<string, EdgeEnd> }): void {
  const text = `${end.type}/${end.to.cid}:${end.to.id}`;
  ends.from.delete(text);
  ends.to.set(text, end);
}

function tooManyEdges(): AppError {
  return new AppError("too_large", `[Valid] One write sets or clears at most ${EDGES_PER_WRITE_MAX} edges.`, { details: { limit: "EDGES_PER_WRITE_MAX" } });
}
