import { AppError } from "../../../common/errors.ts";
import type { Statement } from "../../../common/mql/index.ts";

/** Maps the path of a class to its path below another root. */
export type PathOf = (path: string) => string;

const ROOT = /^(\/[^/\s]+)+$/;

/**
 * Returns a function that replaces the ospace of exported paths by a root. With `/second/copy`, the class
 * `/matrix/ent/host` becomes `/second/copy/ent/host`. Without a root, paths stay. `AppError("invalid")` if the root is
 * not a class path.
 */
export function pathsBelow(root: string | undefined): PathOf {
  if (root === undefined) return (path) => path;
  const place = root.replace(/\/$/, "");
  if (!ROOT.test(place))
    throw new AppError("invalid", `[Valid] root=${root}: it is an ospace or a class path, such as /matrix/copy.`);
  return (path) => place + path.replace(/^\/[^/]+/, "");
}

/** The statement with its classes at their new paths. Paths in the JSON of INSERT JSON are mapped later. */
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
