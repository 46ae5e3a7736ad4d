import { isAppError } from "../../common/errors.ts";
import type { KvEntry, KvOperation, KvPutOptions, KvStore, KvTxn, KvWriteResult } from "./kv.ts";

/** Makes a write again after errors of its choice; the answer, or the error of the last attempt. */
type Repeat = <T>(write: () => Promise<T>) => Promise<T>;

interface OncePut extends KvPutOptions {
  readonly key: string;
  readonly value: Uint8Array;
  readonly ifRevision: number;
}

type Txn = Awaited<ReturnType<KvStore["txn"]>>;

/**
 * `kv.put` under a condition, with a certain answer. After `unknown_outcome` the same write is made again under the
 * same condition, so that only one of the two can come to pass, and the value that stands in its place tells whether it
 * was the first one. Two writers that must not both be told `ok` write different values: an owner, a claim, an id.
 *
 * `ok: false`: another write was first, or came right after this one. A key that is deleted between two attempts with
 * `ifRevision: 0` is written again. Throws `unknown_outcome` when the repetition
 * failed as well, `unavailable` only when no attempt was perhaps done. Without `repeat` there is one repetition, after
 * `unknown_outcome` only.
 */
export function putOnce(kv: Pick<KvStore, "put">, put: OncePut, repeat: Repeat = repeatOnce): Promise<KvWriteResult> {
  const { key, value, ...options } = put;
  return certain(repeat, async (isDoubtful) => {
    const answer = await kv.put(key, value, options);
    if (answer.ok || !isDoubtful || !holds(answer.current, value)) return answer;
    return { ok: true, revision: answer.current.revision };
  });
}

/**
 * `kv.txn` with a certain answer, as `putOnce`: it was this one when all it puts stands with one revision and all it
 * deletes is absent. The revision is 0 when the answer was lost and nothing was put. At least one condition is on a key that `then` changes.
 */
export function txnOnce(kv: Pick<KvStore, "txn" | "get">, request: KvTxn, repeat: Repeat = repeatOnce): Promise<Txn> {
  return certain(repeat, async (isDoubtful) => {
    const answer = await kv.txn(request);
    if (answer.ok || !isDoubtful) return answer;
    const made = await standing(kv, request.then);
    return made === undefined ? answer : { ok: true, revision: made };
  });
}

/**
 * The revision with which all that these operations put stands, when it stands and what they delete is absent; 0 when
 * they put nothing.
 */
export async function standing(
  kv: Pick<KvStore, "get">,
  operations: readonly KvOperation[],
): Promise<number | undefined> {
  const found = await Promise.all(operations.map(({ key }) => kv.get(key)));
  const isMade = operations.every((one, at) => (one.kind === "put" ? holds(found[at], one.value) : !found[at]));
  const [revision = 0, ...others] = new Set(found.flatMap((entry) => entry?.revision ?? []));
  return isMade && others.length === 0 ? revision : undefined;
}

/** `isDoubtful`: an attempt before this one may have come to pass without an answer. */
async function certain<T>(repeat: Repeat, write: (isDoubtful: boolean) => Promise<T>): Promise<T> {
  let doubt: unknown;
  try {
    return await repeat(async () => {
      try {
        return await write(doubt !== undefined);
      } catch (error) {
        if (isAppError(error, "unknown_outcome")) doubt = error;
        throw error;
      }
    });
  } catch (error) {
    throw isAppError(error, "unavailable") ? (doubt ?? error) : error;
  }
}

async function repeatOnce<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (isAppError(error, "unknown_outcome")) return write();
    throw error;
  }
}

function holds(entry: KvEntry | undefined, value: Uint8Array): entry is KvEntry {
  return entry !== undefined && Buffer.compare(entry.value, value) === 0;
}
