import { createHash, createHmac, randomBytes } from "node:crypto";
import { credentials } from "@grpc/grpc-js";
import { pino } from "pino";
import { createKeyPem, createRequest } from "../../../agent/identity/csr.ts";
import { answerProofText, parseJoinToken, type EnrolAnswer } from "../../../common/agent/enrolment.ts";
import type { AuditEntry } from "../../../controller/areas/audit/index.ts";
import { Membership } from "../../../controller/areas/cluster/index.ts";
import { NotificationHub } from "../../../controller/areas/notifications/index.ts";
import {
  hostClasses,
  HostService,
  ownAddresses,
  type DesiredStateSource,
  type EntrySink,
  type EntrySource,
  type HostServiceDependencies,
} from "../../../controller/areas/hosts/index.ts";
import { ObjectService } from "../../../controller/areas/objects/index.ts";
import { ROLES, type Principal, type RoleName } from "../../../controller/areas/permissions/index.ts";
import { QueryService, visibleObjects } from "../../../controller/areas/query/index.ts";
import type { AgentServer, PeerLinks } from "../../../controller/grpc/index.ts";
import type { Runtime } from "../../../controller/runtime.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import {
  AgentFrame,
  AgentLinkClient,
  type Batch,
  type ControllerFrame,
  type Entry,
  type Hello,
  type Pin,
  type Told,
} from "../../../proto/gen/agent/v1/agent.ts";
import { realClock } from "../time/clock.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { peerLinks } from "../../../controller/assembly/peer-links.ts";
import { agentServer, followControllers, peersThrough, serveEnrolment } from "./host-servers.ts";
import { TEST_SECRETS } from "../time/runtime.ts";

/** A sink in memory that acknowledges everything; it passes entries of commands on to the commands. */
export class MemorySink implements EntrySink {
  readonly entries: { readonly source: EntrySource; readonly entry: Entry }[] = [];
  readonly #through = new Map<string, number>();
  readonly #commands: () => EntrySinkPart;
  /** `accept` waits for this promise, so that a test can delay it. */
  gate: Promise<void> = Promise.resolve();

  constructor(commands: () => EntrySinkPart) {
    this.#commands = commands;
  }

