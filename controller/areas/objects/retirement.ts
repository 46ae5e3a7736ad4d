import { AppError } from "../../../common/errors.ts";
import { requireExpected } from "../../../common/revisions.ts";
import type { TenantCatalog } from "./definitions/catalog.ts";
import { alterClass, checkDrop, dropClass as dropDefinition } from "./definitions/classchanges.ts";
import type { Draft } from "./definitions/draft.ts";
import type { Snapshot } from "./definitions/snapshot.ts";
import { classNotFound } from "./definitions/views.ts";
import { hasObjects } from "./reading/emptiness.ts";
import type { DropOptions } from "./interface.ts";
import type { TenantObjects } from "./tenant.ts";
import type { ClassChange } from "./types.ts";

/**
 * Drops a class without objects in two steps. First a mark under this controller's lease says that the class takes no
 * objects. After all controllers know the mark, the class stays empty, and its definition is removed.
 * `AppError("conflict")` when there are objects, `AppError("unavailable")` when a controller did not acknowledge in
 * time.
 */
export async function dropClass(tenant: TenantObjects, path: string, options: DropOptions): Promise<void> {
  const { catalog } = tenant;
  const check = (draft: Draft): void => {
    requireExpected(options.expected, `The class ${path}`, draft.class(path));
    checkDrop(draft, path);
  };
  if (options.ifExists && catalog.requireCurrent().get(path) === undefined) return;
  // Most attempts to drop a class in use end here, before other controllers notice.
  await requireEmpty(tenant, catalog.requireCurrent(), path);
  const revision = await catalog.change((draft) => {
    check(draft);
    draft.markDropping(path);
  });
  const known = await catalog.acknowledged(revision);
  try {
    if (!known) throw notAcknowledged(`The class ${path} is not dropped`);
    await requireEmpty(tenant, catalog.requireCurrent(), path);
    await catalog.change((draft) => {
      check(draft);
      draft.requireMark(path);
      dropDefinition(draft, path);
    });
  } catch (error) {
    await unmark(catalog, path, known);
    throw error;
  }
}

interface Retiring {
  readonly path: string;
  /** User who makes the change. */
  readonly by: string;
  /** Throws if the class is not as the caller expects. */
  readonly require: (draft: Draft) => void;
}

/**
 * Queries on all controllers stop using the indexes to be dropped first. After that, writers may stop filling them.
 * Returns false if the changes drop no index.
 */
export async function retire(
  catalog: TenantCatalog,
  changes: readonly ClassChange[],
  { path, by, require }: Retiring,
): Promise<boolean> {
  const edits = changes.flatMap((change) => retirement(path, change) ?? []);
  if (edits.length === 0) return false;
  const revision = await catalog.change((draft) => {
    require(draft);
    for (const edit of edits) edit(draft);
  }, by);
  if (!(await catalog.acknowledged(revision))) throw notAcknowledged("The index is not used any more, but still kept");
  return true;
}

function retirement(path: string, change: ClassChange): ((draft: Draft) => void) | undefined {
  if (change.kind === "drop index")
    return (draft) => alterClass(draft, path, { kind: "retire index", name: change.name });
  if (change.kind === "set options" && change.options.autosearch === false)
    return (draft) => alterClass(draft, path, { kind: "retire words" });
  return undefined;
}

async function requireEmpty(tenant: TenantObjects, snapshot: Snapshot, path: string): Promise<void> {
  const view = snapshot.get(path);
  if (view === undefined) throw classNotFound(path);
  if (await hasObjects(view, { store: tenant.store.objects })) {
    throw new AppError("conflict", "[Valid]: Class Has Data or Version Data, Can't Drop.");
  }
}

/**
 * Removes the mark. If that fails, the mark ends with the lease. With `quick`, all controllers accept objects again
 * when it resolves. Without `quick` it does not wait, because an earlier wait took too long.
 */
async function unmark(catalog: TenantCatalog, path: string, quick: boolean): Promise<void> {
  try {
    const revision = await catalog.change((draft) => draft.unmarkDropping(path));
    if (quick) await catalog.acknowledged(revision);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
  }
}

function notAcknowledged(what: string): AppError {
  return new AppError("unavailable", `${what}: another controller does not say that it knows. Try again.`);
}
