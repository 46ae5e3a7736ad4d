import { createPublicKey, verify, type KeyObject } from "node:crypto";
import { AppError } from "../../../common/errors.ts";
import { LICENCE_MAX_BYTES } from "../../../common/limits.ts";
import type { LicenceDocument } from "./types.ts";

/** Prefix of a document, covered by its signature: a signature made for another purpose is not valid for a licence. */
const FORM = "odp-licence-1";
/** Prefix of the 32 bytes of an Ed25519 public key in the form that Node reads (RFC 8410). */
const SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex");
const KEY = /^[A-Za-z0-9+/]{43}=$/;
const DOCUMENT = /^odp-licence-1\.([A-Za-z0-9_-]{1,16384})\.([A-Za-z0-9_-]{86})$/;
const TENANT = /^[a-z][a-z0-9_]{0,47}$/;

/** The public key from its text in the settings: base64 of 32 bytes. `AppError("invalid")` for any other text. */
export function licenceKey(text: string): KeyObject {
  if (!KEY.test(text))
    throw new AppError("invalid", "A key of licences is the base64 of the 32 bytes of an Ed25519 public key.");
  return createPublicKey({
    key: Buffer.concat([SPKI_PREFIX, Buffer.from(text, "base64")]),
    format: "der",
    type: "spki",
  });
}

/**
 * Reads `odp-licence-1.<payload>.<signature>`, base64url. The payload is the JSON of a `LicenceDocument`. The signature
 * is made with one of the keys over `odp-licence-1.<payload>`; the payload is read only after the signature is
 * verified. Throws `AppError("invalid")`, `too_large`, or `denied` for a signature of another key.
 */
export function readDocument(text: string, keys: readonly KeyObject[]): LicenceDocument {
  if (text.length > LICENCE_MAX_BYTES)
    throw new AppError("too_large", `A licence has at most ${LICENCE_MAX_BYTES} bytes.`, {
      details: { limit: "LICENCE_MAX_BYTES" },
    });
  const [, payload, signature] = DOCUMENT.exec(text.trim()) ?? [];
  if (payload === undefined || signature === undefined)
    throw new AppError("invalid", `A licence is one line of the form ${FORM}.<payload>.<signature>.`);
  const signed = Buffer.from(signedText(payload));
  if (!keys.some((key) => verify(null, signed, key, Buffer.from(signature, "base64url"))))
    throw new AppError("denied", "The licence was not signed by a key this installation trusts (license_keys).");
  return checked(Buffer.from(payload, "base64url").toString("utf8"));
}

/** The text that the signature covers. */
export function signedText(payload: string): string {
  return `${FORM}.${payload}`;
}

function checked(text: string): LicenceDocument {
  const { tenant, serial, expire, server, agent } = parsed(text);
  const isWhole = (value: unknown, least: number): value is number =>
    Number.isSafeInteger(value) && Number(value) >= least;
  if (typeof tenant !== "string" || !TENANT.test(tenant)) throw wrong("tenant", "the name of a tenant");
  if (!isWhole(serial, 1)) throw wrong("serial", "a whole number from 1");
  if (!isWhole(expire, -1)) throw wrong("expire", "milliseconds since 1970, or -1");
  if (!isWhole(server, -1)) throw wrong("server", "a whole number, or -1");
  if (!isWhole(agent, -1)) throw wrong("agent", "a whole number, or -1");
  return { tenant, serial, expire, server, agent };
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value as Readonly<Record<string, unknown>>;
  } catch (error) {
    throw new AppError("invalid", "The licence holds no JSON.", { cause: error });
  }
  throw new AppError("invalid", "The licence holds no object.");
}

function wrong(member: string, form: string): AppError {
  return new AppError("invalid", `${member} of the licence must be ${form}.`, { details: { fields: [member] } });
}
