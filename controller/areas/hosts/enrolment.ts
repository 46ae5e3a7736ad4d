import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { answerProofText, type EnrolAnswer, type EnrolRequest } from "../../../common/agent/enrolment.ts";
import { AppError } from "../../../common/errors.ts";
import { JOIN_TOKEN_REPEAT_MS } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { SecretBox } from "../../secrets/index.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvEntry, KvStore, KvTxn } from "../../store/kv.ts";
import type { Authority } from "./authority/authority.ts";
import { readRequest, type SigningRequest } from "./authority/certificates.ts";
import { generationOf, newGeneration } from "./authority/identity.ts";
import { full, type HostRoom } from "./room.ts";
import { checkHostName } from "./store.ts";
import { keptUntilMs, TOKENS, tokenSecret, type StoredToken, type UsedToken } from "./tokens/store.ts";
import type { AgentIdentity } from "./types.ts";

const HOSTS = "enrolment/hosts/";
const TOKEN_ID = /^[0-9A-HJKMNP-TV-Z]{26}$/;

/** Conditions and writes of an enrolment in addition to those of its token. */
interface Room extends KvTxn {
  /** Returns true if another host was admitted in the meantime. */
  readonly isLost?: () => Promise<boolean>;
}

const NO_CONDITION: Room = { if: [], then: [] };

interface StoredEnrolment {
  readonly generation: string;
  /** Absent from enrolments of earlier versions. */
  readonly atMs?: number;
}

export interface EnrolmentDependencies {
  /** The system's KvStore. */
  readonly kv: KvStore;
  readonly secrets: SecretBox;
  readonly authority: Authority;
  readonly runtime: Runtime;
  readonly agentPort: () => number;
  /** Checks that the tenant may have one more host. */
  readonly room: Pick<HostRoom, "agents" | "requireServer">;
  /** `host:port` of the agent ports of all controllers for agents. Empty: agents use the address they enrolled at. */
  readonly controllers: () => readonly string[];
  /** Makes sure that the host's record exists, and ends sessions under an older enrolment. Idempotent. */
  readonly onEnrolled: (tenant: string, host: string) => Promise<void>;
}

/** Admits agents to their hosts: first certificates by join tokens, renewals, and revocation of old certificates. */
export class Enrolment {
  readonly #with: EnrolmentDependencies;

  constructor(dependencies: EnrolmentDependencies) {
    this.#with = dependencies;
  }

  /** A token serves one request. The same request gets the same answer again for a short time. */
  async enrol(request: EnrolRequest): Promise<EnrolAnswer> {
    if (!TOKEN_ID.test(request.id)) throw wrongToken();
    const entry = await this.#with.kv.get(TOKENS + request.id);
    const token = entry && decodeStored<StoredToken>(entry.value);
    const secret = tokenSecret(this.#with.secrets, request.id, token?.keyId);
    const csr = Buffer.from(request.csr, "base64");
    if (!provenBy(secret, csr, request.proof)) throw wrongToken();
    if (!entry || !token) throw endedToken();
    const used = token.used ?? (await this.#consume({ entry, token, csr, isNamed: request.named === true }));
    return this.#answer(token, this.#repeatable(used, csr), secret);
  }

  /** Issues a new certificate for the same host under the same enrolment. */
  async renew(
    identity: AgentIdentity,
    csr: Uint8Array,
  ): Promise<{ certificate: Uint8Array; authorities: readonly Uint8Array[] }> {
    const generation = await this.admit(identity);
    const request = await readRequest(csr);
    const certificate = await this.#with.authority.issueAgent(request, { ...identity, generation });
    return { certificate, authorities: this.#with.authority.certificates };
  }

  /**
   * Returns the host's enrolment if the certificate belongs to it. Throws `AppError("denied")` if the host was removed
   * or enrolled again since.
   */
  async admit(identity: AgentIdentity): Promise<string> {
    const entry = await this.#with.kv.get(hostKey(identity.tenant, identity.host));
    const current = entry && decodeStored<StoredEnrolment>(entry.value);
    if (current && generationOf(identity.serial) === current.generation) return current.generation;
    throw new AppError("denied", reasonOf(identity.host, current));
  }

  /** Ends the enrolment: from now on no certificate of the host is valid. */
  async forget(tenant: string, host: string): Promise<void> {
    await this.#with.kv.delete(hostKey(tenant, host));
  }

  /** Names of the hosts that have an agent. */
  async enrolledHosts(tenant: string): Promise<readonly string[]> {
    const prefix = hostKey(tenant, "");
    const hosts: string[] = [];
    for await (const { key } of entriesUnder(this.#with.kv, prefix)) hosts.push(key.slice(prefix.length));
    return hosts;
  }

  /** Keys of a tenant's enrolments and join tokens. */
  async *keysOf(tenant: string): AsyncGenerator<string> {
    const { kv } = this.#with;
    for await (const { key } of entriesUnder(kv, hostKey(tenant, ""))) yield key;
    yield roomKey(tenant);
    for await (const { key, value } of entriesUnder(kv, TOKENS))
      if (decodeStored<StoredToken>(value).tenant === tenant) yield key;
  }

  async #consume(taken: {
    readonly entry: KvEntry;
    readonly token: StoredToken;
    readonly csr: Uint8Array;
    readonly isNamed: boolean;
  }): Promise<UsedToken> {
    const { kv, runtime } = this.#with;
    const { entry, token, csr, isNamed } = taken;
    if (runtime.clock.nowMs() >= token.expiresAtMs)
      throw new AppError("denied", "The join token has expired: ask for a new one.");
    const request = await readRequest(csr);
    if (isNamed) requireName(token, request);
    const host = checkHostName(token.host ?? request.commonName ?? "");
    const generation = newGeneration((count) => runtime.random.bytes(count));
    const room = await this.#roomFor(token.tenant, host);
    const used = await this.#issue({ request, csr, tenant: token.tenant, host, generation });
    const { ok } = await kv.txn({
      // Only a token that names the host may replace an earlier enrolment.
      if: [
        { key: entry.key, revision: entry.revision },
        ...room.if,
        ...(token.host === undefined ? [{ key: hostKey(token.tenant, host), revision: 0 }] : []),
      ],
      then: [
        {
          kind: "put",
          key: entry.key,
          expiresAtMs: keptUntilMs(token),
          value: encodeJson({ ...token, used } satisfies StoredToken),
        },
        {
          kind: "put",
          key: hostKey(token.tenant, host),
          value: encodeJson({ generation, atMs: used.atMs } satisfies StoredEnrolment),
        },
        ...room.then,
      ],
    });
    if (ok) return used;
    // Another host of the tenant was enrolled in the meantime, so the room is checked again.
    if (room.isLost && (await room.isLost())) return this.#consume(taken);
    return this.#lost(entry.key, host);
  }

  /**
   * Conditions and writes that allow one more enrolled host, if no other host is admitted at the same time. Throws if
   * there is no room. A host that is already enrolled needs no more room.
   */
  async #roomFor(tenant: string, host: string): Promise<Room> {
    const { kv, room } = this.#with;
    await room.requireServer(tenant, host);
    if ((await kv.get(hostKey(tenant, host))) !== undefined) return NO_CONDITION;
    const { most, limit } = await room.agents(tenant);
    if (most === Infinity) return NO_CONDITION;
    const guard = await kv.get(roomKey(tenant));
    const revision = guard?.revision ?? 0;
    if ((await this.enrolledHosts(tenant)).length >= most) throw full(limit, most);
    return {
      if: [{ key: roomKey(tenant), revision }],
      then: [{ kind: "put", key: roomKey(tenant), value: encodeJson(host) }],
      isLost: async () => ((await kv.get(roomKey(tenant)))?.revision ?? 0) !== revision,
    };
  }

  async #issue(wish: {
    request: SigningRequest;
    csr: Uint8Array;
    tenant: string;
    host: string;
    generation: string;
  }): Promise<UsedToken> {
    const certificate = await this.#with.authority.issueAgent(wish.request, wish);
    return {
      atMs: this.#with.runtime.clock.nowMs(),
      host: wish.host,
      request: digestOf(wish.csr),
      certificate: Buffer.from(certificate).toString("base64"),
    };
  }

