import "reflect-metadata";
import { createHmac, randomBytes, webcrypto } from "node:crypto";
import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from "node:http";
import { Server, ServerCredentials, status, type ServerDuplexStream, type ServerWritableStream } from "@grpc/grpc-js";
import * as x509 from "@peculiar/x509";
import {
  answerProofText,
  printJoinToken,
  type EnrolAnswer,
  type EnrolRequest,
} from "../../../common/agent/enrolment.ts";
import {
  AgentLinkService,
  type AgentFrame,
  type Ask,
  type Batch,
  type Command,
  type CommandState,
  type ControllerFrame,
  type DesiredState,
  type Entry,
  type FetchChunk,
  type FetchRequest,
  type Hello,
  type Welcome,
} from "../../../proto/gen/agent/v1/agent.ts";
import { eventually } from "../programs/programs.ts";

const CURVE = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const DAY_MS = 86_400_000;
const DEADLINE_MS = 50_000;

type Body = NonNullable<Entry["body"]>;
type ValueOf<C extends Body["$case"]> = Extract<Body, { $case: C }>["value"];
type Call = ServerDuplexStream<AgentFrame, ControllerFrame>;

/** The controller's side of the agent protocol: real TLS and frames, simple behaviour. Its data outlives sessions. */
export class FakeController {
  readonly contents = new Map<string, Buffer>();
  readonly hellos: Hello[] = [];
  readonly states: CommandState[] = [];
  /** Entries by stream and sequence, each once; `received` counts all arrivals. */
  readonly entries = new Map<string, Entry>();
  received = 0;
  /** Refusals of the next enrolment and of the next session. */
  refuseEnrolment: { code: string; message: string } | undefined;
  refuseSession: { code: string; message: string } | undefined;
  /** False: batches are stored but not acknowledged. */
  acknowledging = true;
  certificateLifeMs = DAY_MS;
  spoilProof = false;
  /** Called with every received frame of an agent. */
  heard: ((frame: AgentFrame["frame"]) => void) | undefined;
  desired: DesiredState | undefined;
  welcome: Partial<Welcome> = {};
  readonly token = { id: "t1", secret: randomBytes(24).toString("base64url") };
  readonly #acknowledged = new Map<string, number>();
  readonly #calls: Call[] = [];
  #epoch = 0;
  #http: HttpServer | undefined;
  #grpc: Server | undefined;
  #authority: { certificate: x509.X509Certificate; keys: webcrypto.CryptoKeyPair } | undefined;
  #port = 0;
  #agentPort = 0;

  static async start(): Promise<FakeController> {
    const controller = new FakeController();
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
    controller.#authority = { certificate, keys };
    await controller.#startHttp();
    await controller.listen();
    return controller;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get joinToken(): string {
    return printJoinToken(this.token);
  }

  get sessions(): number {
    return this.#calls.length;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** Opens the agent port; after `deafen` the same one again. */
  async listen(): Promise<void> {
    const authority = this.#authority;
    if (!authority) throw new Error("not started");
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
    const pair = { private_key: Buffer.from(key), cert_chain: Buffer.from(certificate.toString("pem")) };
    const server = new Server();
    server.addService(AgentLinkService, {
      session: (call: Call) => this.#session(call),
      fetch: (call: ServerWritableStream<FetchRequest, FetchChunk>) => this.#fetch(call),
    });
    const credentials = ServerCredentials.createSsl(Buffer.from(authority.certificate.toString("pem")), [pair], true);
    this.#agentPort = await new Promise((resolve, reject) => {
      server.bindAsync(`127.0.0.1:${this.#agentPort}`, credentials, (error, port) =>
        error ? reject(error) : resolve(port),
      );
    });
    this.#grpc = server;
  }

  /** Cuts every session and closes the agent port. */
  deafen(): void {
    this.#grpc?.forceShutdown();
    this.#calls.length = 0;
  }

