import { OBJECT_TOMBSTONE_KEEP_MS } from "../../../../common/limits.ts";
import { decodeStored, encodePacked } from "../../format.ts";
import type { Edge, EdgeEnd, EntityChange, EntityKey, Page, PageRequest } from "../../objects.ts";
import { Cursors } from "../cursor.ts";
import type { Environment } from "../environment/environment.ts";
import type { Expiry } from "../environment/expiry.ts";
import { compareBytes, following, prefixEnd } from "../bytes/keys.ts";
import { edgeKey, edgeTypePrefix, EXPIRY_KINDS, ownerPrefix } from "../bytes/object-keys.ts";

/**
 * `atMs` is the expiry of a live edge (0: never). For a removed edge it is the time at which its removal is forgotten.
 */
export type PackedEdge = readonly [
  type: string,
  fromCid: number,
  fromId: string,
  toCid: number,
  toId: string,
  timeUs: number,
  value: Uint8Array | null,
  live: boolean,
  atMs: number,
];

const EMPTY = new Uint8Array();

export interface EdgesOptions {
  readonly env: Environment;
  readonly expiry: Expiry;
  readonly alive: (key: EntityKey) => boolean;
}

/** Edges are stored at their source, including removals, and while they live also at their target. */
export class Edges {
  readonly #options: EdgesOptions;

  constructor(options: EdgesOptions) {
    this.#options = options;
  }

  /** Call it inside a write transaction. `deathUs`: everything of the source up to this time is removed. */
  apply(change: EntityChange, deathUs: number, nowMs: number): void {
    if (change.timeUs <= deathUs) return;
    const { cid, id } = change.key;
    const write = (edge: EdgeEnd, live: boolean): void => {
      const atMs = live ? Math.ceil(change.expiresAtMs ?? 0) : nowMs + OBJECT_TOMBSTONE_KEEP_MS;
      this.#merge([
        edge.type,
        cid,
        id,
        edge.to.cid,
        edge.to.id,
        change.timeUs,
        live ? (edge.value ?? null) : null,
        live,
        atMs,
      ]);
    };
    for (const edge of change.addEdges ?? []) write(edge, true);
    for (const edge of change.dropEdges ?? []) write(edge, false);
  }

  /** Call it inside a write transaction. Removes the edges that a death covers. */
  cover(from: EntityKey, deathUs: number): void {
    const prefix = ownerPrefix(from);
    const rows = [...this.#options.env.tables.edgesOut.getRange({ start: prefix, end: prefixEnd(prefix)! })];
    for (const { key, value } of rows) {
      const packed = decodeStored<PackedEdge>(value);
      if (packed[5] <= deathUs) this.#remove(key, packed);
    }
  }

  /** Call it inside a write transaction when an edge expires, or when its removal may be forgotten. */
  visit(key: Uint8Array, due: { readonly atMs: number; readonly nowMs: number }): void {
    const stored = this.#options.env.tables.edgesOut.get(key);
    if (stored === undefined) return;
    const packed = decodeStored<PackedEdge>(stored);
    if (packed[8] !== due.atMs) return;
    if (!packed[7]) this.#options.env.tables.edgesOut.remove(key);
    else
      this.#put(
        key,
        [...packed.slice(0, 6), null, false, due.nowMs + OBJECT_TOMBSTONE_KEEP_MS] as unknown as PackedEdge,
        packed,
      );
  }

  read(
    key: EntityKey,
    direction: "out" | "in",
    options: {
      readonly page: PageRequest & { readonly type?: string };
      readonly nowMs: number;
      readonly place: string;
    },
  ): Page<Edge> {
    const { page, nowMs, place } = options;
    const cursors = new Cursors([place, "edges", key.cid, key.id, direction, page.type ?? null]);
    const after = cursors.read(page);
    const prefix = page.type === undefined ? ownerPrefix(key) : edgeTypePrefix(key, page.type);
    const tables = this.#options.env.read();
    const rows = tables[direction === "out" ? "edgesOut" : "edgesIn"].getRange({
      start: after === undefined ? prefix : following(after),
      end: prefixEnd(prefix)!,
      limit: page.limit,
    });
    if (direction === "out" && !this.#options.alive(key)) return { items: [] };
    const found = [...rows];
    const items = found
      .map((row) => decodeStored<PackedEdge>(row.value))
      .filter((packed) => this.#visible(packed, direction, nowMs))
      .map(toEdge);
    return found.length < page.limit ? { items } : { items, cursor: cursors.write(found.at(-1)!.key) };
  }

  #visible(packed: PackedEdge, direction: "out" | "in", nowMs: number): boolean {
    if (!packed[7] || (packed[8] > 0 && packed[8] <= nowMs)) return false;
    return direction === "out" || this.#options.alive({ cid: packed[1], id: packed[2] });
  }

  #merge(incoming: PackedEdge): void {
    const key = sourceKey(incoming);
    const stored = this.#options.env.tables.edgesOut.get(key);
    const current = stored === undefined ? undefined : decodeStored<PackedEdge>(stored);
    if (current === undefined || wins(incoming, current)) this.#put(key, incoming, current);
  }

  #put(key: Uint8Array, packed: PackedEdge, current: PackedEdge | undefined): void {
    const { env, expiry } = this.#options;
    const value = encodePacked(packed);
    env.tables.edgesOut.put(key, value);
    if (packed[7]) env.tables.edgesIn.put(mirrorKey(packed), value);
    else env.tables.edgesIn.remove(mirrorKey(packed));
    if (current !== undefined && current[8] > 0) expiry.remove(current[8], EXPIRY_KINDS.edge, key);
    if (packed[8] > 0) expiry.add(packed[8], EXPIRY_KINDS.edge, key);
  }

  #remove(key: Uint8Array, packed: PackedEdge): void {
    const { env, expiry } = this.#options;
    env.tables.edgesOut.remove(key);
    env.tables.edgesIn.remove(mirrorKey(packed));
    if (packed[8] > 0) expiry.remove(packed[8], EXPIRY_KINDS.edge, key);
  }
}

/** The edge's key at its target. */
export function mirrorKey(packed: PackedEdge): Uint8Array {
  return edgeKey({ cid: packed[3], id: packed[4] }, packed[0], { cid: packed[1], id: packed[2] });
}

/** The edge's key at its source. */
export function sourceKey(packed: PackedEdge): Uint8Array {
  return edgeKey({ cid: packed[1], id: packed[2] }, packed[0], { cid: packed[3], id: packed[4] });
}

function wins(incoming: PackedEdge, current: PackedEdge): boolean {
  if (incoming[5] !== current[5]) return incoming[5] > current[5];
  if (!current[7]) return false;
  return !incoming[7] || compareBytes(incoming[6] ?? EMPTY, current[6] ?? EMPTY) > 0;
}

function toEdge([type, fromCid, fromId, toCid, toId, timeUs, value]: PackedEdge): Edge {
  const edge = { type, from: { cid: fromCid, id: fromId }, to: { cid: toCid, id: toId }, timeUs };
  return value === null ? edge : { ...edge, value: new Uint8Array(value) };
}
