import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";

/**
 * Certificate requests: PKCS #10 in DER (RFC 2986), the part that an agent needs. They have one name, one P-256 key and
 * no attributes.
 */

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OBJECT_IDENTIFIER = 0x06;
const UTF8_STRING = 0x0c;
const SEQUENCE = 0x30;
const SET = 0x31;
const NO_ATTRIBUTES = Buffer.of(0xa0, 0x00);

/** id-at-commonName, 2.5.4.3 */
const COMMON_NAME = der(OBJECT_IDENTIFIER, Buffer.of(0x55, 0x04, 0x03));
/** ecdsa-with-SHA256, 1.2.840.10045.4.3.2 */
const ECDSA_WITH_SHA256 = der(
  SEQUENCE,
  der(OBJECT_IDENTIFIER, Buffer.of(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02)),
);

/** A new private key as PEM (PKCS #8). It is never sent. */
export function createKeyPem(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/** A request for a certificate for this key. The controller decides which host the certificate names. */
export function createRequest(keyPem: string, commonName: string): Buffer {
  const version = der(INTEGER, Buffer.of(0));
  const name = der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, der(UTF8_STRING, Buffer.from(commonName)))));
  const info = der(SEQUENCE, version, name, publicKeyOf(keyPem), NO_ATTRIBUTES);
  const signature = sign("sha256", info, createPrivateKey(keyPem));
  return der(SEQUENCE, info, ECDSA_WITH_SHA256, der(BIT_STRING, Buffer.of(0), signature));
}

/** SubjectPublicKeyInfo, DER. */
export function publicKeyOf(keyPem: string): Buffer {
  return createPublicKey(keyPem).export({ type: "spki", format: "der" });
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.of(tag), length(content.length), content]);
}

function length(count: number): Buffer {
  if (count < 0x80) return Buffer.of(count);
  const bytes: number[] = [];
  for (let rest = count; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Buffer.of(0x80 | bytes.length, ...bytes);
}