  async stop(): Promise<void> {
    this.deafen();
    this.#http?.closeAllConnections();
    await new Promise((resolve) => this.#http?.close(resolve));
  }

  send(frame: NonNullable<ControllerFrame["frame"]>): void {
    const call = this.#calls.at(-1);
    if (!call) throw new Error("no agent is connected");
    call.write({ frame });
  }

  want(state: DesiredState): void {
    this.desired = state;
    if (this.#calls.length > 0) this.send({ $case: "desired", value: state });
  }

  command(command: Pick<Command, "id" | "body"> & Partial<Command>): void {
    const sentMs = Date.now();
    this.send({
      $case: "command",
      value: { epoch: this.#epoch, sentMs, deadlineMs: sentMs + 30_000, traceparent: "", ...command },
    });
  }

  /** Acknowledges everything received, regardless of `acknowledging`. */
  acknowledgeAll(): void {
    for (const [stream, through] of this.#acknowledged)
      this.send({ $case: "acknowledge", value: { streamId: stream, throughSequence: through } });
  }

  /** Bodies of one kind in the order of their sequence. */
  bodies<C extends Body["$case"]>(kind: C): ValueOf<C>[] {
    const all = [...this.entries.values()].sort((a, b) => a.sequence - b.sequence);
    return all.filter(({ body }) => body?.$case === kind).map(({ body }) => body?.value as ValueOf<C>);
  }

  records(policy?: string): string[] {
    const entries = this.bodies("records").filter((entry) => policy === undefined || entry.policy === policy);
    return entries.flatMap(({ records }) => records.map((record) => record.toString()));
  }

  connected(sessions = 1): Promise<true> {
    return eventually(`${sessions} sessions`, DEADLINE_MS, () =>
      this.hellos.length >= sessions && this.#calls.length > 0 ? true : undefined,
    );
  }

  until(what: string, probe: () => boolean, deadlineMs = DEADLINE_MS): Promise<true> {
    return eventually(what, deadlineMs, () => (probe() ? true : undefined));
  }

  #session(call: Call): void {
    call.on("data", ({ frame }: AgentFrame) => {
      this.heard?.(frame);
      this.#take(call, frame).catch((error: unknown) => call.destroy(error instanceof Error ? error : undefined));
    });
    call.on("error", () => undefined);
    call.on("end", () => call.end());
    call.on("close", () => this.#forget(call));
    call.on("cancelled", () => this.#forget(call));
  }

  #forget(call: Call): void {
    const at = this.#calls.indexOf(call);
    if (at >= 0) this.#calls.splice(at, 1);
  }

  async #take(call: Call, frame: AgentFrame["frame"]): Promise<void> {
    if (frame?.$case === "hello") this.#greet(call, frame.value);
    else if (frame?.$case === "batch") this.#store(call, frame.value);
    else if (frame?.$case === "ask") this.#tell(call, frame.value);
    else if (frame?.$case === "command") this.states.push(frame.value);
    else if (frame?.$case === "renew") await this.#renew(call, frame.value.csr);
    else if (frame?.$case === "heartbeat")
      call.write({ frame: { $case: "heartbeat", value: { timeMs: Date.now(), values: {} } } });
  }

  #greet(call: Call, hello: Hello): void {
    this.hellos.push(hello);
    if (this.refuseSession) {
      call.write({ frame: { $case: "refused", value: { askAgain: false, ...this.refuseSession } } });
      call.end();
      return;
    }
    this.#calls.push(call);
    this.#epoch = Math.max(this.#epoch, hello.highestEpoch) + 1;
    const acknowledged = this.#acknowledged.get(hello.streamId) ?? 0;
    const controllers = [`127.0.0.1:${this.#agentPort}`];
    const value = {
      epoch: this.#epoch,
      acknowledged,
      heartbeatMs: 1_000,
      windowEntries: 64,
      controllers,
      ...this.welcome,
    };
    call.write({ frame: { $case: "welcome", value } });
    if (this.desired && this.desired.revision !== hello.desiredRevision)
      call.write({ frame: { $case: "desired", value: this.desired } });
  }

  #tell(call: Call, { rules, last }: Ask): void {
    const time = { us: Math.max(Date.now() * 1_000, last?.us ?? 0), proof: "time" };
    const told = rules.map((rule) => ({ rule, digest: "digest", error: "", proof: "rule" }));
    call.write({ frame: { $case: "told", value: { time, rules: told } } });
  }

  #store(call: Call, { streamId: stream, entries }: Batch): void {
    for (const entry of entries) {
      this.received++;
      const through = this.#acknowledged.get(stream) ?? 0;
      if (entry.sequence <= through) continue;
      if (through > 0 && entry.sequence !== through + 1)
        throw new Error(`a hole in the sequence: ${entry.sequence} after ${through}`);
      this.entries.set(`${stream}:${entry.sequence}`, entry);
      this.#acknowledged.set(stream, entry.sequence);
    }
    const throughSequence = this.#acknowledged.get(stream) ?? 0;
    if (this.acknowledging)
      call.write({ frame: { $case: "acknowledge", value: { streamId: stream, throughSequence } } });
  }

