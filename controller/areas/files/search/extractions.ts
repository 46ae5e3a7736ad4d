import { AppError, isAppError } from "../../../../common/errors.ts";
import {
  FILE_EXTRACT_DEADLINE_MS,
  FILE_EXTRACTIONS_AT_ONCE,
  FILE_INDEX_MAX_BYTES,
  FILE_INDEX_REASON_MAX_CHARACTERS,
} from "../../../../common/limits.ts";
import { cutText } from "../../../../common/text/cut.ts";
import type { Stores } from "../../../store/engine.ts";
import type { Workers } from "../../../workers/index.ts";
import type { FileTasks } from "../tasks.ts";
import { extractText, type Extracted } from "./extract/extract.ts";

interface Dependencies {
  readonly stores: Stores;
  /** Absent: texts are extracted on this thread, without a deadline. For tests. */
  readonly workers?: Workers<FileTasks> | undefined;
}

/** Reason why a content has no text that can be found. */
export class Unreadable {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = cutText(reason, FILE_INDEX_REASON_MAX_CHARACTERS);
  }
}

interface Wanted {
  readonly tenant: string;
  readonly digest: string;
  readonly size: number;
  readonly signal: AbortSignal;
}

/** Extracts texts of contents in worker threads: `FILE_EXTRACTIONS_AT_ONCE`, in the order of the requests. */
export class Extractions {
  readonly #with: Dependencies;
  readonly #lanes: Promise<unknown>[] = Array.from({ length: FILE_EXTRACTIONS_AT_ONCE }, () => Promise.resolve());
  #next = 0;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** Throws only if the extraction did not happen, such as at the stop of the controller. */
  async extract(wanted: Wanted): Promise<Extracted | Unreadable> {
    if (wanted.size > FILE_INDEX_MAX_BYTES)
      return new Unreadable(`The file has more than ${FILE_INDEX_MAX_BYTES} bytes.`);
    const at = this.#next++ % this.#lanes.length;
    const done = (this.#lanes[at] ?? Promise.resolve()).then(() => this.#extract(wanted));
    this.#lanes[at] = done.catch(() => undefined);
    return done;
  }

  async #extract(wanted: Wanted): Promise<Extracted | Unreadable> {
    wanted.signal.throwIfAborted();
    const bytes = await this.#read(wanted).catch(damageOf);
    if (bytes instanceof Unreadable) return bytes;
    const { workers } = this.#with;
    const { tenant, signal } = wanted;
    const options = { tenant, timeoutMs: FILE_EXTRACT_DEADLINE_MS, signal };
    try {
      return await (workers ? workers.run("extractText", { bytes }, options) : extractText({ bytes }));
    } catch (error) {
      // A full queue, or a pool that closes, is no fault of the content.
      if (!isAppError(error) || signal.aborted || isAppError(error, "limited", "unavailable")) throw error;
      return new Unreadable(reasonOf(error));
    }
  }

  /** The bytes of the content in memory that a worker thread can read without a copy. */
  async #read({ tenant, digest, size }: Wanted): Promise<SharedArrayBuffer> {
    const { blobs } = await this.#with.stores.tenant(tenant);
    const bytes = new SharedArrayBuffer(size);
    const into = new Uint8Array(bytes);
    let at = 0;
    for await (const part of blobs.read(digest)) {
      if (at + part.length > size) throw damaged(digest);
      into.set(part, at);
      at += part.length;
    }
    if (at !== size) throw damaged(digest);
    return bytes;
  }
}

function reasonOf(error: AppError): string {
  if (error.code === "deadline") return `Its text was not extracted within ${FILE_EXTRACT_DEADLINE_MS} ms.`;
  if (error.code === "internal") return "Its text could not be extracted: the extraction broke off.";
  return error.message;
}

/** A content that is missing or damaged. Other errors are thrown. */
function damageOf(error: unknown): Unreadable {
  if (isAppError(error, "not_found", "internal")) return new Unreadable(error.message);
  throw error;
}

function damaged(digest: string): AppError {
  return new AppError("internal", `The content ${digest} has another length than its file says.`);
}
