import { AppError } from "../../../../common/errors.ts";
import { SEARCH_TREE_MAX_DEPTH } from "../../../../common/limits.ts";
import type { Steps } from "../../../../common/mql/index.ts";
import type { Row, Value } from "../../../../common/value.ts";

/** Estimated bytes of a member in a copy of a row, which shares its values with the row. */
const MEMBER_BYTES = 8;

/**
 * Rows as nodes with `children`. The `parent` of a row is the `fullname` or the id of another row. The top nodes are
 * the rows with the given parent. Without a given parent they are the rows whose parent is not among the rows, and one
 * row of each ring.
 */
export function* treeOf(rows: readonly Row[], parent: string | undefined): Steps<readonly Row[]> {
  const owners = new Map(rows.flatMap((row) => namesOf(row).map((name) => [name, row] as const)));
  const children = new Map<Row, Row[]>();
  const tops: Row[] = [];
  for (const row of rows) {
    const owner = isText(row.parent) ? owners.get(row.parent) : undefined;
    if (parent === undefined ? !owner || owner === row : row.parent === parent) tops.push(row);
    else if (owner) adopt(children, owner, row);
  }
  const grown = new Set<Row>();
  const trees: Row[] = [];
  for (const row of tops) trees.push(yield* node(row, { children, grown, depth: 1 }));
  if (parent !== undefined) return trees;
  for (const row of rows) if (!grown.has(row)) trees.push(yield* node(row, { children, grown, depth: 1 }));
  return trees;
}

interface Growth {
  readonly children: ReadonlyMap<Row, readonly Row[]>;
  readonly grown: Set<Row>;
  readonly depth: number;
}

function* node(row: Row, { children, grown, depth }: Growth): Steps<Row> {
  if (depth > SEARCH_TREE_MAX_DEPTH) {
    throw new AppError("too_large", `[Exec] The tree is deeper than ${SEARCH_TREE_MAX_DEPTH}.`, {
      details: { limit: "SEARCH_TREE_MAX_DEPTH" },
    });
  }
  grown.add(row);
  const own: Row[] = [];
  for (const child of children.get(row) ?? [])
    if (!grown.has(child)) own.push(yield* node(child, { children, grown, depth: depth + 1 }));
  const made = { ...row, children: own };
  yield MEMBER_BYTES * Object.keys(made).length;
  return made;
}

function adopt(children: Map<Row, Row[]>, owner: Row, row: Row): void {
  const siblings = children.get(owner);
  if (siblings) siblings.push(row);
  else children.set(owner, [row]);
}

function namesOf(row: Row): readonly string[] {
  return [row.fullname, row.id].filter(isText);
}

function isText(value: Value | undefined): value is string {
  return typeof value === "string";
}
