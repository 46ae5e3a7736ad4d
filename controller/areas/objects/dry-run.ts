import { AppError } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import type { Row } from "../../../common/value.ts";
import { checkChange, checkRecord } from "../../store/checks.ts";
import { classAccess, type Principal } from "../permissions/index.ts";
import type { TenantCatalog } from "./definitions/catalog.ts";
import { alterClass, createClass, createEdgeType } from "./definitions/classchanges.ts";
import { makesClass, makesEdgeType, requireDefiner } from "./definitions/definers.ts";
import type { Draft } from "./definitions/draft.ts";
import type { Snapshot } from "./definitions/snapshot.ts";
import { classNotFound, type LoadedClass } from "./definitions/views.ts";
import type { DryRun } from "./interface.ts";
import { placesOf } from "./reading/locate.ts";
import { changeGrowth, recordSize } from "./values/room.ts";
import { QuotaEstimate, type RoomOfRehearsal } from "./quota-estimate.ts";
import type { ClassChange, ClassSpec, EdgeType, Edit, RecordMarks } from "./types.ts";
import { compose } from "./values/compose.ts";
import { wholeId } from "./values/identity.ts";
import { recordId, recordOf } from "./values/records.ts";
import { checkEdits, checkRecordRow, checkRow, type CheckedEdits } from "./values/rows.ts";

const NO_TIME = { timeMs: 0, entropy: () => new Uint8Array(10) };
const NO_ULID = ulidOf(NO_TIME.timeMs, NO_TIME.entropy());

/** Works on a draft that is never written. Uses the current definitions until the draft has changes. */
export class DraftDryRun implements DryRun {
  readonly #principal: Principal;
  readonly #catalog: TenantCatalog;
  #draft: Draft | undefined;
  #snapshot: Snapshot | undefined;
  readonly #tally: QuotaEstimate | undefined;

  /** `room` absent: there is no quota. */
  constructor(principal: Principal, catalog: TenantCatalog, room?: RoomOfRehearsal) {
    this.#principal = principal;
    this.#catalog = catalog;
    this.#tally = room && new QuotaEstimate(room);
  }

  get catalog(): Snapshot {
    return (this.#snapshot ??= this.#draft ? this.#catalog.preview(this.#draft) : this.#catalog.current());
  }

  createClass(spec: ClassSpec, options: { readonly ifNotExists?: boolean } = {}): void {
    this.#change((draft) => {
      if (!makesClass(this.#principal, spec.path, { isKnown: draft.class(spec.path) !== undefined, ...options }))
        return;
      createClass(draft, spec, this.#principal.ospace);
    });
  }

  alterClass(path: string, change: ClassChange): void {
    requireDefiner(this.#principal, path);
    this.#change((draft) => alterClass(draft, path, change));
  }

  createEdgeType(type: EdgeType, options: { readonly ifNotExists?: boolean } = {}): void {
    this.#change((draft) => {
      if (!makesEdgeType(this.#principal, { isKnown: draft.edgeType(type.name) !== undefined, ...options })) return;
      createEdgeType(draft, type);
    });
  }

  checkRow(path: string, row: Row, marked?: RecordMarks): string | undefined {
    const { catalog } = this;
    const view = this.#class(path);
    if (view.kind === "record") {
      const id = recordId(view, Object.hasOwn(row, "id") ? row.id : undefined, () => NO_ULID);
      const record = recordOf(view, id, checkRecordRow(view, catalog, row), marked);
      checkRecord(record);
      this.#tally?.add(recordSize(record), id === NO_ULID ? undefined : { record });
      return undefined;
    }
    const checked = checkRow(view, catalog, row, { source: NO_TIME });
    const { change } = compose({
      view,
      key: checked.key,
      timeUs: 1,
      edits: checked.edits,
      old: undefined,
      birth: true,
      fresh: checked.fresh,
    });
    checkChange(change);
    this.#tally?.add(changeGrowth(change, undefined), checked.fresh ? undefined : { entity: change.key });
    this.#checkTargets(checked);
    return checked.fresh ? undefined : wholeId(view, checked.key);
  }

  checkEdits(path: string, edits: readonly Edit[]): void {
    this.#checkTargets(checkEdits(this.#class(path), this.catalog, edits));
  }

  async requireRoom(): Promise<void> {
    await this.#tally?.require();
  }

  #class(path: string): LoadedClass {
    const view = this.catalog.get(path);
    if (view === undefined) throw classNotFound(path);
    return view;
  }

  #checkTargets({ links }: CheckedEdits): void {
    for (const id of links.flatMap((link) => link.ids)) {
      if (placesOf(this.catalog, { id }, (view) => classAccess(this.#principal, view).readable).length === 0)
        throw new AppError("invalid", `[NotExist] Not Found Class For ID ${id}`);
    }
  }

  #change(edit: (draft: Draft) => void): void {
    this.#draft ??= this.#catalog.draft();
    this.#snapshot = undefined;
    edit(this.#draft);
  }
}
