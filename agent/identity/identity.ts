import { X509Certificate } from "node:crypto";
import { AppError } from "../../common/errors.ts";
import { CERTIFICATE_RENEW_AT } from "../../common/limits.ts";
import { publicKeyOf } from "./csr.ts";
import { nodeFiles, readWhole, writeAtomically } from "../disk/files.ts";

/**
 * The identity of this agent: its key and certificate, the authorities that it trusts, and the addresses of the
 * controllers.
 */
export interface Identity {
  readonly format: 1;
  readonly host: string;
  readonly tenant: string;
  readonly keyPem: string;
  /** DER, base64. The authorities have the same form. */
  readonly certificate: string;
  readonly authorities: readonly string[];
  /** `host:port` of each controller's agent port. */
  readonly controllers: readonly string[];
  /** Id of the last join token that was tried. Absent from identities of earlier versions. */
  readonly token?: string;
}

/** Undefined when this host has not enrolled yet. */
export async function loadIdentity(path: string, files = nodeFiles): Promise<Identity | undefined> {
  const bytes = await readWhole(files, path);
  if (!bytes) return undefined;
  const identity: unknown = JSON.parse(bytes.toString());
  if (isIdentity(identity)) return identity;
  throw new AppError("unsupported", `${path} was written by a newer agent.`);
}

function isIdentity(value: unknown): value is Identity {
  return typeof value === "object" && value !== null && "format" in value && value.format === 1;
}

export async function storeIdentity(path: string, identity: Identity, files = nodeFiles): Promise<void> {
  await writeAtomically(files, path, Buffer.from(JSON.stringify(identity)));
}

/** Throws `AppError("denied")` when the certificate is for another key. */
export function requireOwnCertificate(certificate: Uint8Array, keyPem: string): void {
  const certified = new X509Certificate(certificate).publicKey.export({ type: "spki", format: "der" });
  if (!certified.equals(publicKeyOf(keyPem))) throw new AppError("denied", "The certificate is for another key.");
}

export interface Lifetime {
  readonly renewMs: number;
  readonly endMs: number;
}

export function lifetimeOf(identity: Identity): Lifetime {
  const certificate = new X509Certificate(Buffer.from(identity.certificate, "base64"));
  const beginMs = Date.parse(certificate.validFrom);
  const endMs = Date.parse(certificate.validTo);
  return { renewMs: beginMs + (endMs - beginMs) * CERTIFICATE_RENEW_AT, endMs };
}

export function pem(der: string): string {
  const lines = der.match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}