  acknowledged(source: EntrySource): Promise<number> {
    return Promise.resolve(this.#through.get(source.streamId) ?? 0);
  }

  told(): Promise<Told> {
    return Promise.resolve({ time: { us: 1, proof: "" }, rules: [] });
  }

  async accept(source: EntrySource, batches: readonly Batch[]): Promise<void> {
    await this.gate;
    const entries = batches.flatMap((batch) => batch.entries);
    await this.#commands().accept(source, entries);
    for (const entry of entries) this.entries.push({ source, entry });
    this.#through.set(source.streamId, entries.at(-1)?.sequence ?? 0);
  }
}

interface EntrySinkPart {
  accept(source: EntrySource, entries: readonly Entry[]): Promise<unknown>;
}

export interface TestHosts extends AsyncDisposable {
  readonly engine: TestEngine;
  readonly objects: ObjectService;
  readonly hosts: HostService;
  readonly server: AgentServer;
  readonly sink: MemorySink;
  readonly controllerId: string;
  readonly membership: Membership;
  readonly notifications: NotificationHub;
  /** Audit entries written by the hosts. */
  readonly audited: readonly AuditEntry[];
  readonly desired: Map<string, Awaited<ReturnType<DesiredStateSource["desired"]>>>;
  readonly agentPort: number;
  /** Base URL of a server that accepts enrolments. */
  readonly url: string;
  readonly runtime: Runtime;
  principal(tenant?: string, role?: RoleName): Principal;
  /** Returns a token, a key and a certificate. */
  enrol(host: string, tenant?: string): Promise<TestIdentity>;
}

export interface TestIdentity {
  readonly answer: EnrolAnswer;
  readonly keyPem: string;
}

export interface TestHostsOptions
  extends Partial<
    Pick<
      HostServiceDependencies,
      "leads" | "sshTrustFirstKey" | "agentCertificateLifetimeMs" | "runtime" | "limits" | "onChanged"
    >
  > {
  readonly sessionsMax?: number;
  /** Wraps the engine's stores for the hosts. */
  readonly stores?: (engine: TestEngine) => Stores;
  /** Runs as another controller on the stores of an earlier one. */
  readonly beside?: TestHosts;
}

export function testPrincipalOf(tenant = "matrix", role: RoleName = "administrator"): Principal {
  const traceparent = `00-${randomBytes(16).toString("hex")}-${randomBytes(8).toString("hex")}-01`;
  return { tenant, ospace: `/${tenant}`, user: role, groups: [], ...ROLES[role], traceparent };
}

/** The area hosts with its agent port, on the embedded engine. */
export async function openTestHosts(options: TestHostsOptions = {}): Promise<TestHosts> {
  const runtime = options.runtime ?? realRuntime();
  const engine = options.beside?.engine ?? (await openTestEngine({ clock: realClock }));
  const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  const query = new QueryService({ objects, runtime });
  const desired: TestHosts["desired"] = options.beside?.desired ?? new Map();
  let port = 0;
  const controllerId = randomBytes(6).toString("hex");
  const stores = options.stores?.(engine) ?? engine;
  const membership = await Membership.open({ kv: (await stores.system()).kv, runtime, controllerId, version: "test" });
  const notifications = new NotificationHub({ log: runtime.log });
  const publicNames = ["localhost"];
  const agentPort = () => port;
  const audited: AuditEntry[] = [];
  const sink: MemorySink = new MemorySink(() => hosts.agents.commands);
  const hosts: HostService = await HostService.open({
    ...options,
    stores,
    objects,
    query,
    runtime,
    sink,
    controllerId,
    controllers: membership,
    audit: { write: (entry) => Promise.resolve(void audited.push(entry)) },
    publicNames,
    agentPort,
    peers: peersThrough(() => links),
    otherAddresses: () => membership.others().map(({ addresses }) => addresses),
    secrets: TEST_SECRETS,
    actAs: (tenant) => Promise.resolve(testPrincipalOf(tenant)),
    desired: { desired: async (tenant, host) => desired.get(`${tenant}/${host}`) ?? { revision: 0, policies: [] } },
  });
  if (!options.beside) for (const definition of hostClasses(hosts)) objects.registerSystemClass(definition);
  const links: PeerLinks = peerLinks({ runtime, membership, hosts, notifications });
  const server = agentServer({ runtime, hosts, notifications }, options.sessionsMax);
  port = await server.listen("127.0.0.1", 0);
  const enrolment = await serveEnrolment(hosts);
  followControllers({ membership, links, hosts });
  hosts.start();
  await membership.announce({ addresses: ownAddresses({ publicNames, agentPort }), url: enrolment.url });
  return {
    engine,
    objects,
    hosts,
    server,
    sink,
    audited,
    desired,
    runtime,
    controllerId,
    membership,
    notifications,
    agentPort: port,
    url: enrolment.url,
    principal: testPrincipalOf,
    enrol: (host, tenant) => enrolAs(hosts, { host, principal: testPrincipalOf(tenant) }),
    [Symbol.asyncDispose]: async () => {
      enrolment.close();
      links.close();
      await membership.close();
      await hosts.close();
      await server.close();
      await objects.close();
      if (!options.beside) await engine.close();
    },
  };
}

function realRuntime(): Runtime {
  return {
    clock: realClock,
    random: { next: () => Math.random(), bytes: (count) => new Uint8Array(randomBytes(count)) },
    log: pino({ level: process.env.ODP_TEST_LOG ?? "silent" }),
  };
}

export function enrolRequest(token: string, csr: Uint8Array): { id: string; csr: string; proof: string } {
  const { id, secret } = parseJoinToken(token);
  return {
    id,
    csr: Buffer.from(csr).toString("base64"),
    proof: createHmac("sha256", secret).update(csr).digest("base64"),
  };
}

/** Returns true if the answer was made by the issuer of the token. */
export function answerProven(token: string, answer: EnrolAnswer): boolean {
  return (
    createHmac("sha256", parseJoinToken(token).secret).update(answerProofText(answer)).digest("base64") === answer.proof
  );
}

async function enrolAs(
  hosts: HostService,
  who: { readonly host: string; readonly principal: Principal },
): Promise<TestIdentity> {
  const keyPem = createKeyPem();
  const { token } = await hosts.tokens.create(who.principal, { host: who.host });
  const answer = await hosts.agents.enrol(enrolRequest(token, createRequest(keyPem, who.host)));
  return { answer, keyPem };
}

export function pemOf(derBase64: string): string {
  return `-----BEGIN CERTIFICATE-----\n${derBase64.match(/.{1,64}/g)?.join("\n")}\n-----END CERTIFICATE-----\n`;
}

export function helloOf(overrides: Partial<Hello> = {}): Hello {
  return {
    protocol: 1,
    agentVersion: "test",
    streamId: randomBytes(12).toString("hex"),
    firstSequence: 1,
    facts: undefined,
    desiredRevision: 0,
    highestEpoch: 0,
    tunnels: false,
    ...overrides,
  };
}

type Frame = NonNullable<ControllerFrame["frame"]>;
type FrameOf<C extends Frame["$case"]> = Extract<Frame, { $case: C }>["value"];

/** A minimal agent over real TLS: sends the given frames and stores those it receives. */
export class BareAgent {
  readonly client: AgentLinkClient;
  readonly frames: Frame[] = [];
  readonly #call: ReturnType<AgentLinkClient["session"]>;
  readonly #waiting = new Set<() => void>();
  ended = false;
  error: (Error & { readonly code?: number }) | undefined;

