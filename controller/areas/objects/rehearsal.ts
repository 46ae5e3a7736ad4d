import { AppError } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import type { Row } from "../../../common/value.ts";
import { checkChange, checkRecord } from "../../store/checks.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import type { TenantCatalog } from "./catalog.ts";
import { alterClass, createClass, createEdgeType } from "./classchanges.ts";
import { compose } from "./compose.ts";
import type { Draft } from "./draft.ts";
import { wholeId } from "./identity.ts";
import { placesOf } from "./locate.ts";
import { recordOf } from "./records.ts";
import { checkEdits, checkRecordRow, checkRow, type CheckedEdits } from "./rows.ts";
import type { Snapshot } from "./snapshot.ts";
import type { ClassChange, ClassSpec, EdgeType, Edit, Rehearsal } from "./types.ts";
import { classNotFound, type LoadedClass } from "./views.ts";

const NO_TIME = { timeMs: 0, entropy: () => new Uint8Array(10), ulid: () => ulidOf(0, new Uint8Array(10)) };

/** Works on a draft that is never written, and by the definitions of now until something of them is changed. */
export class DraftRehearsal implements Rehearsal {
  readonly #principal: Principal;
  readonly #catalog: TenantCatalog;
  #draft: Draft | undefined;
  #snapshot: Snapshot | undefined;

  constructor(principal: Principal, catalog: TenantCatalog) {
    this.#principal = principal;
    this.#catalog = catalog;
  }

  get catalog(): Snapshot {
    return (this.#snapshot ??= this.#draft ? this.#catalog.preview(this.#draft) : this.#catalog.current());
  }

  createClass(spec: ClassSpec, options: { readonly ifNotExists?: boolean } = {}): void {
    this.#change((draft) => {
      if (options.ifNotExists && draft.class(spec.path) !== undefined) return;
      createClass(draft, spec, this.#principal.ospace);
    });
  }

  alterClass(path: string, change: ClassChange): void {
    this.#change((draft) => alterClass(draft, path, change));
  }

  createEdgeType(type: EdgeType, options: { readonly ifNotExists?: boolean } = {}): void {
    this.#change((draft) => {
      if (options.ifNotExists && draft.edgeType(type.name) !== undefined) return;
      createEdgeType(draft, type);
    });
  }

  checkRow(path: string, row: Row): string | undefined {
    const { catalog } = this;
    const view = this.#class(path);
    if (view.kind === "record") {
      checkRecord(recordOf(view, NO_TIME.ulid(), checkRecordRow(view, catalog, row)));
      return undefined;
    }
    const checked = checkRow(view, catalog, row, NO_TIME);
    checkChange(
      compose({
        view,
        key: checked.key,
        timeUs: 1,
        edits: checked.edits,
        old: undefined,
        birth: true,
        fresh: checked.fresh,
      }).change,
    );
    this.#checkTargets(checked);
    return checked.fresh ? undefined : wholeId(view, checked.key);
  }

  checkEdits(path: string, edits: readonly Edit[]): void {
    this.#checkTargets(checkEdits(this.#class(path), this.catalog, edits));
  }

  #class(path: string): LoadedClass {
    const view = this.catalog.get(path);
    if (view === undefined) throw classNotFound(path);
    return view;
  }

  #checkTargets({ links }: CheckedEdits): void {
    for (const id of links.flatMap((link) => link.ids)) {
      if (placesOf(this.catalog, { id }, anyClass).length === 0)
        throw new AppError("invalid", `[NotExist] Not Found Class For ID ${id}`);
    }
  }

  #change(edit: (draft: Draft) => void): void {
    requirePermission(this.#principal, "objects:write");
    this.#draft ??= this.#catalog.draft();
    this.#snapshot = undefined;
    edit(this.#draft);
  }
}

function anyClass(_view: LoadedClass): boolean {
  return true;
}
