import {
  newKeyPair,
  issueCertificate,
  makeAuthority,
  pem,
  signerOf,
  type Signer,
} from "../../../controller/areas/hosts/authority/certificates.ts";

const DAY_MS = 24 * 3_600_000;
let serials = 0;

/** A certificate authority for servers and clients on 127.0.0.1. */
export class TestAuthority {
  /** PEM. */
  readonly ca: Buffer;
  readonly #signer: Signer;

  private constructor(ca: Buffer, signer: Signer) {
    this.ca = ca;
    this.#signer = signer;
  }

  static async make(): Promise<TestAuthority> {
    const made = await makeAuthority(`test authority ${++serials}`, serialOf(), validity());
    return new TestAuthority(Buffer.from(pem("CERTIFICATE", made.certificate)), await signerOf(made));
  }

  /** PEM. */
  async issue(usage: "client" | "server"): Promise<{ readonly cert: Buffer; readonly key: Buffer }> {
    const { pair, key } = await newKeyPair();
    const subject = {
      commonName: `odp ${usage}`,
      serial: serialOf(),
      usage,
      names: [{ type: "ip", value: "127.0.0.1" }],
    } as const;
    const certificate = await issueCertificate(
      this.#signer,
      { ...subject, names: [...subject.names] },
      { ...validity(), publicKey: pair.publicKey },
    );
    return { cert: Buffer.from(pem("CERTIFICATE", certificate)), key: Buffer.from(pem("PRIVATE KEY", key)) };
  }
}

function validity() {
  return { fromMs: Date.now() - DAY_MS, untilMs: Date.now() + DAY_MS };
}

function serialOf(): string {
  return (++serials).toString(16).padStart(4, "0");
}
