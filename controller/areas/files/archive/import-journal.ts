import { createHash } from "node:crypto";
import { Journal, type JournalDependencies, type OpenWork, type Versioned } from "../../../store/journal/index.ts";
import type { HeldContent } from "../entries.ts";
import type { Space } from "../names.ts";

/**
 * An import of an archive that writes files. KvStore: `files/imports/<id>`. If its controller dies, another one removes
 * the marks of contents that no file names. It does not continue the import: the archive has gone with the controller.
 */
export interface OpenFileImport extends OpenWork {
  readonly tenant: string;
  readonly ospace: string;
  readonly user: string;
  readonly traceparent: string;
  readonly space: Space;
  readonly startedMs: number;
  /** The files that are being written. Recorded before their contents are stored. */
  readonly batch: readonly ImportedFile[];
  readonly end?: never;
}

/** A file that an import writes. */
export interface ImportedFile {
  readonly fullname: string;
  /** SHA-256 of the new content. */
  readonly digest: string;
  /** The contents that it replaces: several if the file was written by others between two attempts. */
  readonly formers: readonly HeldContent[];
}

export type VersionedFileImport = Versioned<OpenFileImport>;

export class FileImportJournal extends Journal<OpenFileImport> {
  constructor(dependencies: JournalDependencies) {
    super(dependencies, { prefix: "files/imports/", tenantOf: ({ tenant }) => tenant });
  }
}

/** The mark of a file's content: the same in every attempt, so that no attempt leaves another one behind. */
export function importMark({ id }: Pick<OpenFileImport, "id">, fullname: string): string {
  return `file/${createHash("sha256").update(`${id} ${fullname}`).digest("base64url")}`;
}
