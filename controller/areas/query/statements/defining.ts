import { AppError, isAppError } from "../../../../common/errors.ts";
import {
  NOWHERE,
  type AlterClass,
  type CreateClass,
  type DropClass,
  type Span,
  type Statement,
} from "../../../../common/mql/index.ts";
import type { Expected } from "../../../../common/revisions.ts";
import { withNearest } from "../../../../common/text/nearest.ts";
import { makesClass, makesEdgeType, readablePaths, requireDefiner } from "../../objects/index.ts";
import { classAccess, requireDefining } from "../../permissions/index.ts";
import { placed } from "../expressions/placing.ts";
import { scopeOf } from "../plan/names/scope.ts";
import { plainMeta } from "../run/meta.ts";
import type { StatementType } from "../types.ts";
import { classChange, classSpec } from "../write/define.ts";
import { definitionWarnings } from "../write/definition-warnings.ts";
import { type PrepareContext, type Prepared, one } from "./prepared.ts";

type Definition = Extract<
  Statement,
  { kind: "createClass" | "dropClass" | "alterClass" | "createEdgeType" | "dropEdgeType" }
>;

const DEFINITION_TYPES: Readonly<Record<Definition["kind"], StatementType>> = {
  createClass: "create",
  dropClass: "drop",
  alterClass: "alter",
  createEdgeType: "create edgetype",
  dropEdgeType: "drop edge",
};

export function definition(statement: Definition, context: PrepareContext): Prepared {
  const work = definitionWork(statement, context);
  const warnings = definitionWarnings(statement, context);
  const rootclass = "class" in statement ? statement.class.path : "";
  return {
    meta: plainMeta(DEFINITION_TYPES[statement.kind], rootclass),
    isRead: false,
    warnings: () => warnings,
    async run() {
      await work();
      return one([]);
    },
    explain: () =>
      Promise.resolve([
        `${DEFINITION_TYPES[statement.kind]} ${rootclass === "" && "name" in statement ? statement.name : rootclass}`,
      ]),
  };
}

interface Named {
  /** Names that the principal sees. */
  readonly names: () => Iterable<string>;
  readonly span: Span;
}

/** Does the work. Its error about an unknown name gets the nearest of the names, and that part of the text. */
async function nearestTold({ names, span }: Named, work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    throw isAppError(error, "not_found") ? placed(withNearest(error, names()), span) : error;
  }
}

/** The part of a statement's context that a definition needs. */
export type DefiningContext = Pick<PrepareContext, "principal" | "objects" | "catalog" | "executions">;

/** Checks the right to define now, so that a script or batch is refused before its first change. Returns the work. */
function definitionWork(statement: Definition, context: PrepareContext): () => Promise<unknown> {
  const { principal, objects, catalog } = context;
  switch (statement.kind) {
    case "createClass":
      return creation(statement, context);
    case "dropClass":
      return removal(statement, context);
    case "alterClass":
      return alteration(statement.class.path, [statement], context);
    case "createEdgeType": {
      const type = { name: statement.name, remedy: statement.remedy ?? "" };
      makesEdgeType(principal, {
        isKnown: catalog.edgeTypes().some(({ name }) => name === type.name),
        ifNotExists: statement.ifNotExists,
      });
      return () => objects.createEdgeType(principal, type, { ifNotExists: statement.ifNotExists });
    }
    case "dropEdgeType":
      requireDefining(principal, principal.ospace);
      return () => objects.dropEdgeType(principal, statement.name, { ifExists: statement.ifExists });
  }
}

export function creation(
  statement: CreateClass,
  { principal, objects, catalog, executions }: DefiningContext,
  expected?: Expected,
): () => Promise<unknown> {
  const spec = classSpec(statement, executions[0] ?? []);
  const { ifNotExists } = statement;
  makesClass(principal, spec.path, { isKnown: catalog.get(spec.path) !== undefined, ifNotExists });
  return () => objects.createClass(principal, spec, { ifNotExists, expected });
}

export function removal(
  { class: { path, span }, ifExists }: DropClass,
  { principal, objects, catalog }: DefiningContext,
  expected?: Expected,
): () => Promise<unknown> {
  if (!ifExists || classAccess(principal, path).readable) requireDefiner(principal, path);
  // Comes before the check that the class is empty, because that check blocks writes to the class for a while.
  if (catalog.get(path)?.system)
    throw new AppError("denied", `[Valid] class ${path} belongs to the platform and cannot be dropped.`);
  return () =>
    nearestTold({ names: () => readablePaths(principal, catalog), span }, () =>
      objects.dropClass(principal, path, { ifExists, expected }),
    );
}

/** All statements are of the class at the path, and are one change. */
export function alteration(
  path: string,
  statements: readonly AlterClass[],
  { principal, objects, catalog, executions, expected }: DefiningContext & { readonly expected?: Expected | undefined },
): () => Promise<unknown> {
  requireDefiner(principal, path);
  const [first] = statements;
  const target = { path, alias: undefined, subtree: false, span: first?.class.span ?? NOWHERE };
  const { tree } = scopeOf(principal, catalog, target);
  const span = first?.alteration.span ?? NOWHERE;
  const changes = statements.map((statement) => classChange(statement, executions[0] ?? []));
  return () =>
    nearestTold({ names: () => tree.names, span }, () => objects.alterClass(principal, path, changes, expected));
}
