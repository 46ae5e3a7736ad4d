import "reflect-metadata"; // must come before @peculiar/x509
import { webcrypto } from "node:crypto";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  Pkcs10CertificateRequest,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
  type JsonGeneralNames,
} from "@peculiar/x509";
import { AppError } from "../../../../common/errors.ts";
import { CSR_MAX_BYTES } from "../../../../common/limits.ts";

/** Creates and reads certificates: P-256 and SHA-256 throughout, DER in and out. Uses no store and no clock. */

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const subtle = webcrypto.subtle;

export interface KeyedCertificate {
  readonly certificate: Uint8Array;
  /** PKCS #8, DER. */
  readonly key: Uint8Array;
}

export interface Validity {
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface Signer {
  readonly certificate: X509Certificate;
  readonly key: webcrypto.CryptoKey;
}

export interface CertificateSubject {
  readonly commonName: string;
  /** Hexadecimal. */
  readonly serial: string;
  readonly names: JsonGeneralNames;
  readonly usage: "client" | "server";
}

export async function newKeyPair(): Promise<{ readonly pair: webcrypto.CryptoKeyPair; readonly key: Uint8Array }> {
  const pair = await subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  return { pair, key: new Uint8Array(await subtle.exportKey("pkcs8", pair.privateKey)) };
}

export async function makeAuthority(commonName: string, serial: string, validity: Validity): Promise<KeyedCertificate> {
  const { pair, key } = await newKeyPair();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serial,
    name: [{ CN: [commonName] }],
    notBefore: new Date(validity.fromMs),
    notAfter: new Date(validity.untilMs),
    signingAlgorithm: ALGORITHM,
    keys: pair,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(pair.publicKey),
    ],
  });
  return { certificate: new Uint8Array(certificate.rawData), key };
}

export async function signerOf(authority: KeyedCertificate): Promise<Signer> {
  const key = await subtle.importKey("pkcs8", authority.key, ALGORITHM, false, ["sign"]);
  return { certificate: new X509Certificate(authority.certificate), key };
}

/** `publicKey`: a CryptoKey, or the key in the form in which a request carries it. */
export async function issueCertificate(
  signer: Signer,
  subject: CertificateSubject,
  options: Validity & { readonly publicKey: webcrypto.CryptoKey },
): Promise<Uint8Array> {
  const usage = subject.usage === "client" ? ExtendedKeyUsage.clientAuth : ExtendedKeyUsage.serverAuth;
  const certificate = await X509CertificateGenerator.create({
    serialNumber: subject.serial,
    subject: [{ CN: [subject.commonName] }],
    issuer: signer.certificate.subjectName,
    notBefore: new Date(options.fromMs),
    notAfter: new Date(options.untilMs),
    publicKey: options.publicKey,
    signingKey: signer.key,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([usage]),
      new SubjectAlternativeNameExtension(subject.names),
      await AuthorityKeyIdentifierExtension.create(signer.certificate),
    ],
  });
  return new Uint8Array(certificate.rawData);
}

export interface SigningRequest {
  readonly publicKey: webcrypto.CryptoKey;
  readonly commonName: string | undefined;
}

/**
 * Throws `AppError("invalid")` if `der` is no PKCS #10 request, has another kind of key, or is not signed with its key.
 */
export async function readRequest(der: Uint8Array): Promise<SigningRequest> {
  if (der.length > CSR_MAX_BYTES) throw refused("is too long");
  const request = parseRequest(der);
  const publicKey = await exportKey(request);
  if (!(await verifies(request))) throw refused("is not signed with its own key");
  return { publicKey, commonName: request.subjectName.getField("CN")[0] };
}

function parseRequest(der: Uint8Array): Pkcs10CertificateRequest {
  try {
    return new Pkcs10CertificateRequest(new Uint8Array(der));
  } catch (cause) {
    throw refused("cannot be read", cause);
  }
}

async function exportKey(request: Pkcs10CertificateRequest): Promise<webcrypto.CryptoKey> {
  try {
    return await subtle.importKey("spki", request.publicKey.rawData, ALGORITHM, true, ["verify"]);
  } catch (cause) {
    throw refused("has no P-256 key", cause);
  }
}

async function verifies(request: Pkcs10CertificateRequest): Promise<boolean> {
  try {
    return await request.verify();
  } catch {
    return false;
  }
}

function refused(reason: string, cause?: unknown): AppError {
  return new AppError("invalid", `The certificate signing request ${reason}.`, { cause });
}

export function pem(label: "CERTIFICATE" | "PRIVATE KEY", der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}
