import { isAppError } from "../../common/errors.ts";
import type { KvEntry, KvOperation, KvPutOptions, KvStore, KvTxn, KvWriteResult } from "./kv.ts";

/** Repeats a write after errors of its choice. Returns the answer, or throws the error of the last attempt. */
type Repeat = <T>(write: () => Promise<T>) => Promise<T>;

interface OncePut extends KvPutOptions {
  readonly key: string;
  readonly value: Uint8Array;
  readonly ifRevision: number;
}

type Txn = Awaited<ReturnType<KvStore["txn"]>>;

/**
 * `kv.put` with a condition and a certain answer. After `unknown_outcome` it repeats the same write with the same
 * condition: only one of the two can succeed, and the stored value shows whether it was the first one. If only one of
 * several writers may get `ok`, they must write different values, such as an owner, a claim or an id.
 *
 * `ok: false`: another write was first, or it replaced this one before the repetition. If the key is deleted between
 * two attempts with `ifRevision: 0`, it is written again. Throws `unknown_outcome` if the repetition failed as well,
 * and `unavailable` only if no attempt can have succeeded. Without `repeat` there is one repetition, only after
 * `unknown_outcome`.
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
 * `kv.txn` with a certain answer, like `putOnce`: it succeeded if all its puts are present with one revision and all
 * its deleted keys are absent. The revision is 0 if the answer was lost and nothing was put. At least one condition
 * must be on a key that `then` changes.
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
 * The common revision of everything that these operations put, if all of it is present and the deleted keys are absent;
 * 0 if they put nothing. Otherwise `undefined`.
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

/** `isDoubtful`: an earlier attempt may have succeeded without an answer. */
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
