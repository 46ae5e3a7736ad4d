import { AppError } from "../../../common/errors.ts";
import type { Statement } from "../../../common/mql/index.ts";

/** Maps the path of a class to its path below another root. */
export type PathOf = (path: string) => string;

const ROOT = /^(\/[^/\s]+)+$/;

/**
 * Replaces the ospace of exported paths by a root: with `/second/copy`, the class `/matrix/ent/host` becomes
 * `/second/copy/ent/host`. Without a root, paths stay. Throws `AppError("invalid")` if the root is no class path.
 */
export function pathsBelow(root: string | undefined): PathOf {
  if (root === undefined) return (path) => path;
  const place = root.replace(/\/$/, "");
  if (!ROOT.test(place))
    throw new AppError("invalid", `[Valid] root=${root}: it is an ospace or a class path, such as /matrix/copy.`);
  return (path) => place + path.replace(/^\/[^/]+/, "");
}

/** Returns the statement with its classes at their new paths. Those in the JSON of INSERT JSON are mapped later. */
export function placedStatement(statement: Statement, pathOf: PathOf): Statement {
  switch (statement.kind) {
    case "insert":
    case "createClass":
    case "alterClass":
      return { ...statement, class: { ...statement.class, path: pathOf(statement.class.path) } };
    case "batch":
      return { ...statement, statements: statement.statements.map((inner) => placedStatement(inner, pathOf)) };
    default:
      return statement;
  }
}
