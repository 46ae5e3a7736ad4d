import { parseObjectId } from "../../../../common/ids.ts";
import { GRAPH_NODES_MAX, OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import type { ObjectRow, Unrestricted } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { bytesOf, type MemoryShare } from "../expressions/aggregates/memory.ts";
import { matching, type RunContext } from "../run/run.ts";
import { cellsOf, visibility } from "../plan/names/scope.ts";
import { withRelations } from "../run/relatedrows.ts";
import type { Slices } from "../run/slice.ts";
import { type GraphPlan, type Hop, tooLarge } from "./plan.ts";
import type { NodePattern } from "./patterns.ts";
import type { Register } from "./register.ts";
import type { GraphEdge, Link, Vertex, VertexRef } from "./types.ts";

export interface GraphContext extends RunContext {
  readonly principal: Principal;
  readonly objects: Unrestricted<"get" | "edges">;
  readonly register: Register;
  /** Counts the memory of the MATCH. */
  readonly memory: Pick<MemoryShare, "take">;
}

/** Estimated bytes of an edge, with its links and its entries for objects. */
const EDGE_BYTES = 256;
const LINK_BYTES = 64;
const VERTEX_BYTES = 512;

type End = "source" | "target";

/**
 * Everything that one MATCH has read. It reads each object once, and the edges of each object once; both have a limit.
 */
export class GraphReader {
  readonly #plan: GraphPlan;
  readonly #context: GraphContext;
  readonly #slices: Slices;
  readonly #patterns: readonly NodePattern[];
  /** Cost of finding the patterns that an object fits, in ordinary rows. */
  readonly #work: number;
  readonly #isVisible: (row: ObjectRow) => boolean;
  /** Objects that were read; undefined: does not exist for the principal. */
  readonly #vertices = new Map<VertexRef, Vertex | undefined>();
  /** Edges that were read, by direction and type, then by object. */
  readonly #known = new Map<string, Map<VertexRef, GraphEdge[]>>();
  #nodes = 0;

  constructor(plan: GraphPlan, context: GraphContext, slices: Slices) {
    this.#plan = plan;
    this.#context = context;
    this.#slices = slices;
    this.#patterns = plan.chains.flatMap((chain) => chain.nodes);
    this.#work = this.#patterns.reduce((work, pattern) => work + pattern.work, 0);
    const visible = visibility(plan.scope);
    this.#isVisible = (row) => visible(row) === true;
  }

  /** Objects that fit the pattern: all, or as many as its limit allows. */
  async fitting(pattern: NodePattern): Promise<readonly Vertex[]> {
    const found = new Set<Vertex>();
    if (pattern.limit === 0) return [];
    const read = matching(
      { reads: pattern.reads(), filter: pattern.mayFit, slices: this.#slices, rowWork: pattern.work },
      this.#context,
    );
    for await (const page of this.#followed(read)) {
      for (const row of page) {
        if (!pattern.relations || pattern.fits(row)) found.add(this.#vertexOf(row));
        if (this.#slices.isOver(this.#work)) await this.#slices.pause();
        if (found.size === pattern.limit) return [...found];
      }
    }
    return [...found];
  }

  /**
   * Edges that lead on from the objects, or back to their predecessors. Each link has the direction in which the chain
   * passes the edge.
   */
  async links(vertices: readonly Vertex[], hop: Hop, way: "on" | "back"): Promise<readonly Link[]> {
    const links: Link[] = [];
    for (const near of nearEnds(hop, way)) {
      const pairs = await this.#edgesOf(vertices, near, hop.type);
      const others = await this.#load(pairs.map(({ edge }) => edge[opposite(near)]));
      for (const [at, { vertex, edge }] of pairs.entries()) {
        const other = others[at];
        if (this.#slices.isOver()) await this.#slices.pause();
        if (other === undefined || (hop.direction === "both" && near === "target" && other === vertex)) continue;
        this.#context.memory.take(LINK_BYTES);
        links.push({ edge, from: way === "on" ? vertex : other, to: way === "on" ? other : vertex });
      }
    }
    return links;
  }

  async #edgesOf(
    vertices: readonly Vertex[],
    near: End,
    type: string | undefined,
  ): Promise<readonly { vertex: Vertex; edge: GraphEdge }[]> {
    const group = `${near} ${type ?? ""}`;
    const known = this.#known.get(group) ?? new Map<VertexRef, GraphEdge[]>();
    this.#known.set(group, known);
    const missing = vertices.filter((vertex) => !known.has(vertex.ref) && !(near === "source" && vertex.isRecord));
    for (const vertex of missing) known.set(vertex.ref, []);
    if (missing.length > 0) await this.#readEdges(missing, { near, type, known });
    return vertices.flatMap((vertex) => (known.get(vertex.ref) ?? []).map((edge) => ({ vertex, edge })));
  }

  async #readEdges(
    vertices: readonly Vertex[],
    to: { near: End; type: string | undefined; known: Map<VertexRef, GraphEdge[]> },
  ): Promise<void> {
    const { principal, objects, signal } = this.#context;
    const request = {
      direction: to.near === "source" ? ("out" as const) : ("in" as const),
      ...(to.type === undefined ? {} : { type: to.type }),
      ...(this.#plan.asOfMs === undefined ? {} : { asOfMs: this.#plan.asOfMs }),
      ...(signal ? { signal } : {}),
    };
    for await (const page of objects.unrestricted.edges(
      principal,
      vertices.map((vertex) => vertex.ref),
      request,
    )) {
      this.#slices.check();
      for (const found of page) {
        if (this.#slices.isOver()) await this.#slices.pause();
        this.#context.memory.take(EDGE_BYTES);
        const edge = this.#context.register.edge(found);
        to.known.get(edge[to.near])?.push(edge);
      }
    }
  }

  /** In the order of the references; undefined for objects that the principal may not see. */
  async #load(refs: readonly VertexRef[]): Promise<readonly (Vertex | undefined)[]> {
    const missing = [...new Set(refs.filter((ref) => !this.#vertices.has(ref)))];
    for (const ref of missing) this.#vertices.set(ref, undefined);
    for await (const page of this.#followed(this.#rows(missing))) {
      for (const row of page) {
        if (this.#isVisible(row)) this.#vertexOf(row);
        if (this.#slices.isOver(this.#work)) await this.#slices.pause();
      }
    }
    return refs.map((ref) => this.#vertices.get(ref));
  }

  /** The rows, with what their relations lead to added to those whose patterns need it. */
  async *#followed(pages: AsyncIterable<readonly ObjectRow[]>): AsyncGenerator<readonly ObjectRow[]> {
    const { relations } = this.#plan;
    if (!relations) {
      yield* pages;
      return;
    }
    const asking = this.#patterns.filter((pattern) => pattern.relations !== undefined);
    for await (const page of pages) {
      const asked = page.filter((row) => asking.some((pattern) => pattern.mayFit(row)));
      const known = new Map<ObjectRow, ObjectRow>();
      for await (const rows of withRelations(onePage(asked), relations, { ...this.#context, slices: this.#slices }))
        for (const row of rows) known.set(asked[known.size] ?? row, row);
      yield page.map((row) => known.get(row) ?? row);
    }
  }

  async *#rows(refs: readonly VertexRef[]): AsyncGenerator<readonly ObjectRow[]> {
    const { asOfMs } = this.#plan;
    if (asOfMs === undefined) {
      // Page by page, so that no more than a page beyond `GRAPH_NODES_MAX` is in memory.
      for (let from = 0; from < refs.length; from += OBJECT_PAGE_MAX) {
        const rows = await this.#context.objects.unrestricted.get(
          this.#context.principal,
          refs.slice(from, from + OBJECT_PAGE_MAX),
        );
        yield rows.filter((row) => row !== undefined);
      }
      return;
    }
    for (const path of new Set(refs.map((ref) => ref.class))) {
      const ids = refs.filter((ref) => ref.class === path).map((ref) => ref.id);
      yield* this.#context.read({ class: path, subtree: false, ids, asOfMs });
    }
  }

  #vertexOf(row: ObjectRow): Vertex {
    const ref = this.#context.register.ref(row.class.path, row.id);
    const known = this.#vertices.get(ref);
    if (known) return known;
    this.#nodes += 1;
    if (this.#nodes > GRAPH_NODES_MAX)
      throw tooLarge(`MATCH meets more than ${GRAPH_NODES_MAX} objects`, "GRAPH_NODES_MAX");
    const shown = this.#shown(row);
    this.#context.memory.take(VERTEX_BYTES + bytesOf(shown));
    const vertex: Vertex = {
      ref,
      isRecord: row.class.kind === "record",
      isEnd: this.#plan.until?.(row.id) ?? false,
      fits: new Set(this.#patterns.filter((pattern) => pattern.fits(row))),
      shown,
    };
    this.#vertices.set(ref, vertex);
    return vertex;
  }

  #shown(row: ObjectRow): Row {
    const { scope, returns } = this.#plan;
    const isNamed = scope.column(row.class, "name") && !cellsOf(scope)?.hiddenIn(row).has("name");
    const name = isNamed ? row.values.name : undefined;
    const shown: Row = { id: row.id, class: row.class.path, name: name ?? parseObjectId(row.id)?.key ?? row.id };
    for (const field of returns) {
      const value = scope.source(field).read(row);
      if (value !== undefined) shown[field.label] = value;
    }
    return shown;
  }
}

async function* onePage(rows: readonly ObjectRow[]): AsyncGenerator<readonly ObjectRow[]> {
  if (rows.length > 0) yield await Promise.resolve(rows);
}

/** The ends at which edges have the objects that are already known. */
function nearEnds({ direction }: Hop, way: "on" | "back"): readonly End[] {
  if (direction === "both") return ["source", "target"];
  return [(direction === "out") === (way === "on") ? "source" : "target"];
}

function opposite(end: End): End {
  return end === "source" ? "target" : "source";
}
