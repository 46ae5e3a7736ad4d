import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError } from "../../../../common/errors.ts";
import {
  FILE_IMPORT_BATCH_MAX,
  FILE_IMPORT_PARALLEL_FILES,
  FILE_IMPORT_WARNINGS_MAX,
} from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import type { Principal } from "../../permissions/index.ts";
import { placeColumns, type FileEntry } from "../entries.ts";
import type { HidingGuard } from "../hiding.ts";
import type { Place } from "../names.ts";
import { typeOf } from "../notes.ts";
import { mayNameSystem } from "../spaces.ts";
import type { FileStore } from "../store.ts";
import type { FileVisibility } from "../visible.ts";
import type { ImportPlan, PlannedFile } from "./import-plan.ts";

/** A planned file, and the entry that is at its place now. */
export interface FoundFile extends PlannedFile {
  readonly former: FileEntry | undefined;
}

interface Checking {
  readonly store: FileStore;
  readonly hiding: HidingGuard;
  readonly visibility: FileVisibility;
  readonly nowMs: () => number;
}

/** Checks of an import: kinds of existing entries, rules on the class of files, and files that would hide others. */
export class ImportChecks {
  readonly #principal: Principal;
  readonly #with: Checking;

  constructor(principal: Principal, checking: Checking) {
    this.#principal = principal;
    this.#with = checking;
  }

  /** Checks everything without a write. `AppError("conflict")` or `"denied"` names the first path that is refused. */
  async requireAll({ files, folders, ownFolders }: ImportPlan, signal?: AbortSignal): Promise<void> {
    for (const some of batches(folders)) {
      signal?.throwIfAborted();
      const found = await this.#with.store.get(this.#principal, some);
      const file = found.find((entry) => entry?.content);
      if (file) throw new AppError("conflict", `${file.fullname} is a file, and a folder was to come there.`);
    }
    for (const some of batches(ownFolders)) await this.#requireFolders(some);
    for (const some of batches(files)) {
      signal?.throwIfAborted();
      await this.found(some);
    }
  }

  /** Checks these files directly before they are written. Returns them with the entries at their places. */
  async found(files: readonly PlannedFile[]): Promise<readonly FoundFile[]> {
    const { store, hiding, visibility } = this.#with;
    const formers = await store.get(this.#principal, files);
    const found = files.map((file, at) => ({ ...file, former: formers[at] }));
    for (const file of found) {
      const { former, fullname } = file;
      if (former && !former.content)
        throw new AppError("conflict", `${fullname} is a folder, and a file was to come there.`);
      const after = { ...this.row(file), digest: file.digest };
      visibility.requireWriting(file, { before: former, after, columns: ["digest"] });
    }
    const created = found.filter(({ former }) => former === undefined);
    if (!mayNameSystem(this.#principal)) await hiding.requireNothingHidden(this.#principal, created);
    return found;
  }

  /** Warnings about system files that a file of the users' space hides. */
  async warnings({ files }: ImportPlan): Promise<readonly string[]> {
    const warnings: string[] = [];
    let left = 0;
    if (files[0]?.space === "user") return warnings;
    for (const some of batches(files)) {
      const found = await mapLimited(some, FILE_IMPORT_PARALLEL_FILES, (place) =>
        this.#with.hiding.warnings(this.#principal, place),
      );
      for (const warning of found.flat()) {
        if (warnings.length < FILE_IMPORT_WARNINGS_MAX) warnings.push(warning);
        else left += 1;
      }
    }
    return left > 0 ? [...warnings, `The same holds for ${left} more files.`] : warnings;
  }

  /** The row of a file without its content. A file that is replaced keeps its type, attributes and tags. */
  row({ former, size, ...place }: FoundFile): Row {
    const ftype = former ? former.ftype : typeOf(place, undefined);
    return { ...placeColumns(place), ftype, size, owner: this.#principal.user, modified: this.#with.nowMs() };
  }

  async #requireFolders(places: readonly Place[]): Promise<void> {
    const { store, visibility } = this.#with;
    const found = await store.get(this.#principal, places);
    for (const [at, place] of places.entries())
      if (!found[at])
        visibility.requireWriting(place, {
          before: undefined,
          after: store.folderRow(this.#principal, place),
          columns: [],
        });
  }
}

export function* batches<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += FILE_IMPORT_BATCH_MAX) yield items.slice(at, at + FILE_IMPORT_BATCH_MAX);
}
