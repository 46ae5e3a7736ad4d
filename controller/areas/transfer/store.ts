import type { ErrorCode } from "../../../common/errors.ts";
import type { Stores } from "../../store/engine.ts";
import { Journal, type JournalDependencies, type Versioned, type OpenWork } from "../../store/journal/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { WriteFrom } from "./write.ts";

/**
 * An import in progress, with all data that another controller needs to continue it. KvStore: `transfer/open/<id>`.
 * BlobStore: the script, with the mark `transfer/<id>`. Until `staged` is true, the script may still be missing there.
 */
export interface OpenImport extends WriteFrom, OpenWork {
  /** The user who started the import, with the rights at that time. */
  readonly principal: Principal;
  /** Name of the uploaded file. */
  readonly name: string;
  readonly startedMs: number;
  readonly digest: string;
  /** See `ImportOptions.root`. */
  readonly root?: string | undefined;
  /** See `ImportOptions.times`. */
  readonly times?: boolean | undefined;
  readonly total: number;
  /** True if the script is completely in the BlobStore. */
  readonly staged: boolean;
  /**
   * Time of this progress. It rises with every write, so the object of the import never changes back to an older state.
   */
  readonly notedMs: number;
  /** How the import ended. Decided once; any controller that finds it records it. */
  readonly end?: ImportEnd;
}

export interface ImportEnd {
  readonly state: "done" | "failed";
  /** Error code of a failed import. */
  readonly code?: ErrorCode;
  readonly message: string;
  readonly endedMs: number;
}

export type VersionedImport = Versioned<OpenImport>;
export type ImportJournal = Journal<OpenImport>;

export function importJournal(dependencies: JournalDependencies): ImportJournal {
  return new Journal(dependencies, { prefix: "transfer/open/", tenantOf: ({ principal }) => principal.tenant });
}

/** Stores the scripts of imports until the imports end. */
export class ScriptStore {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  async save(open: Pick<OpenImport, "id" | "principal">, content: AsyncIterable<Uint8Array>): Promise<void> {
    const { blobs } = await this.#stores.tenant(open.principal.tenant);
    await blobs.put(content, ownerOf(open));
  }

  async *read(open: OpenImport): AsyncGenerator<Uint8Array> {
    const { blobs } = await this.#stores.tenant(open.principal.tenant);
    yield* blobs.read(open.digest);
  }

  async release(open: OpenImport): Promise<void> {
    const { blobs } = await this.#stores.tenant(open.principal.tenant);
    await blobs.unmark(open.digest, ownerOf(open));
  }
}

function ownerOf({ id }: Pick<OpenImport, "id">): string {
  return `transfer/${id}`;
}
