import { hkdf } from "@noble/hashes/hkdf.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { AppError } from "./errors.ts";

export const SECRET_KEY_BYTES = 32;

const LINE = /^odp-key-1:([0-9A-Za-z+/]{43}=)$/;
const ID_BYTES = 6;

/** The line of a key file that holds this key. */
export function secretKeyLine(key: Uint8Array): string {
  return `odp-key-1:${btoa(String.fromCharCode(...key))}\n`;
}

/**
 * Reads keys: one `odp-key-1:<base64 of 32 bytes>` per line. The first key seals; the older ones below it still open.
 * Empty lines and lines that begin with `#` are ignored. `AppError("invalid")`: the message begins with `source` and
 * never contains the text.
 */
export function parseSecretKeys(text: string, source: string): readonly Uint8Array[] {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  const keys = lines.map((line) => LINE.exec(line)?.[1]);
  if (keys.length === 0 || keys.includes(undefined))
    throw new AppError("invalid", `${source} must have lines of the form odp-key-1:<base64 of 32 bytes>.`);
  return keys.map((key) => Uint8Array.from(atob(key ?? ""), (character) => character.charCodeAt(0)));
}

/** Identifies a key without revealing it: 12 hexadecimal digits, derived by HKDF (RFC 5869, SHA-256). */
export function secretKeyId(key: Uint8Array): string {
  const id = hkdf(sha256, key, undefined, new TextEncoder().encode("odp/id"), ID_BYTES);
  return Array.from(id, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