  constructor(port: number, identity: TestIdentity, options: { readonly reads?: boolean } = {}) {
    const authorities = Buffer.from(identity.answer.authorities.map(pemOf).join(""));
    const secure = credentials.createSsl(
      authorities,
      Buffer.from(identity.keyPem),
      Buffer.from(pemOf(identity.answer.certificate)),
    );
    this.client = new AgentLinkClient(`localhost:${port}`, secure, { "grpc.use_local_subchannel_pool": 1 });
    this.#call = this.client.session();
    if (options.reads ?? true) {
      this.#call.on("data", (frame: ControllerFrame) => {
        if (frame.frame) this.frames.push(frame.frame);
        this.#wake();
      });
    }
    this.#call.on("end", () => this.#end());
    this.#call.on("error", (error) => {
      this.error = error;
      this.#end();
    });
  }

  /** Omitted members of a frame are empty. */
  send(frame: Parameters<typeof AgentFrame.fromPartial>[0]["frame"]): void {
    this.#call.write(AgentFrame.fromPartial({ frame }));
  }

  /** Pins the entries as an agent does, and sends them in one batch. */
  async sendPinned(streamId: string, entries: Entry[], more: Partial<Pick<Batch, "missing">> = {}): Promise<void> {
    this.send({ $case: "batch", value: { streamId, entries, pin: await this.pin(entries), ...more } });
  }

  async pin(entries: readonly Entry[]): Promise<Pin> {
    const rules = new Set(entries.flatMap(({ body }) => (body?.$case === "records" ? body.value.rule : [])));
    this.send({ $case: "ask", value: { rules: [...rules] } });
    const { time, rules: told } = await this.next("told");
    return { writeUs: time?.us ?? 0, told: time, rules: told };
  }

  hello(overrides: Partial<Hello> = {}): Promise<FrameOf<"welcome">> {
    this.send({ $case: "hello", value: helloOf(overrides) });
    return this.next("welcome");
  }

  /** Returns the next frame of that kind; frames before it stay for other calls. Fails if the stream ends first. */
  async next<C extends Frame["$case"]>($case: C): Promise<FrameOf<C>> {
    for (;;) {
      const at = this.frames.findIndex((frame) => frame.$case === $case);
      if (at >= 0) return this.frames.splice(at, 1)[0]?.value as FrameOf<C>;
      if (this.ended)
        throw new Error(`The stream ended without ${$case}: ${this.error?.message ?? JSON.stringify(this.frames)}`);
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  async end(): Promise<void> {
    while (!this.ended) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  /** Returns the whole content of a digest. */
  async fetch(digest: string): Promise<Buffer> {
    const chunks: Buffer[] = [];
    for await (const chunk of this.client.fetch({ digest, offset: 0 }) as AsyncIterable<{ data: Buffer }>)
      chunks.push(chunk.data);
    return Buffer.concat(chunks);
  }

  close(): void {
    this.#call.cancel();
    this.client.close();
  }

  #end(): void {
    this.ended = true;
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}

export function sha256(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}
