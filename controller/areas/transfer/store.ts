import type { ErrorCode } from "../../../common/errors.ts";
import type { Stores } from "../../store/engine.ts";
import { Journal, type Noted, type OpenWork } from "../../store/journal.ts";
import type { Principal } from "../permissions/index.ts";
import type { Progress } from "./write.ts";

/**
 * An import that is not over, with all that another controller needs to go on. KvStore: `transfer/open/<id>`.
 * BlobStore: the script, with the mark `transfer/<id>`; for a short while before it is `staged` perhaps without that
 * content.
 */
export interface OpenImport extends Progress, OpenWork {
  /** The user who started it, with the rights of that time. */
  readonly principal: Principal;
  /** As the client called the upload. */
  readonly name: string;
  readonly startedMs: number;
  readonly digest: string;
  readonly total: number;
  /** Whether the script lies in the store. */
  readonly staged: boolean;
  /** When this was noted; the object of the import never shows an older state for a newer one. */
  readonly notedMs: number;
  /** How it ended: decided once, then recorded by any controller that finds it. */
  readonly end?: ImportEnd;
}

export interface ImportEnd {
  readonly state: "done" | "failed";
  /** The code of the error it failed with. */
  readonly code?: ErrorCode;
  readonly message: string;
  readonly endedMs: number;
}

export type VersionedImport = Noted<OpenImport>;

export class TransferStore {
  readonly #stores: Stores;
  readonly #journal: Journal<OpenImport>;

  constructor(stores: Stores) {
    this.#stores = stores;
    this.#journal = new Journal(stores, "transfer/open/");
  }

  begin(open: OpenImport): Promise<VersionedImport | undefined> {
    return this.#journal.begin(open.principal.tenant, open);
  }

  /** `undefined` when another writer changed or ended it since it was read. */
  change(held: VersionedImport, changes: Partial<OpenImport>): Promise<VersionedImport | undefined> {
    return this.#journal.change(held.open.principal.tenant, held, changes);
  }

  all(tenant: string): Promise<readonly VersionedImport[]> {
    return this.#journal.all(tenant);
  }

  async saveScript(open: OpenImport, content: AsyncIterable<Uint8Array>): Promise<void> {
    const { blobs } = await this.#stores.tenant(open.principal.tenant);
    await blobs.put(content, ownerOf(open));
  }

  async *script(open: OpenImport): AsyncGenerator<Uint8Array> {
    const { blobs } = await this.#stores.tenant(open.principal.tenant);
    yield* blobs.read(open.digest);
  }

  /** Releases the script first: after a crash in between, another controller repeats it. */
  async remove(open: OpenImport): Promise<void> {
    const { tenant } = open.principal;
    const { blobs } = await this.#stores.tenant(tenant);
    await blobs.unmark(open.digest, ownerOf(open));
    await this.#journal.remove(tenant, open.id);
  }
}

function ownerOf({ id }: OpenImport): string {
  return `transfer/${id}`;
}
