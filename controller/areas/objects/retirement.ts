import { AppError } from "../../../common/errors.ts";
import type { TenantCatalog } from "./catalog.ts";
import { alterClass, checkDrop, dropClass as dropDefinition } from "./classchanges.ts";
import type { Draft } from "./draft.ts";
import { hasObjects } from "./emptiness.ts";
import type { Snapshot } from "./snapshot.ts";
import type { TenantObjects } from "./tenant.ts";
import type { ClassChange } from "./types.ts";
import { classNotFound } from "./views.ts";

/**
 * Drops a class that has no objects, in two steps. First a mark under this controller's lease says that nothing may be written into it. Once no
 * controller works without knowing the mark, what is not there cannot appear any more, and the definition goes. `AppError("conflict")` when
 * there are objects, `AppError("unavailable")` when not everybody acknowledged in time.
 */
export async function dropClass(
  tenant: TenantObjects,
  path: string,
  options: { readonly ifExists?: boolean },
): Promise<void> {
  const { catalog } = tenant;
  if (options.ifExists && catalog.requireCurrent().get(path) === undefined) return;
  // Most attempts on a class in use end here and disturb nobody.
  await requireEmpty(tenant, catalog.requireCurrent(), path);
  const revision = await catalog.change((draft) => {
    checkDrop(draft, path);
    draft.markDropping(path);
  });
  const known = await catalog.acknowledged(revision);
  try {
    if (!known) throw notAcknowledged(`The class ${path} is not dropped`);
    await requireEmpty(tenant, catalog.requireCurrent(), path);
    await catalog.change((draft) => {
      draft.requireMark(path);
      dropDefinition(draft, path);
    });
  } catch (error) {
    await unmark(catalog, path, known);
    throw error;
  }
}

/** What queries rely on is first taken out of their use everywhere; only then writers may stop to keep it. */
export async function retire(catalog: TenantCatalog, path: string, change: ClassChange): Promise<void> {
  const edit = retirement(path, change);
  if (edit === undefined) return;
  const revision = await catalog.change(edit);
  if (!(await catalog.acknowledged(revision))) throw notAcknowledged("The index is not used any more, but still kept");
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
  if (await hasObjects(view, { store: tenant.store.objects, patience: tenant.patience })) {
    throw new AppError("conflict", "[Valid]: Class Has Data or Version Data, Can't Drop.");
  }
}

/** Where this fails, the mark goes with the lease. Everybody takes objects again when it resolves; not waited for where that took too long before. */
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
