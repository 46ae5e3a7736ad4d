export const SECRET_KEY_BYTES = 32;

/** The line of a key file that holds this key. */
export function secretKeyLine(key: Uint8Array): string {
  return `odp-key-1:${btoa(String.fromCharCode(...key))}\n`;
}
