import "reflect-metadata";
import { webcrypto } from "node:crypto";
import { ServerCredentials } from "@grpc/grpc-js";
import * as x509 from "@peculiar/x509";

const CURVE = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const DAY_MS = 86_400_000;

/** The authority that signs the certificates of a `FakeController` and of its agents. */
export class FakeAuthority {
  readonly #certificate: x509.X509Certificate;
  readonly #keys: webcrypto.CryptoKeyPair;

  private constructor(certificate: x509.X509Certificate, keys: webcrypto.CryptoKeyPair) {
    this.#certificate = certificate;
    this.#keys = keys;
  }

  static async make(): Promise<FakeAuthority> {
    x509.cryptoProvider.set(webcrypto);
    const keys = await newKeys();
    const life = { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + DAY_MS) };
    const extensions = [new x509.BasicConstraintsExtension(true, undefined, true)];
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      name: "CN=fake",
      keys,
      signingAlgorithm: CURVE,
      extensions,
      ...life,
    });
    return new FakeAuthority(certificate, keys);
  }

  /** The authority's certificate in DER. */
  get der(): Buffer {
    return Buffer.from(this.#certificate.rawData);
  }

  /** The authority's certificate. */
  get pem(): string {
    return this.#certificate.toString("pem");
  }

  /** For a server on 127.0.0.1 that demands certificates of its clients; with new keys each time. */
  async serverCredentials(): Promise<ServerCredentials> {
    const { key, cert } = await this.serverPair();
    const pair = { private_key: Buffer.from(key), cert_chain: Buffer.from(cert) };
    return ServerCredentials.createSsl(Buffer.from(this.pem), [pair], true);
  }

  /** Key and certificate of a server on 127.0.0.1 as PEM; new ones each time. */
  async serverPair(): Promise<{ readonly key: string; readonly cert: string }> {
    const keys = await newKeys();
    const names = new x509.SubjectAlternativeNameExtension([
      { type: "ip", value: "127.0.0.1" },
      { type: "dns", value: "localhost" },
    ]);
    const certificate = await this.#issue(keys.publicKey, {
      name: "CN=controller",
      lifeMs: DAY_MS,
      extensions: [names],
    });
    const key = x509.PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey), "PRIVATE KEY");
    return { key, cert: certificate.toString("pem") };
  }

  /** The certificate in DER for a request of an agent. Throws if the request is not signed by its key. */
  async certify(csr: Buffer, lifeMs: number): Promise<Buffer> {
    const request = new x509.Pkcs10CertificateRequest(new Uint8Array(csr));
    if (!(await request.verify())) throw new Error("the request is not signed by its key");
    const key = await request.publicKey.export(CURVE, ["verify"]);
    const certificate = await this.#issue(key, { name: request.subject, lifeMs, extensions: [] });
    return Buffer.from(certificate.rawData);
  }

  #issue(
    publicKey: webcrypto.CryptoKey,
    { name, lifeMs, extensions }: { name: string; lifeMs: number; extensions: x509.Extension[] },
  ): Promise<x509.X509Certificate> {
    return x509.X509CertificateGenerator.create({
      subject: name,
      issuer: this.#certificate.subject,
      notBefore: new Date(Date.now() - 1_000),
      notAfter: new Date(Date.now() + lifeMs),
      signingKey: this.#keys.privateKey,
      publicKey,
      signingAlgorithm: CURVE,
      extensions,
    });
  }
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(CURVE, true, ["sign", "verify"]);
}
