import { createHmac, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from "node:http";
import { Server, status, type ServerDuplexStream, type ServerWritableStream } from "@grpc/grpc-js";
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
  type FetchChunk,
  type FetchRequest,
  type Hello,
  type Welcome,
} from "../../../proto/gen/agent/v1/agent.ts";
import { eventually } from "../programs/programs.ts";
import { FakeAuthority } from "./fake-authority.ts";
import { type EntryBody, ReceivedEntries, type ValueOf } from "./received-entries.ts";

const DAY_MS = 86_400_000;
const DEADLINE_MS = 50_000;

type Call = ServerDuplexStream<AgentFrame, ControllerFrame>;

/** The controller's side of the agent protocol: real TLS and frames, simple behaviour. Its data outlives sessions. */
export class FakeController {
  readonly contents = new Map<string, Buffer>();
  readonly hellos: Hello[] = [];
  readonly states: CommandState[] = [];
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
  /** The token that is taken; another one makes the former unknown. */
  token = { id: "t1", secret: randomBytes(24).toString("base64url") };
  readonly #authority: FakeAuthority;
  readonly #entries = new ReceivedEntries();
  readonly #calls: Call[] = [];
  #epoch = 0;
  #http: HttpServer | undefined;
  #grpc: Server | undefined;
  #port = 0;
  #agentPort = 0;

  private constructor(authority: FakeAuthority) {
    this.#authority = authority;
  }

  static async start(): Promise<FakeController> {
    const controller = new FakeController(await FakeAuthority.make());
    await controller.#startHttp();
    await controller.listen();
    return controller;
  }

  /** Number of entries that arrived, repeated ones too. */
  get received(): number {
    return this.#entries.arrivals;
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
    const credentials = await this.#authority.serverCredentials();
    const server = new Server();
    server.addService(AgentLinkService, {
      session: (call: Call) => this.#session(call),
      fetch: (call: ServerWritableStream<FetchRequest, FetchChunk>) => this.#fetch(call),
    });
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
    for (const [stream, through] of this.#entries.streams())
      this.send({ $case: "acknowledge", value: { streamId: stream, throughSequence: through } });
  }

  /** Bodies of one kind in the order of their sequence. */
  bodies<C extends EntryBody["$case"]>(kind: C): ValueOf<C>[] {
    return this.#entries.bodies(kind);
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
    const acknowledged = this.#entries.through(hello.streamId);
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

  #store(call: Call, batch: Batch): void {
    this.#entries.take(batch);
    const { streamId } = batch;
    const throughSequence = this.#entries.through(streamId);
    if (this.acknowledging) call.write({ frame: { $case: "acknowledge", value: { streamId, throughSequence } } });
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
    const certificate = await this.#authority.certify(csr, this.certificateLifeMs);
    call.write({ frame: { $case: "renewed", value: { certificate, authorities: [this.#authority.der] } } });
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
      certificate: (await this.#authority.certify(csr, this.certificateLifeMs)).toString("base64"),
      authorities: [this.#authority.der.toString("base64")],
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