  #fetch(call: ServerWritableStream<FetchRequest, FetchChunk>): void {
    const content = this.contents.get(call.request.digest);
    if (!content) {
      call.emit("error", { code: status.NOT_FOUND, details: "no such content" });
      return;
    }
    for (let at = call.request.offset; at < content.length; at += 1_000)
      call.write({ data: content.subarray(at, at + 1_000) });
    call.end();
  }

  async #renew(call: Call, csr: Buffer): Promise<void> {
    const certificate = await this.#certify(csr);
    call.write({
      frame: {
        $case: "renewed",
        value: { certificate: Buffer.from(certificate.rawData), authorities: [this.#authorityDer()] },
      },
    });
  }

  async #certify(csr: Buffer): Promise<x509.X509Certificate> {
    const request = new x509.Pkcs10CertificateRequest(new Uint8Array(csr));
    if (!(await request.verify())) throw new Error("the request is not signed by its key");
    return this.#issue(await request.publicKey.export(CURVE, ["verify"]), {
      name: request.subject,
      lifeMs: this.certificateLifeMs,
      extensions: [],
    });
  }

  #issue(
    publicKey: webcrypto.CryptoKey,
    { name, lifeMs, extensions }: { name: string; lifeMs: number; extensions: x509.Extension[] },
  ): Promise<x509.X509Certificate> {
    const authority = this.#authority;
    if (!authority) throw new Error("not started");
    return x509.X509CertificateGenerator.create({
      subject: name,
      issuer: authority.certificate.subject,
      notBefore: new Date(Date.now() - 1_000),
      notAfter: new Date(Date.now() + lifeMs),
      signingKey: authority.keys.privateKey,
      publicKey,
      signingAlgorithm: CURVE,
      extensions,
    });
  }

  #authorityDer(): Buffer {
    return Buffer.from(this.#authority?.certificate.rawData ?? new ArrayBuffer(0));
  }

  async #startHttp(): Promise<void> {
    const server = createServer((request, response) => {
      this.#enrol(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    this.#port = typeof address === "object" && address ? address.port : 0;
    this.#http = server;
  }

  async #enrol(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (this.refuseEnrolment) {
      response.writeHead(500).end(JSON.stringify({ status: "error", ...this.refuseEnrolment }));
      return;
    }
    const body: EnrolRequest = JSON.parse(Buffer.concat(chunks).toString());
    const csr = Buffer.from(body.csr, "base64");
    if (body.id !== this.token.id || body.proof !== this.#mac(csr)) throw new Error("the proof is wrong");
    const answer = {
      certificate: Buffer.from((await this.#certify(csr)).rawData).toString("base64"),
      authorities: [this.#authorityDer().toString("base64")],
      agentPort: this.#agentPort,
      controllers: [],
      host: "web-1",
      tenant: "matrix",
    };
    const message: EnrolAnswer = { ...answer, proof: this.#mac(this.spoilProof ? csr : answerProofText(answer)) };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ status: "ok", message }));
  }

  #mac(data: Uint8Array): string {
    return createHmac("sha256", this.token.secret).update(data).digest("base64");
  }
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(CURVE, true, ["sign", "verify"]);
}