  /**
   * Called after the transaction failed. If the token was used in the meantime, returns that use. Throws
   * `AppError("denied")` if it was revoked, and otherwise `conflict`, because the host is enrolled.
   */
  async #lost(key: string, host: string): Promise<UsedToken> {
    const entry = await this.#with.kv.get(key);
    if (!entry) throw endedToken();
    const { used } = decodeStored<StoredToken>(entry.value);
    if (used) return used;
    throw new AppError("conflict", `The host ${host} is enrolled already: ask for a token that names it.`);
  }

  #repeatable(used: UsedToken, csr: Uint8Array): UsedToken {
    const recent = this.#with.runtime.clock.nowMs() - used.atMs < JOIN_TOKEN_REPEAT_MS;
    if (recent && used.request === digestOf(csr)) return used;
    throw new AppError("conflict", "The join token was used already: ask for a new one.");
  }

  async #answer(token: StoredToken, used: UsedToken, secret: string): Promise<EnrolAnswer> {
    await this.#with.onEnrolled(token.tenant, used.host);
    const answer = {
      certificate: used.certificate,
      authorities: this.#with.authority.certificates.map((one) => Buffer.from(one).toString("base64")),
      host: used.host,
      tenant: token.tenant,
      agentPort: this.#with.agentPort(),
      controllers: [...this.#with.controllers()],
    };
    return { ...answer, proof: mac(secret, answerProofText(answer)).toString("base64") };
  }
}

function roomKey(tenant: string): string {
  return `enrolment/room/${tenant}`;
}

function hostKey(tenant: string, host: string): string {
  return `${HOSTS}${tenant}/${host}`;
}

function mac(secret: string, bytes: Uint8Array): Buffer {
  return createHmac("sha256", secret).update(bytes).digest();
}

function provenBy(secret: string, csr: Uint8Array, proof: string): boolean {
  const given = Buffer.from(proof, "base64");
  const right = mac(secret, csr);
  return given.length === right.length && timingSafeEqual(given, right);
}

function digestOf(csr: Uint8Array): string {
  return createHash("sha256").update(csr).digest("hex");
}

/** The agent that was given another name would otherwise take the place of the token's host. */
function requireName({ host }: StoredToken, { commonName = "" }: SigningRequest): void {
  if (host === undefined || host === commonName) return;
  throw new AppError(
    "invalid",
    `The join token is for the host ${host}, but the agent is named ${commonName}: start it with the name ${host}, or ask for a token for ${commonName}.`,
  );
}

/** Tells the agent why its certificate does not belong to the current enrolment of the host. */
function reasonOf(host: string, current: StoredEnrolment | undefined): string {
  const keeps = "This agent keeps its data, and delivers it after it has enrolled with a new join token.";
  if (!current) return `The host ${host} was removed, so its certificate is no longer good. ${keeps}`;
  const at = current.atMs === undefined ? "" : ` at ${new Date(current.atMs).toISOString()}`;
  return `An agent enrolled as ${host} again${at}, so this certificate is no longer good. ${keeps}`;
}

function endedToken(): AppError {
  return new AppError("denied", "The join token has expired or was revoked: ask for a new one.");
}

function wrongToken(): AppError {
  return new AppError("denied", "The join token is wrong.");
}
