import { createHash } from "node:crypto";
import { isIP } from "node:net";
import { AppError } from "../../../../common/errors.ts";
import {
  AUTHORITY_LIFETIME_MS,
  CERTIFICATE_COMMON_NAME_MAX,
  CERTIFICATE_SKEW_MS,
  PEER_CERTIFICATE_LIFETIME_MS,
  SERVER_CERTIFICATE_LIFETIME_MS,
} from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { SecretBox } from "../../../secrets/index.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvStore } from "../../../store/kv.ts";
import {
  issueCertificate,
  makeAuthority,
  newKeyPair,
  signerOf,
  type KeyedCertificate,
  type SigningRequest,
  type Signer,
} from "./certificates.ts";
import { agentUri, controllerUri, newSerial } from "./identity.ts";

/** Key of the authority in the store, and the context under which its private key is sealed. */
export const AUTHORITY = "authority/ca";

export interface StoredAuthority {
  /** DER, base64. */
  readonly certificate: string;
  /** PKCS #8 DER, sealed. */
  readonly key: string;
}

/** DNS name in every controller's certificate for the agent port, in addition to its public names. */
export const CONTROLLER_NAME = "controller.odp.internal";

export interface AuthorityDependencies {
  readonly kv: KvStore;
  readonly secrets: SecretBox;
  readonly runtime: Runtime;
  readonly agentLifetimeMs: number;
}

/** The one certificate authority of an installation. Its private key is sealed in the system's KvStore. */
export class Authority {
  readonly #signer: Signer;
  readonly #runtime: Runtime;
  readonly #agentLifetimeMs: number;
  /** Certificates that agents and controllers trust, DER. */
  readonly certificates: readonly Uint8Array[];

  private constructor(stored: KeyedCertificate, signer: Signer, dependencies: AuthorityDependencies) {
    this.certificates = [stored.certificate];
    this.#signer = signer;
    this.#runtime = dependencies.runtime;
    this.#agentLifetimeMs = dependencies.agentLifetimeMs;
  }

  /** Reads the authority, or creates it. Controllers that do so at the same time agree on one. */
  static async open(dependencies: AuthorityDependencies): Promise<Authority> {
    const stored = (await load(dependencies)) ?? (await create(dependencies));
    return new Authority(stored, await signerOf(stored), dependencies);
  }

  /** Issues a certificate for the agent of one host. `generation` ties it to the host's enrolment. */
  issueAgent(
    request: SigningRequest,
    subject: { readonly tenant: string; readonly host: string; readonly generation: string },
  ): Promise<Uint8Array> {
    const { clock, random } = this.#runtime;
    const serial = newSerial(subject.generation, (count) => random.bytes(count));
    return issueCertificate(
      this.#signer,
      {
        commonName: commonName(subject.host),
        serial,
        names: [{ type: "url", value: agentUri(subject.tenant, subject.host) }],
        usage: "client",
      },
      {
        fromMs: clock.nowMs() - CERTIFICATE_SKEW_MS,
        untilMs: clock.nowMs() + this.#agentLifetimeMs,
        publicKey: request.publicKey,
      },
    );
  }

  /** Issues a client certificate for calls to other controllers. */
  async issueController(controllerId: string): Promise<KeyedCertificate> {
    const { clock, random } = this.#runtime;
    const { pair, key } = await newKeyPair();
    const certificate = await issueCertificate(
      this.#signer,
      {
        commonName: CONTROLLER_NAME,
        serial: `50${Buffer.from(random.bytes(15)).toString("hex")}`,
        names: [{ type: "url", value: controllerUri(controllerId) }],
        usage: "client",
      },
      {
        fromMs: clock.nowMs() - CERTIFICATE_SKEW_MS,
        untilMs: clock.nowMs() + PEER_CERTIFICATE_LIFETIME_MS,
        publicKey: pair.publicKey,
      },
    );
    return { certificate, key };
  }

  /** Issues a certificate for the agent port of a controller. `names`: the host names and addresses that reach it. */
  async issueServer(names: readonly string[]): Promise<KeyedCertificate & { readonly untilMs: number }> {
    const { clock, random } = this.#runtime;
    const { pair, key } = await newKeyPair();
    const untilMs = clock.nowMs() + SERVER_CERTIFICATE_LIFETIME_MS;
    const all = [...new Set([CONTROLLER_NAME, "localhost", "127.0.0.1", "::1", ...names])];
    const certificate = await issueCertificate(
      this.#signer,
      {
        commonName: CONTROLLER_NAME,
        serial: `53${Buffer.from(random.bytes(15)).toString("hex")}`,
        names: all.map((name) => (isIP(name) ? { type: "ip", value: name } : { type: "dns", value: name })),
        usage: "server",
      },
      { fromMs: clock.nowMs() - CERTIFICATE_SKEW_MS, untilMs, publicKey: pair.publicKey },
    );
    return { certificate, key, untilMs };
  }
}

async function load({ kv, secrets }: AuthorityDependencies): Promise<KeyedCertificate | undefined> {
  const entry = await kv.get(AUTHORITY);
  return entry && unseal(entry.value, secrets);
}

async function create({ kv, secrets, runtime }: AuthorityDependencies): Promise<KeyedCertificate> {
  const nowMs = runtime.clock.nowMs();
  const serial = `43${Buffer.from(runtime.random.bytes(15)).toString("hex")}`;
  const validity = { fromMs: nowMs - CERTIFICATE_SKEW_MS, untilMs: nowMs + AUTHORITY_LIFETIME_MS };
  const made = await makeAuthority(`odp ${serial.slice(2, 10)}`, serial, validity);
  const stored: StoredAuthority = {
    certificate: Buffer.from(made.certificate).toString("base64"),
    key: secrets.seal(made.key, AUTHORITY),
  };
  const written = await kv.put(AUTHORITY, encodeJson(stored), { ifRevision: 0 });
  if (written.ok) return made;
  if (!written.current)
    throw new AppError("unavailable", "The certificate authority vanished while it was being made.");
  return unseal(written.current.value, secrets);
}

function unseal(value: Uint8Array, secrets: SecretBox): KeyedCertificate {
  const stored = decodeStored<StoredAuthority>(value);
  return { certificate: Buffer.from(stored.certificate, "base64"), key: secrets.openBytes(stored.key, AUTHORITY) };
}

/** X.520 allows 64 characters. The URI holds the full name. */
function commonName(host: string): string {
  if (host.length <= CERTIFICATE_COMMON_NAME_MAX) return host;
  return `${host.slice(0, 47)}-${createHash("sha256").update(host).digest("hex").slice(0, 16)}`;
}
