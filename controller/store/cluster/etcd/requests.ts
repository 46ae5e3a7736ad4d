import {
  CompareResult,
  CompareTarget,
  type ICompare,
  type IKeyValue,
  type IRangeResponse,
  type IRequestOp,
  type ITxnRequest,
  type ITxnResponse,
} from "etcd3";
import { AppError } from "../../../../common/errors.ts";
import { KV_VALUE_MAX_BYTES } from "../../../../common/limits.ts";
import type { KvCondition, KvOperation, KvPutOptions } from "../../kv.ts";
import { checkExpiry, expiryBounds, sealValue } from "../../kv/expiry.ts";
import type { PrefixedKeys } from "./keys.ts";

const LEASE_PATTERN = /^\d{1,19}$/;

export function comparison(keys: PrefixedKeys, condition: KvCondition): ICompare {
  const key = keys.bytes(condition.key);
  if ("revision" in condition)
    return { key, result: CompareResult.Equal, target: CompareTarget.Mod, mod_revision: condition.revision };
  return {
    key,
    result: CompareResult.Equal,
    target: CompareTarget.Create,
    create_revision: condition.createRevision,
  };
}

export function operationRequest(keys: PrefixedKeys, operation: KvOperation): IRequestOp {
  const key = keys.bytes(operation.key);
  if (operation.kind === "delete") return { request_delete_range: { key } };
  return { request_put: putRequest(key, operation.value, operation) };
}

/**
 * `AppError("too_large")` for a value that is too long, `AppError("not_found")` for a text that is no id of a lease,
 * `AppError("invalid")` for an expiry that is no time.
 */
export function putRequest(key: Buffer, value: Uint8Array, bound: Pick<KvPutOptions, "lease" | "expiresAtMs">) {
  const { lease, expiresAtMs } = bound;
  if (value.length > KV_VALUE_MAX_BYTES)
    throw new AppError("too_large", `A value has at most ${KV_VALUE_MAX_BYTES} bytes.`);
  if (lease !== undefined && !LEASE_PATTERN.test(lease)) throw new AppError("not_found", `There is no lease ${lease}.`);
  checkExpiry(expiresAtMs);
  // A copy, because the caller may reuse its buffer while the write waits.
  const bytes = Buffer.from(sealValue(value, expiresAtMs));
  return lease === undefined ? { key, value: bytes } : { key, value: bytes, lease };
}

export function notWrittenSince(operation: IRequestOp, revision: number): ICompare {
  const key = operation.request_put?.key ?? operation.request_delete_range?.key;
  return { key, result: CompareResult.Less, target: CompareTarget.Mod, mod_revision: revision + 1 };
}

/** Holds if there is an expired entry. For an absent key, no comparison of values holds in etcd. */
export function hasExpiredBy(key: Buffer, nowMs: number): ICompare[] {
  const { above, below } = expiryBounds(nowMs);
  return [
    { key, result: CompareResult.Greater, target: CompareTarget.Value, value: Buffer.from(above) },
    { key, result: CompareResult.Less, target: CompareTarget.Value, value: Buffer.from(below) },
  ];
}

export function removeUnchanged({ key, mod_revision }: IKeyValue): ITxnRequest {
  const unchanged = { key, result: CompareResult.Equal, target: CompareTarget.Mod, mod_revision };
  return { compare: [unchanged], success: [{ request_delete_range: { key } }], failure: [] };
}

/** The entries returned by a range that is the first operation. */
export function foundIn(answer: ITxnResponse): readonly IKeyValue[] {
  const range = answer.responses[0]?.response_range as IRangeResponse | undefined;
  return range?.kvs ?? [];
}
