import { AppError, isAppError } from "../../../common/errors.ts";
import { FORMAT_EXPIRING } from "../format.ts";
import type { KvEntry } from "../kv.ts";

/** One format byte, then eight bytes for the expiry time in milliseconds since 1970, big-endian. */
const HEAD_BYTES = 9;
/** Stored instead of an expiry time if a value does not expire, but begins with the byte `FORMAT_EXPIRING` itself. */
const NEVER = 0xffff_ffff_ffff_ffffn;

interface OpenedValue {
  readonly value: Uint8Array;
  readonly expiresAtMs?: number;
}

/**
 * The stored form of a value. A value that does not expire is stored unchanged, as older versions of the program did.
 * Stored values with an expiry sort by their expiry time: see `expiryBounds`.
 */
export function sealValue(value: Uint8Array, expiresAtMs?: number): Uint8Array {
  if (expiresAtMs === undefined && value[0] !== FORMAT_EXPIRING) return value;
  const stored = new Uint8Array(HEAD_BYTES + value.length);
  stored.set(headOf(expiresAtMs === undefined ? NEVER : BigInt(expiresAtMs)));
  stored.set(value, HEAD_BYTES);
  return stored;
}

/**
 * The value given to `sealValue`, copied into its own bytes. `AppError("unavailable")` if the stored bytes are too
 * short.
 */
export function openValue(stored: Uint8Array): OpenedValue {
  if (stored[0] !== FORMAT_EXPIRING) return { value: new Uint8Array(stored) };
  if (stored.length < HEAD_BYTES) throw new AppError("unavailable", "A stored value ends before its expiry does.");
  const momentMs = new DataView(stored.buffer, stored.byteOffset).getBigUint64(1);
  const value = new Uint8Array(stored.subarray(HEAD_BYTES));
  return momentMs === NEVER ? { value } : { value, expiresAtMs: Number(momentMs) };
}

/** A stored value has expired by `nowMs` if and only if its bytes are greater than `above` and less than `below`. */
export function expiryBounds(nowMs: number): { readonly above: Uint8Array; readonly below: Uint8Array } {
  return { above: Uint8Array.of(FORMAT_EXPIRING), below: headOf(BigInt(Math.floor(nowMs) + 1)) };
}

export function hasExpired(entry: Pick<KvEntry, "expiresAtMs">, nowMs: number): boolean {
  return entry.expiresAtMs !== undefined && entry.expiresAtMs <= nowMs;
}

/** `AppError("invalid")` if the value is not a time. */
export function checkExpiry(expiresAtMs: number | undefined): void {
  if (expiresAtMs === undefined || (Number.isSafeInteger(expiresAtMs) && expiresAtMs >= 0)) return;
  throw new AppError("invalid", `An expiry is a whole number of milliseconds since 1970, not ${expiresAtMs}.`);
}

/**
 * Turns `unknown_outcome` of a removal into `unavailable`: the removal changed nothing that the caller asked for, so
 * the call may be repeated.
 */
export async function removal<T>(removing: Promise<T>): Promise<T> {
  try {
    return await removing;
  } catch (error) {
    if (!isAppError(error, "unknown_outcome")) throw error;
    throw new AppError("unavailable", "An expired entry could not be removed.", { cause: error });
  }
}

function headOf(momentMs: bigint): Uint8Array {
  const head = new Uint8Array(HEAD_BYTES);
  head[0] = FORMAT_EXPIRING;
  new DataView(head.buffer).setBigUint64(1, momentMs);
  return head;
}
