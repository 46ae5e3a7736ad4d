import { JOIN_TOKEN_REPEAT_MS } from "../../../../common/limits.ts";
import type { SecretBox } from "../../../secrets/index.ts";

/** Prefix of join tokens in the system's KvStore. */
export const TOKENS = "enrolment/tokens/";

/** Contains no secret: the token's secret is derived from its id and a key outside the store. */
export interface StoredToken {
  readonly tenant: string;
  /** The host that the token names. Absent: any host without an enrolment. */
  readonly host?: string;
  /** Absent in tokens of earlier versions. */
  readonly user?: string;
  readonly expiresAtMs: number;
  readonly keyId: string;
  readonly used?: UsedToken;
}

export interface UsedToken {
  readonly atMs: number;
  readonly host: string;
  /** SHA-256 of the request, hexadecimal. */
  readonly request: string;
  /** DER, base64. */
  readonly certificate: string;
}

/** Time until which a token is stored. A request made just before its expiry may still be answered again. */
export function keptUntilMs({ expiresAtMs }: Pick<StoredToken, "expiresAtMs">): number {
  return expiresAtMs + JOIN_TOKEN_REPEAT_MS;
}

export function tokenSecret(secrets: SecretBox, id: string, keyId: string | undefined): string {
  return Buffer.from(secrets.derive(`enrolment/token/${id}`, keyId)).toString("base64url");
}
