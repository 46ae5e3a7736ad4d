import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { AppError } from "../../common/errors.ts";
import { SECRET_KEY_BYTES, secretKeyId } from "../../common/secret-key.ts";

const FORM = "sealed1";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Seals secrets for stores that others may read, with AES-256-GCM. The key is outside of the stores. */
export interface SecretBox {
  /** Id of the key that seals now. Every sealed text contains the id of its key. */
  readonly keyId: string;
  /**
   * `context` names the owner of the secret, such as `matrix/host/web-1/password`. The text opens only with the same
   * context; otherwise `AppError("unavailable")`.
   */
  seal(secret: string | Uint8Array, context: string): string;
  open(sealed: string, context: string): string;
  openBytes(sealed: string, context: string): Uint8Array;
  /**
   * 32 bytes that only an owner of the key can compute from `context`. `keyId`: another key; absent: the current one.
   */
  derive(context: string, keyId?: string): Uint8Array;
}

export interface Key {
  readonly id: string;
  readonly sealing: Uint8Array;
  readonly deriving: Uint8Array;
}

export function expand(master: Uint8Array): Key {
  if (master.length !== SECRET_KEY_BYTES) throw new AppError("invalid", "A key for secrets has 32 bytes.");
  const part = (use: string) => new Uint8Array(hkdfSync("sha256", master, "", `odp/${use}`, 32));
  return { id: secretKeyId(master), sealing: part("seal"), deriving: part("derive") };
}

/** The id of the key with which a text was sealed; `undefined` if the text is not sealed. */
export function keyIdOf(sealed: string): string | undefined {
  const [form, id] = sealed.split(".", 2);
  return form === FORM ? id : undefined;
}

export function seal(key: Key, secret: string | Uint8Array, context: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key.sealing, nonce).setAAD(Buffer.from(context));
  const body = Buffer.concat([cipher.update(secret), cipher.final()]);
  return [FORM, key.id, Buffer.concat([nonce, body, cipher.getAuthTag()]).toString("base64url")].join(".");
}

export function openSealed(byId: (id: string) => Key, sealed: string, context: string): Uint8Array {
  const [form, id, text, ...rest] = sealed.split(".");
  if (form !== FORM || id === undefined || text === undefined || rest.length > 0) throw damaged(context);
  const bytes = Buffer.from(text, "base64url");
  if (bytes.length < NONCE_BYTES + TAG_BYTES) throw damaged(context);
  const decipher = createDecipheriv("aes-256-gcm", byId(id).sealing, bytes.subarray(0, NONCE_BYTES));
  decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch (cause) {
    throw damaged(context, cause);
  }
}

function damaged(context: string, cause?: unknown): AppError {
  return new AppError(
    "unavailable",
    `The sealed secret of ${context} does not open: it was changed, or belongs elsewhere.`,
    { cause },
  );
}

export function derive(key: Key, context: string): Uint8Array {
  return createHmac("sha256", key.deriving).update(context).digest();
}
