import { isAppError, type ErrorCode } from "../../../common/errors.ts";
import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { Principal } from "../permissions/index.ts";
import type { Progress } from "./write.ts";

/**
 * An import that is not over, as any controller needs it to go on. KvStore: `transfer/open/<id>`. BlobStore: the script, with the mark
 * `transfer/<id>`; for a short while before it is `staged` perhaps without that content.
 */
export interface OpenImport extends Progress {
  readonly id: string;
  /** Who asked for it, with the rights of then. */
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
  /** The controller that works on it. */
  readonly owner: string;
  /** How it ended: decided once, then put on record by whoever sees it. */
  readonly end?: ImportEnd;
}

export interface ImportEnd {
  readonly state: "done" | "failed";
  /** Of the error it failed with. */
  readonly code?: ErrorCode;
  readonly message: string;
  readonly endedMs: number;
}

export interface VersionedImport {
  readonly open: OpenImport;
  readonly revision: number;
}

const OPEN = "transfer/open/";

export class TransferStore {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  begin(open: OpenImport): Promise<VersionedImport | undefined> {
    return this.#put(open, 0);
  }

  /** `undefined` when somebody changed or ended it since it was read. */
  change(held: VersionedImport, changes: Partial<OpenImport>): Promise<VersionedImport | undefined> {
    return this.#put({ ...held.open, ...changes }, held.revision);
  }

  async all(tenant: string): Promise<readonly VersionedImport[]> {
    const { kv } = await this.#stores.tenant(tenant);
    const found: VersionedImport[] = [];
    for await (const { value, revision } of entriesUnder(kv, OPEN)) found.push({ open: decodeStored<OpenImport>(value), revision });
    return found;
  }

  async saveScript(open: OpenImport, content: AsyncIterable<Uint8Array>): Promise<void> {
    const { blobs } = await this.#stores.tenant(open.principal.tenant);
    await blobs.put(content, ownerOf(open));
  }

  async *script(open: OpenImport): AsyncGenerator<Uint8Array> {
    const { blobs } = await this.#stores.tenant(open.principal.tenant);
    yield* blobs.read(open.digest);
  }

  /** Lets go of the script first: who dies in between is followed by somebody who does it again. */
  async remove(open: OpenImport): Promise<void> {
    const { blobs, kv } = await this.#stores.tenant(open.principal.tenant);
    await blobs.unmark(open.digest, ownerOf(open));
    await kv.delete(OPEN + open.id);
  }

  async #put(open: OpenImport, ifRevision: number): Promise<VersionedImport | undefined> {
    const { kv } = await this.#stores.tenant(open.principal.tenant);
    const value = encodeJson(open);
    try {
      const written = await kv.put(OPEN + open.id, value, { ifRevision });
      return written.ok ? { open, revision: written.revision } : undefined;
    } catch (error) {
      if (!isAppError(error, "unknown_outcome")) throw error;
      const now = await kv.get(OPEN + open.id);
      if (now && Buffer.compare(now.value, value) === 0) return { open, revision: now.revision };
      if ((now?.revision ?? 0) === ifRevision) throw error;
      return undefined;
    }
  }
}

function ownerOf({ id }: OpenImport): string {
  return `transfer/${id}`;
}
