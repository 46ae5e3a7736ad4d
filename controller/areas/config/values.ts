import { AppError } from "../../../common/errors.ts";
import { CONFIG_TTL_MAX_SECONDS, CONFIG_VALUE_MAX_BYTES } from "../../../common/limits.ts";
import type { SecretBox } from "../../secrets/index.ts";
import type { Principal } from "../permissions/index.ts";
import { MASK, type ConfigVisibility } from "./rights.ts";
import { sealContext, type Content, type Entry } from "./stored.ts";

/** A value that a caller wants to store under a key. */
export interface Wanted {
  readonly key: string;
  readonly value: string;
  /** Absent: the value stays secret if the stored one is. */
  readonly secret?: boolean | undefined;
}

/**
 * The content to store for a value. If the value is the mask, the present secret stays. `AppError("invalid")` if there
 * is no secret that the mask could stand for, or if the mask would make a secret readable.
 */
export function contentOf(
  { key, value, secret }: Wanted,
  where: { readonly tenant: string; readonly found: Entry | undefined; readonly secrets: Pick<SecretBox, "seal"> },
): Content {
  const { tenant, found, secrets } = where;
  const kept = value === MASK ? found?.sealed : undefined;
  if (kept !== undefined && secret !== false) return { sealed: kept };
  if (value === MASK && (secret === true || kept !== undefined))
    throw new AppError("invalid", `${MASK} stands for a secret value; ${key} has none that it could stand for.`);
  if (!(secret ?? found?.sealed !== undefined)) return { text: value };
  return { sealed: secrets.seal(value, sealContext(tenant, key)) };
}

/** Throws if the value must not be stored under the key. Returns warnings. */
export async function checkValue(
  principal: Principal,
  visibility: ConfigVisibility,
  { key, value, secret }: Wanted,
): Promise<readonly string[]> {
  if (Buffer.byteLength(value) > CONFIG_VALUE_MAX_BYTES)
    throw new AppError("too_large", `A configuration value has at most ${CONFIG_VALUE_MAX_BYTES} bytes.`);
  const owner = visibility.ownerOf(key);
  if (owner === undefined) return [];
  if (secret) throw new AppError("invalid", `What lies below ${principal.ospace}${owner.prefix} cannot be secret.`);
  return owner.check(principal, key, value);
}

/** Time in milliseconds at which the value expires; `undefined` if it does not expire: no ttl, 0 or -1. */
export function expiryOf(ttlSeconds: number | undefined, nowMs: number): number | undefined {
  if (ttlSeconds === undefined || ttlSeconds === 0 || ttlSeconds === -1) return undefined;
  if (ttlSeconds < 0 || ttlSeconds > CONFIG_TTL_MAX_SECONDS)
    throw new AppError("invalid", `ttl is a number of seconds up to ${CONFIG_TTL_MAX_SECONDS}; 0 and -1: for ever.`);
  return nowMs + ttlSeconds * 1_000;
}
