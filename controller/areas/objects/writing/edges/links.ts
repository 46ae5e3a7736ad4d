import { AppError } from "../../../../../common/errors.ts";
import { EDGES_PER_WRITE_MAX, OBJECT_PAGE_MAX } from "../../../../../common/limits.ts";
import type { Edge, EdgeEnd, EntityKey, ObjectStore } from "../../../../store/objects.ts";
import { inPages, keyText, resolveTargets, type TargetClasses } from "../../reading/locate.ts";
import { knownRemoval, lastRemovalUs } from "../../values/edgelives.ts";
import type { LinkEdit } from "../../values/rows.ts";

export interface LinkWrite {
  readonly addEdges?: readonly EdgeEnd[];
  readonly dropEdges?: readonly EdgeEnd[];
  /** The latest time among the object's edges that were read. The write needs a time above it. */
  readonly lastUs: number;
}

interface Source {
  readonly store: ObjectStore;
}

/** Targets of links. */
export interface LinkTargets {
  /** Keys of the targets, by the ids in the links. */
  readonly keys: ReadonlyMap<string, EntityKey>;
  /**
   * Last known removal of each target, by the text of its key. An edge with that time or an earlier one would seem to
   * lead to the removed object.
   */
  readonly diedUs: ReadonlyMap<string, number>;
}

interface Linking extends Source {
  readonly links: readonly LinkEdit[];
  readonly targets: LinkTargets;
  readonly exists: boolean;
}

export async function linkTargets(
  classes: TargetClasses,
  links: readonly LinkEdit[],
  source: Source,
): Promise<LinkTargets> {
  if (links.length === 0) return { keys: new Map(), diedUs: new Map() };
  const keys = await resolveTargets(
    classes,
    links.flatMap((link) => link.ids),
    source,
  );
  const entities = [...keys.values()].filter(({ cid }) => classes.snapshot.byCid(cid)?.kind === "entity");
  const traces = await inPages(entities, (page) => source.store.trace(page));
  const diedUs = new Map(
    traces.map((trace, at) => [keyText(entities[at]!), trace.entity?.diedUs ?? lastRemovalUs(trace)]),
  );
  return { keys, diedUs };
}

/** Edges to add and to drop, so that the object has the edges of its links. */
export async function linkWrite(from: EntityKey, of: Linking): Promise<LinkWrite> {
  if (of.links.length === 0) return { lastUs: 0 };
  const add = new Map<string, EdgeEnd>();
  const drop = new Map<string, EdgeEnd>();
  let lastUs = 0;
  for (const link of of.links) {
    const ends = link.ids.flatMap((id) => edgeEnd(link.type, of.targets.keys.get(id)));
    const known = link.operation === "set" && of.exists ? await outgoing(from, of, link.type) : [];
    for (const { timeUs } of known) lastUs = Math.max(lastUs, timeUs);
    // A `set` also replaces edges that the same write added before.
    const replaced =
      link.operation === "set" ? [...known, ...add.values()].filter(({ type }) => type === link.type) : [];
    for (const { type, to } of replaced) move({ type, to }, { from: add, to: drop });
    for (const end of ends) move(end, link.operation === "take" ? { from: add, to: drop } : { from: drop, to: add });
  }
  if (add.size + drop.size > EDGES_PER_WRITE_MAX) throw tooManyEdges();
  return { addEdges: [...add.values()], dropEdges: [...drop.values()], lastUs };
}

/**
 * The edges of a write at `timeUs`. An edge stores the last known removal of its target in two cases: if the write is
 * above the common time, or if that removal is not below it.
 */
export function edgesAt(
  edges: readonly EdgeEnd[],
  at: { readonly timeUs: number; readonly commonUs: number; readonly targets: LinkTargets },
): readonly EdgeEnd[] {
  return edges.map((edge) => {
    const diedUs = at.targets.diedUs.get(keyText(edge.to)) ?? 0;
    return at.timeUs > at.commonUs || diedUs >= at.commonUs ? { ...edge, value: knownRemoval(diedUs) } : edge;
  });
}

/** The links of a write, with the edges that it adds at its time. */
export function linkedAt(links: LinkWrite | undefined, at: Parameters<typeof edgesAt>[1]): Partial<LinkWrite> {
  return links?.addEdges === undefined ? { ...links } : { ...links, addEdges: edgesAt(links.addEdges, at) };
}

/** All edges from an object, or those of one type. `AppError("too_large")` beyond `EDGES_PER_WRITE_MAX`. */
export async function outgoing(from: EntityKey, { store }: Source, type?: string): Promise<Edge[]> {
  const edges: Edge[] = [];
  for await (const page of outgoingPages(from, { store }, type)) {
    edges.push(...page);
    if (edges.length > EDGES_PER_WRITE_MAX) throw tooManyEdges();
  }
  return edges;
}

/** Like `outgoing`, page by page and without a limit. */
export async function* outgoingPages(
  from: EntityKey,
  { store }: Source,
  type?: string,
): AsyncGenerator<readonly Edge[]> {
  let cursor: string | undefined;
  do {
    const page = {
      limit: OBJECT_PAGE_MAX,
      ...(type === undefined ? {} : { type }),
      ...(cursor === undefined ? {} : { cursor }),
    };
    const answer = await store.edges(from, "out", page);
    yield answer.items;
    cursor = answer.cursor;
  } while (cursor !== undefined);
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
  return new AppError("too_large", `[Valid] One write sets or clears at most ${EDGES_PER_WRITE_MAX} edges.`, {
    details: { limit: "EDGES_PER_WRITE_MAX" },
  });
}
