import type { Statement } from "../../../../common/mql/index.ts";

/** True unless the statement only reads. A batch changes something if one of its statements does. */
export function changesAnything(statement: Statement): boolean {
  if (statement.kind === "batch") return statement.statements.some(changesAnything);
  return !READS.has(statement.kind);
}

const READS: ReadonlySet<Statement["kind"]> = new Set(["select", "selectEdgeTypes", "explain", "union", "match"]);

export function definesAnything(statement: Statement): boolean {
  return ["createClass", "dropClass", "alterClass", "createEdgeType", "dropEdgeType"].includes(statement.kind);
}

/** Kind and target of a change, for the audit trail; contains no values. */
export function targetOf(statement: Statement): string {
  if (statement.kind === "batch") return statement.statements.filter(changesAnything).map(targetOf).join(", ");
  const name = "class" in statement ? statement.class.path : "name" in statement ? statement.name : "";
  return `${statement.kind} ${name}`.trimEnd();
}

/** The classes or other objects that a statement changes. */
export function classesOf(statement: Statement): readonly string[] {
  if (statement.kind === "batch") return statement.statements.filter(changesAnything).flatMap(classesOf);
  return "class" in statement ? [statement.class.path] : "name" in statement ? [statement.name] : [];
}
