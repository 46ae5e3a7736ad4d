import { AppError } from "../../../common/errors.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvStore } from "../../store/kv.ts";

/**
 * How far one stream of one agent is safe, and with which rule texts what follows was perhaps begun. A batch that was
 * interrupted is repeated with the very same texts, so that it writes the very same rows.
 */
export interface Mark {
  readonly host: string;
  /** Every entry up to this sequence is stored. */
  readonly acknowledged: number;
  /** Rule key to digest of its pinned text. */
  readonly pins: Readonly<Record<string, string>>;
}

/** Marks lie under `ingest/<stream id>`. */
export class MarkStore {
  readonly #kv: KvStore;

  constructor(kv: KvStore) {
    this.#kv = kv;
  }

  /** A stream belongs to the host that began it; another one naming it is `AppError("denied")`. */
  async load(streamId: string, host: string): Promise<Mark> {
    const entry = await this.#kv.get(markKey(streamId));
    if (!entry) return { host, acknowledged: 0, pins: {} };
    const mark = decodeStored<Mark>(entry.value);
    if (mark.host !== host) throw new AppError("denied", `The stream ${streamId} belongs to another host.`);
    return mark;
  }

  async save(streamId: string, mark: Mark): Promise<void> {
    await this.#kv.put(markKey(streamId), encodeJson(mark));
  }
}

function markKey(streamId: string): string {
  if (!/^[A-Za-z0-9_-]{8,64}$/.test(streamId)) throw new AppError("invalid", "A stream id has 8 to 64 letters, digits, - and _.");
  return `ingest/${streamId}`;
}
