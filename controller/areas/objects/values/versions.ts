import type { Row, Value } from "../../../../common/value.ts";
import { decodeStored, encodePacked } from "../../../store/format.ts";
import type { EdgeEnd, EntityVersion } from "../../../store/objects.ts";
import type { LoadedClass } from "../definitions/views.ts";
import { elementCellKey } from "./codec.ts";
import { flatValues, rowOfFlat } from "./entity.ts";
import { canonicalText, isObject } from "./values.ts";

/** Stored form of one write of an object. Members may be added; each member says how versions without it are read. */
interface StoredVersion {
  /** The object as the write left it: `[column number, value, …]`. Absent: the write removed the object. */
  readonly values?: readonly Value[];
  /** Time of the first insert in ms; absent: the time of this write. */
  readonly made?: number;
  /** Time in ms at which the object expires; absent: never. */
  readonly until?: number;
  /** Edges from the object that the write set and took away: `[type, class number, key, …]`. */
  readonly added?: readonly (string | number)[];
  readonly dropped?: readonly (string | number)[];
}

export interface Version {
  readonly timeUs: number;
  /** Values without those of dropped columns. `undefined` for a removal, which also removes all edges. */
  readonly row: Row | undefined;
  readonly ctimeMs: number;
  readonly untilMs: number | undefined;
  readonly added: readonly EdgeEnd[];
  readonly dropped: readonly EdgeEnd[];
}

export interface NewVersion {
  readonly row: Row;
  readonly ctimeMs: number | undefined;
  readonly untilMs: number | undefined;
  readonly added: readonly EdgeEnd[];
  readonly dropped: readonly EdgeEnd[];
}

export const REMOVED_VERSION = encodePacked({ dead: true });

/** Encodes a version. Members without content are left out. */
export function encodeVersion(view: LoadedClass, version: NewVersion): Uint8Array {
  const { ctimeMs, untilMs, added, dropped } = version;
  const stored: StoredVersion = {
    values: flatValues(view, asRead(view, version.row)),
    ...(ctimeMs === undefined ? {} : { made: ctimeMs }),
    ...(untilMs === undefined ? {} : { until: untilMs }),
    ...(added.length === 0 ? {} : { added: flatEdges(added) }),
    ...(dropped.length === 0 ? {} : { dropped: flatEdges(dropped) }),
  };
  return encodePacked(stored);
}

export function decodeVersion(view: LoadedClass, { timeUs, value }: EntityVersion): Version {
  const { values, made, until, added, dropped } = decodeStored<StoredVersion>(value);
  return {
    timeUs,
    row: values === undefined ? undefined : rowOfFlat(view, values),
    ctimeMs: made ?? Math.floor(timeUs / 1_000),
    untilMs: until,
    added: edgesOfFlat(added ?? []),
    dropped: edgesOfFlat(dropped ?? []),
  };
}

/** The row with elements of sets and entries of maps in the order that current reads have. */
function asRead(view: LoadedClass, row: Row): Row {
  const ordered = { ...row };
  for (const column of view.columns) {
    const value = row[column.name];
    if (value === undefined || (column.type !== "set" && column.type !== "map")) continue;
    const name = (element: Value): string => elementCellKey(column.cellKey, canonicalText(element));
    if (Array.isArray(value))
      ordered[column.name] = value.toSorted((a: Value, b: Value) => (name(a) < name(b) ? -1 : 1));
    else if (isObject(value))
      ordered[column.name] = Object.fromEntries(Object.entries(value).sort(([a], [b]) => (name(a) < name(b) ? -1 : 1)));
  }
  return ordered;
}

function flatEdges(edges: readonly EdgeEnd[]): (string | number)[] {
  return edges.flatMap(({ type, to }) => [type, to.cid, to.id]);
}

function edgesOfFlat(flat: readonly (string | number)[]): EdgeEnd[] {
  const edges: EdgeEnd[] = [];
  for (let at = 0; at + 2 < flat.length; at += 3)
    edges.push({ type: String(flat[at]), to: { cid: Number(flat[at + 1]), id: String(flat[at + 2]) } });
  return edges;
}
