import { AppError } from "../../common/errors.ts";
import { relativePath } from "../../common/paths.ts";
import { beginningOf } from "../../common/text/cut.ts";

/**
 * The paths of the entries of an archive, or of several that are unpacked into one folder. Paths that differ only in
 * upper and lower case are different.
 */
export class ArchivePaths {
  readonly #files = new Set<string>();
  readonly #folders = new Set<string>();

  get files(): ReadonlySet<string> {
    return this.#files;
  }

  /** The folders that have an entry, and the folders above all entries. */
  get folders(): ReadonlySet<string> {
    return this.#folders;
  }

  /**
   * Returns the clean path of a file. `AppError("invalid")` if the name could leave the folder, if the file comes
   * twice, or if its path or a part of it is a path of the other kind.
   */
  addFile(name: string): string {
    const path = relativePath(name);
    if (this.#files.has(path)) throw new AppError("invalid", `The file ${quoted(path)} would be unpacked twice.`);
    if (this.#folders.has(path)) throw bothKinds(path);
    this.#addFoldersAbove(path);
    this.#files.add(path);
    return path;
  }

  /** Like `addFile`, for a folder. A folder may come several times. */
  addFolder(name: string): string {
    const path = relativePath(name);
    if (this.#files.has(path)) throw bothKinds(path);
    this.#addFoldersAbove(path);
    this.#folders.add(path);
    return path;
  }

  #addFoldersAbove(path: string): void {
    for (let slash = path.lastIndexOf("/"); slash > 0; slash = path.lastIndexOf("/", slash - 1)) {
      const folder = path.slice(0, slash);
      if (this.#folders.has(folder)) return;
      if (this.#files.has(folder)) throw bothKinds(folder);
      this.#folders.add(folder);
    }
  }
}

function bothKinds(path: string): AppError {
  return new AppError("invalid", `${quoted(path)} would be both a file and a folder.`);
}

const SHOWN_CHARACTERS = 200;

/** The name of an entry as errors show it. */
export function quoted(name: string): string {
  return JSON.stringify(beginningOf(name, SHOWN_CHARACTERS));
}
