import type { AlterClass, CreateClass, DropClass } from "../../../common/mql/index.ts";
import type { Expected } from "../../../common/revisions.ts";
import type { ClassCatalog, Objects } from "../objects/index.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { audited, toldOf, type QueryAudit } from "./audited.ts";
import { alteration, creation, removal, type DefiningContext } from "./statements/defining.ts";

export interface ClassChangesDependencies {
  readonly objects: Objects;
  /** Absent: no entries are written. */
  readonly audit?: QueryAudit;
}

interface Change {
  readonly statements: readonly (AlterClass | CreateClass | DropClass)[];
  readonly work: (context: DefiningContext) => () => Promise<unknown>;
}

/**
 * Changes of classes by statements that an area makes, with the rights, checks and audit entries of MQL. Each call is
 * one change, which is made as a whole or not at all, on the definition that the caller expects.
 */
export class ClassChanges {
  readonly #with: ClassChangesDependencies;

  constructor(dependencies: ClassChangesDependencies) {
    this.#with = dependencies;
  }

  create(principal: Principal, statement: CreateClass, expected?: Expected): Promise<void> {
    requirePermission(principal, "objects:write");
    return this.#make(principal, {
      statements: [statement],
      work: (context) => creation(statement, context, expected),
    });
  }

  /** Makes all changes of the class at once. Without statements it only checks what the caller expects. */
  alter(principal: Principal, path: string, statements: readonly AlterClass[], expected?: Expected): Promise<void> {
    requirePermission(principal, "objects:write");
    return this.#make(principal, {
      statements,
      work: (context) => alteration(path, statements, { ...context, expected }),
    });
  }

  drop(principal: Principal, statement: DropClass, expected?: Expected): Promise<void> {
    requirePermission(principal, "objects:write");
    return this.#make(principal, { statements: [statement], work: (context) => removal(statement, context, expected) });
  }

  async #make(principal: Principal, { statements, work }: Change): Promise<void> {
    const { objects, audit } = this.#with;
    const catalog: ClassCatalog = await objects.catalog(principal);
    const make = async (): Promise<unknown> => work({ principal, objects, catalog, executions: [] })();
    if (statements.length === 0) await make();
    else await audited({ audit, principal, ...toldOf(statements) }, make);
  }
}
