import { createPrivateKey, generateKeyPairSync, sign } from "node:crypto";

/** The signed content; -1 means no limit, in `expire` no end (milliseconds since 1970). */
export interface LicenceWish {
  readonly tenant: string;
  /** Greater than that of the tenant's licence before. */
  readonly serial: number;
  readonly expire: number;
  readonly server: number;
  readonly agent: number;
}

export interface LicenceKeys {
  /** For the setting `license_keys`: base64 of 32 bytes. */
  readonly publicKey: string;
  /** PKCS #8, PEM: every holder of this key can make licences. */
  readonly privateKey: string;
}

export function makeKeys(): LicenceKeys {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  return {
    publicKey: publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("base64"),
    privateKey: privateKey.export({ format: "pem", type: "pkcs8" }).toString(),
  };
}

/** The document that `/license/import` takes. */
export function makeLicence(wish: LicenceWish, privateKey: string): string {
  const signed = `odp-licence-1.${Buffer.from(JSON.stringify(wish)).toString("base64url")}`;
  return `${signed}.${sign(null, Buffer.from(signed), createPrivateKey(privateKey)).toString("base64url")}\n`;
}
