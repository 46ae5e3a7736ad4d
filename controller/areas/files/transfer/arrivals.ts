import { createHash } from "node:crypto";
import { ulidOf } from "../../../../common/ids.ts";
import type { Runtime } from "../../../runtime.ts";
import type { BeforeMark, BlobInfo } from "../../../store/blobs.ts";
import { Journal, type JournalDependencies, type OpenWork, type Versioned } from "../../../store/journal/index.ts";
import type { HeldContent } from "../entries.ts";
import { KeptContent, type ArrivalRecord, type BytesInMemory } from "./kept-content.ts";

const MARK_BYTES = 12;
const PREFIX = "files/arriving/";

/** A content that is in the store, or about to be, before a change names it. KvStore: `files/arriving/<id>`. */
interface ArrivedContent extends OpenWork, HeldContent {
  readonly tenant: string;
  readonly end?: never;
}

/** Stores a content under the mark, or marks one that is stored. Calls `beforeMark` before the mark is set. */
export type Marking = (mark: string, beforeMark: BeforeMark) => Promise<BlobInfo>;

/**
 * Marks of contents that no file names yet. Each is recorded before it is set. The decision of the change that names the
 * content removes the record, on condition that no other controller has taken it. So if the controller dies before a decision,
 * another one takes the record and removes the mark; and a controller that was held up decides nothing after that.
 */
export class Arrivals {
  readonly #journal: Journal<ArrivedContent>;
  readonly #stores: JournalDependencies["stores"];
  readonly #runtime: Pick<Runtime, "clock" | "random">;

  constructor(dependencies: JournalDependencies) {
    this.#journal = new Journal(dependencies, { prefix: PREFIX, tenantOf: ({ tenant }) => tenant });
    this.#stores = dependencies.stores;
    this.#runtime = dependencies.runtime;
  }

  /** The caller uses or releases the content. If it fails, no mark stays. */
  async keep(tenant: string, marking: Marking): Promise<KeptContent> {
    const mark = this.#newMark();
    const { digest, size, arrived } = await this.#arrive(tenant, mark, marking);
    return new KeptContent({ digest, mark }, size, arrived);
  }

  /** A small content that stays in memory. `marking` stores it if a change cannot store it in its own commit. */
  hold(
    tenant: string,
    { bytes, marking, letGo }: Omit<BytesInMemory, "store"> & { readonly marking: Marking },
  ): KeptContent {
    const digest = createHash("sha256").update(bytes).digest("hex");
    const mark = this.#newMark();
    const store = async (): Promise<ArrivalRecord> => (await this.#arrive(tenant, mark, marking)).arrived;
    return new KeptContent({ digest, mark }, bytes.length, { bytes, store, letGo });
  }

  #newMark(): string {
    return `file/${Buffer.from(this.#runtime.random.bytes(MARK_BYTES)).toString("base64url")}`;
  }

  async #arrive(
    tenant: string,
    mark: string,
    marking: Marking,
  ): Promise<BlobInfo & { readonly arrived: ArrivalRecord }> {
    const { clock, random } = this.#runtime;
    const { inFlight } = this.#journal;
    const id = ulidOf(clock.nowMs(), random.bytes(10));
    let record: Versioned<ArrivedContent> | undefined;
    inFlight.hold(id);
    try {
      const { digest, size } = await marking(mark, async ({ digest }) => {
        record = await this.#journal.begin({ id, tenant, digest, mark });
      });
      if (record === undefined) throw new Error("The store has not told the content before its mark.");
      const { open, revision } = record;
      const arrived = {
        condition: { key: PREFIX + id, revision },
        remove: () => this.#remove(open),
        letGo: () => inFlight.letGo(id),
      };
      return { digest, size, arrived };
    } catch (error) {
      // Otherwise maintenance removes it.
      if (record) await this.#remove(record.open).catch(() => undefined);
      inFlight.letGo(id);
      throw error;
    }
  }

  /** Removes the marks whose controllers died before a change that names them was decided. */
  async maintain(tenant: string): Promise<void> {
    for await (const found of this.#journal.abandoned(tenant)) {
      const taken = await this.#journal.take(found);
      if (taken) await this.#journal.inFlight.carry([taken.open.id], () => this.#remove(taken.open));
    }
  }

  close(): Promise<void> {
    return this.#journal.inFlight.close();
  }

  async #remove(open: ArrivedContent): Promise<void> {
    const { blobs } = await this.#stores.tenant(open.tenant);
    await blobs.unmark(open.digest, open.mark);
    await this.#journal.end(open);
  }
}
