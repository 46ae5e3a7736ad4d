import { Type } from "typebox";
import { AppError } from "../../../common/errors.ts";
import { GRAPH_DEPTH_MAX, GRAPH_EDGES_MAX, GRAPH_NODES_MAX } from "../../../common/limits.ts";
import type { Value } from "../../../common/value.ts";
import { hostFunction, type HostObject, refusedFunction } from "../../scripting/index.ts";
import type { ObjectEdge, ObjectRef, Objects } from "../objects/index.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { Neighbours } from "./neighbours.ts";
import type { Query } from "./types.ts";

interface GraphParts {
  readonly query: Pick<Query, "run">;
  readonly objects: Pick<Objects, "visible">;
}

/** `graphalg`: computes how objects are connected by their edges. */
export function graphHostObject({ query, objects }: GraphParts): HostObject {
  return {
    name: "graphalg",
    summary: "How objects hang together, as far as the script may see them",
    functions: [
      hostFunction({
        name: "endpoints",
        summary: "The ends of what a MATCH finds: nodes with one neighbour at most",
        parameters: [{ name: "match", schema: Type.String({ description: "A MATCH of MQL" }) }],
        returns: "text: a list of ids in JSON, sorted",
        example:
          'try { OUTPUT = JSON.parse(graphalg.endpoints("MATCH (:/matrix/none)")) } catch (error) { OUTPUT = error.message }',
        call: async ({ principal, signal }, match) => {
          const found = await graphOf(await query.run(principal, match, { signal }));
          const met = new Neighbours();
          for (const { id } of found.nodes) met.add(String(id));
          for (const { source, target } of found.edges) met.join(String(source), String(target));
          return JSON.stringify(met.ends());
        },
      }),
      hostFunction({
        name: "connectedGraphs",
        summary: "Walks from objects along edges in both directions, and tells which of all that is met hang together",
        parameters: [
          {
            name: "ids",
            schema: Type.Array(Type.String(), { maxItems: GRAPH_NODES_MAX, description: "Whole ids, where to begin" }),
          },
          {
            name: "level",
            schema: Type.Integer({ minimum: 0, maximum: GRAPH_DEPTH_MAX, description: "Steps at most from each" }),
          },
        ],
        returns: "list of lists of ids, the longest first",
        example: 'OUTPUT = graphalg.connectedGraphs(["host:web-1", "host:web-2"], 2)',
        call: async ({ principal, signal }, ids, level) =>
          (await walked(objects, { principal, signal, ids, level })).groups() as Value,
      }),
    ],
  };
}

/** `aialg`: every call is refused. Existing scripts know only its name; no document says what it computes. */
export const AI_HOST_OBJECT: HostObject = {
  name: "aialg",
  summary: "Not offered: scripts that call it are told so",
  functions: [
    refusedFunction("cafp", {
      object: "aialg",
      why: "its groups are described nowhere",
      example: '[], "id", "value", 2, 1, 3',
    }),
  ],
};

interface Found {
  readonly nodes: readonly { readonly id: Value }[];
  readonly edges: readonly { readonly source: Value; readonly target: Value }[];
}

async function graphOf({ meta, rows }: Awaited<ReturnType<Query["run"]>>): Promise<Found> {
  if (meta.type !== "graph") throw new AppError("invalid", "graphalg.endpoints takes a MATCH.");
  for await (const page of rows) for (const { graph } of page) return graph as unknown as Found;
  return { nodes: [], edges: [] };
}

interface Walk {
  readonly principal: Principal;
  readonly signal: AbortSignal;
  readonly ids: readonly string[];
  readonly level: number;
}

/**
 * Follows edges one step at a time, from the objects that were reached last. Objects that the caller may not see are
 * not passed, and not returned unless `ids` names them.
 */
async function walked(objects: GraphParts["objects"], { principal, signal, ids, level }: Walk): Promise<Neighbours> {
  requirePermission(principal, "objects:read");
  const met = new Neighbours();
  for (const id of ids) met.add(id);
  const seen = new Map<string, boolean>();
  let last = await visible(
    objects,
    principal,
    [...new Set(ids)].map((id) => ({ id })),
  );
  for (const { id } of last) seen.set(id, true);
  let edges = 0;
  const onRead = (read: number): void => {
    edges += read;
    if (edges > GRAPH_EDGES_MAX) throw tooMany("GRAPH_EDGES_MAX", `${GRAPH_EDGES_MAX} edges`);
  };
  for (let step = 0; step < level && last.length > 0; step++) {
    const found: ObjectEdge[] = [];
    for (const direction of ["out", "in"] as const)
      for await (const page of objects.visible.edges(principal, last, { direction, signal, onRead }))
        found.push(...page);
    const others = found.flatMap(endsOf).filter(({ id }) => !seen.has(id));
    for (const { id } of others) seen.set(id, false);
    if (seen.size > GRAPH_NODES_MAX) throw tooMany("GRAPH_NODES_MAX", `${GRAPH_NODES_MAX} objects`);
    last = await visible(objects, principal, others);
    for (const { id } of last) seen.set(id, true);
    for (const { source, target } of found)
      if (seen.get(source) === true && seen.get(target) === true) met.join(source, target);
  }
  return met;
}

function endsOf({ source, sourceClass, target, targetClass }: ObjectEdge): readonly ObjectRef[] {
  return [
    { id: source, class: sourceClass },
    { id: target, class: targetClass },
  ];
}

/** The objects that exist and that the caller may see, each id once. */
async function visible(
  objects: GraphParts["objects"],
  principal: Principal,
  refs: readonly ObjectRef[],
): Promise<readonly ObjectRef[]> {
  const found = (await objects.visible.get(principal, refs)).filter((object) => object !== undefined);
  return [...new Map(found.map(({ id, class: { path } }) => [id, { id, class: path }])).values()];
}

function tooMany(limit: string, most: string): AppError {
  return new AppError("too_large", `graphalg meets more than ${most}: begin with fewer ids or a lower level.`, {
    details: { limit },
  });
}
