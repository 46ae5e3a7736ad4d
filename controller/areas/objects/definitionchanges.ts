import { AppError } from "../../../common/errors.ts";
import { requireExpected, type Expected } from "../../../common/revisions.ts";
import { classAccess, requireDefining, type Principal } from "../permissions/index.ts";
import { alterClass, createClass, createEdgeType, dropEdgeType } from "./definitions/classchanges.ts";
import { makesClass, makesEdgeType, requireDefiner } from "./definitions/definers.ts";
import type { Draft } from "./definitions/draft.ts";
import { putSubscription } from "./definitions/subscriptions.ts";
import type { ClassDefinitions, DropOptions, MakeOptions, ObjectChanges } from "./interface.ts";
import type { OpenTenants } from "./opening.ts";
import { dropClass, retire } from "./retirement.ts";
import type { ChangeSubscription, ClassCatalog, ClassChange, ClassSpec, ClassView, EdgeType } from "./types.ts";

/**
 * Changes of classes, edge types and subscriptions. Creating and altering wait until all controllers know the change,
 * but no longer than `CATALOG_ACKNOWLEDGE_DEADLINE_MS`.
 */
export class DefinitionChanges implements ClassDefinitions, ObjectChanges {
  readonly #tenants: OpenTenants;

  constructor(tenants: OpenTenants) {
    this.#tenants = tenants;
  }

  async catalog(principal: Principal): Promise<ClassCatalog> {
    return (await this.#tenants.reading(principal)).snapshot;
  }

  catalogNow(principal: Principal): ClassCatalog | undefined {
    return this.#tenants.readingNow(principal)?.snapshot;
  }

  async createClass(
    principal: Principal,
    spec: ClassSpec,
    { expected, ...options }: MakeOptions = {},
  ): Promise<ClassView> {
    return this.#define(principal, spec.path, (draft) => {
      const known = draft.class(spec.path);
      if (!makesClass(principal, spec.path, { isKnown: known !== undefined, ...options })) return;
      // A class that the caller may not read does not exist for its condition.
      const isSeen = classAccess(principal, spec.path).readable;
      requireExpected(expected, `The class ${spec.path}`, isSeen ? known : undefined);
      createClass(draft, spec, principal.ospace);
    });
  }

  async alterClass(
    principal: Principal,
    path: string,
    change: ClassChange | readonly ClassChange[],
    expected?: Expected,
  ): Promise<ClassView> {
    const { catalog } = await this.#tenants.defining(principal);
    requireDefiner(principal, path);
    const changes = [change].flat();
    const require = (draft: Draft): void => requireExpected(expected, `The class ${path}`, draft.class(path));
    // The first step of a change decides whether the class is as expected.
    const isBegun = await retire(catalog, changes, { path, by: principal.user, require });
    return this.#define(principal, path, (draft) => {
      if (!isBegun) require(draft);
      for (const one of changes) alterClass(draft, path, one);
    });
  }

  async dropClass(principal: Principal, path: string, options: DropOptions = {}): Promise<void> {
    const tenant = await this.#tenants.defining(principal);
    if (options.ifExists && !classAccess(principal, path).readable) return;
    requireDefiner(principal, path);
    await tenant.drops.run([path], () => dropClass(tenant, path, options));
  }

  async createEdgeType(
    principal: Principal,
    type: EdgeType,
    options: { readonly ifNotExists?: boolean } = {},
  ): Promise<void> {
    const { catalog } = await this.#tenants.defining(principal);
    const revision = await catalog.change((draft) => {
      if (!makesEdgeType(principal, { isKnown: draft.edgeType(type.name) !== undefined, ...options })) return;
      createEdgeType(draft, type);
    });
    await catalog.acknowledged(revision);
  }

  async dropEdgeType(principal: Principal, name: string, options: { readonly ifExists?: boolean } = {}): Promise<void> {
    const { catalog } = await this.#tenants.defining(principal);
    requireDefining(principal, principal.ospace);
    const revision = await catalog.change((draft) => {
      if (options.ifExists && draft.edgeType(name) === undefined) return;
      dropEdgeType(draft, name);
    });
    await catalog.acknowledged(revision);
  }

  async subscribe(principal: Principal, subscription: ChangeSubscription): Promise<void> {
    const { catalog, changes } = await this.#tenants.defining(principal);
    const { name, classes } = subscription;
    const revision = await catalog.change((draft) => putSubscription(draft, { name, classes }));
    if (!(await catalog.acknowledged(revision))) {
      throw new AppError(
        "unavailable",
        `The subscription ${name} is kept, but another controller does not say that it knows. Try again.`,
      );
    }
    changes.attach(subscription);
  }

  async unsubscribe(principal: Principal, name: string): Promise<void> {
    const { catalog, changes } = await this.#tenants.defining(principal);
    await catalog.change((draft) => draft.deleteSubscription(name));
    changes.detach(name);
  }

  async #define(principal: Principal, path: string, edit: (draft: Draft) => void): Promise<ClassView> {
    const { catalog } = await this.#tenants.defining(principal);
    const revision = await catalog.change(edit, principal.user);
    const view = catalog.current().get(path);
    if (view === undefined)
      throw new AppError("conflict", `[NotExist] class ${path} was dropped by somebody else meanwhile.`);
    // If a controller has not acknowledged in time, it does not use the new definition yet. Nothing relies on the
    // definition before all controllers have acknowledged it.
    await catalog.acknowledged(revision);
    return view;
  }
}
