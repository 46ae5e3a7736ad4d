import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { WebSocket } from "ws";
import { AGENT_NODE_FLAGS } from "../../common/agent/node-flags.ts";
import type { ClusterSettings } from "../../deploy/local/cluster.ts";
import { ClusterAdmin } from "../helpers/cluster/admin.ts";
import { eventually, freePort, Program, type ProgramOptions } from "../helpers/programs/programs.ts";

/** A controller and its agents as processes, called as clients call them. */

const CALL_DEADLINE_MS = 60_000;

export interface Envelope {
  readonly status: string;
  readonly message: unknown;
  readonly meta?: { readonly type?: string };
  readonly code?: string;
}

type Settings = Readonly<Record<string, string>>;

export class Installation {
  readonly folder: string;
  readonly #settings: Settings;
  readonly #root: string;
  readonly port: number;
  #controller: Program | undefined;
  readonly #agents = new Map<string, Program>();
  #session = "";

  private constructor(folder: string, port: number, { settings, root }: { settings: Settings; root: string }) {
    this.folder = folder;
    this.port = port;
    this.#settings = settings;
    this.#root = root;
  }

  /**
   * Settings select the engine; the rest is the same: no demonstration, no local agent, a known password. `root` is the
   * checkout whose built programs are started; another one is for tests of another version.
   */
  static async start(settings: Settings, root = "."): Promise<Installation> {
    const installation = await Installation.begin(settings, root);
    await installation.ready();
    return installation;
  }

  /** As `start`, without waiting until the controller is ready. */
  static async begin(settings: Settings, root = "."): Promise<Installation> {
    const folder = await mkdtemp(join(tmpdir(), "odp-e2e-"));
    const merged = {
      ODP_DATA_DIR: join(folder, "data"),
      ODP_SECRET_KEY_FILE: join(folder, "secret.key"),
      ODP_ADMIN_PASSWORD: "correct horse battery",
      ODP_DEMO: "0",
      ODP_LOCAL_AGENT: "0",
      ODP_AGENT_PORT: String(await freePort()),
      ...settings,
    };
    const port = Number(settings["ODP_PORT"] ?? (await freePort()));
    const installation = new Installation(folder, port, { settings: merged, root });
    await writeFile(join(folder, "secret.key"), `odp-key-1:${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
    installation.#begin({});
    return installation;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get controller(): Program {
    if (!this.#controller) throw new Error("The controller is not running.");
    return this.#controller;
  }

  agent(host: string): Program {
    const agent = this.#agents.get(host);
    if (!agent) throw new Error(`There is no agent ${host}.`);
    return agent;
  }

  async startController(changed: Settings = {}): Promise<void> {
    this.#begin(changed);
    await this.ready();
  }

  async ready(): Promise<void> {
    await this.controller.printed(/is ready/);
  }

  /** As `startController`, without waiting until it is ready. */
  beginController(options: ProgramOptions): void {
    this.#begin({}, options);
  }

  #begin(changed: Settings, options?: ProgramOptions): void {
    const settings = { ...this.#environment(), ...changed };
    this.#controller = new Program("controller", this.#program("controller"), settings, options);
    this.#session = "";
  }

  #program(name: "controller" | "agent"): string {
    return join(this.#root, `dist/${name}.js`);
  }

  #environment(): Settings {
    return { ODP_PORT: String(this.port), ODP_HTTP_URL: this.url, ...this.#settings };
  }

  /** Output of a command of the controller's program, which must succeed. An embedded store must not be open. */
  async command(...words: readonly string[]): Promise<string> {
    const env = { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...this.#environment() };
    const options = { env, timeout: CALL_DEADLINE_MS };
    return (await promisify(execFile)(process.execPath, [this.#program("controller"), ...words], options)).stdout;
  }

  /** The first start needs a token; later ones find the agent's stored identity. */
  async startAgent(host: string, token?: string, options?: ProgramOptions): Promise<void> {
    const dir = join(this.folder, `agent-${host}`);
    await mkdir(dir, { recursive: true });
    const environment = {
      ODP_AGENT_CONTROLLER: this.url,
      ODP_AGENT_DIR: dir,
      ODP_AGENT_NAME: host,
      ...(token ? { ODP_AGENT_TOKEN: token } : {}),
    };
    const asDocumented = { flags: AGENT_NODE_FLAGS, ...options };
    this.#agents.set(host, new Program(`agent ${host}`, this.#program("agent"), environment, asDocumented));
    await eventually(`the agent of ${host} is online`, CALL_DEADLINE_MS, async () => {
      if (!this.agent(host).running) throw new Error(`The agent of ${host} ended:\n${this.agent(host).output}`);
      const { status, code, message } = await this.call("GET", "/host?status=true");
      // A member of the ring may just have been lost. The call reports that, and is repeated.
      if (status !== "ok" && code === "unavailable") return undefined;
      return (message as { host: string }[]).some((row) => row.host === host) || undefined;
    });
  }

  async enrol(host: string, options?: ProgramOptions): Promise<void> {
    await this.ok("POST", "/host", JSON.stringify({ host, isagent: 1 }));
    const made = (await this.ok("POST", "/agent/token", JSON.stringify({ host }))) as { token: string };
    await this.startAgent(host, made.token, options);
  }

  /** Signed in by a session like the clients, with its id in the query. */
  async call(method: string, path: string, body?: string | FormData | URLSearchParams): Promise<Envelope> {
    const address = `${this.url}${path}${path.includes("?") ? "&" : "?"}sessionid=${await this.session()}`;
    const response = await fetch(address, {
      method,
      ...(body === undefined ? {} : { body }),
      signal: AbortSignal.timeout(CALL_DEADLINE_MS),
    });
    return (await response.json()) as Envelope;
  }

  /** Makes a call that must succeed, and returns its message. */
  async ok(method: string, path: string, body?: string | FormData | URLSearchParams): Promise<unknown> {
    const envelope = await this.call(method, path, body);
    if (envelope.status !== "ok")
      throw new Error(`${method} ${path}: ${JSON.stringify(envelope)}\n${this.controller.output.slice(-5_000)}`);
    return envelope.message;
  }

  async mql(text: string): Promise<Record<string, unknown>[]> {
    return (await this.ok("POST", "/mxobject/mql", new URLSearchParams({ mql: text, meta: "true" }))) as Record<
      string,
      unknown
    >[];
  }

  /** Collects the frames of a subject from now on. */
  async listen(subject: string): Promise<{ readonly frames: Record<string, string>[]; close(): void }> {
    const socket = new WebSocket(`ws://127.0.0.1:${this.port}/websocket/${subject}?sessionid=${await this.session()}`);
    const frames: Record<string, string>[] = [];
    socket.on("message", (data: Buffer) => frames.push(JSON.parse(data.toString()) as Record<string, string>));
    await new Promise<void>((resolve, reject) => socket.once("open", () => resolve()).once("error", reject));
    return { frames, close: () => socket.close(1000, "close") };
  }

  async stop(): Promise<void> {
    for (const agent of this.#agents.values()) await agent.kill("SIGTERM");
    await this.#controller?.kill("SIGTERM");
    await rm(this.folder, { recursive: true, force: true });
    await this.#removeFromCluster();
  }

  async #removeFromCluster(): Promise<void> {
    const {
      ODP_CLUSTER_PREFIX: prefix,
      ODP_ETCD_ENDPOINTS: etcd = "",
      ODP_CASSANDRA_CONTACT_POINTS: cassandra = "",
      ODP_CASSANDRA_DATACENTER: datacenter = "",
    } = this.#settings;
    if (prefix === undefined) return;
    const admin = await ClusterAdmin.connect({
      etcdEndpoints: etcd.split(","),
      cassandraContactPoints: cassandra.split(","),
      cassandraDatacenter: datacenter,
    });
    await admin.remove(prefix);
    await admin.close();
  }

  async session(): Promise<string> {
    if (this.#session === "") this.#session = await this.signIn("matrix");
    return this.#session;
  }

  /** A session of its administrator. */
  async signIn(company: string, password = this.#settings["ODP_ADMIN_PASSWORD"] ?? ""): Promise<string> {
    const envelope = await this.trySignIn(company, password);
    if (envelope.status !== "ok") throw new Error(`Signing in: ${JSON.stringify(envelope)}`);
    return String(envelope.message);
  }

  async trySignIn(company: string, password: string): Promise<Envelope> {
    const form = new URLSearchParams({ company, username: "admin", password });
    const response = await fetch(`${this.url}/user/signin`, {
      method: "POST",
      body: form,
      signal: AbortSignal.timeout(CALL_DEADLINE_MS),
    });
    return (await response.json()) as Envelope;
  }
}

/** Settings for the cluster engine, with a new name space that has no data of an earlier run. */
export function clusterVariables(settings: ClusterSettings): Readonly<Record<string, string>> {
  return {
    ODP_STORE: "cluster",
    ODP_ETCD_ENDPOINTS: settings.etcdEndpoints.join(","),
    ODP_CASSANDRA_CONTACT_POINTS: settings.cassandraContactPoints.join(","),
    ODP_CASSANDRA_DATACENTER: settings.cassandraDatacenter,
    ODP_CLUSTER_PREFIX: `e2e${randomBytes(5).toString("hex")}`,
  };
}

export function form(
  fields: Readonly<Record<string, string | readonly string[]>>,
  files: Readonly<Record<string, Uint8Array>> = {},
): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    for (const one of typeof value === "string" ? [value] : value) data.append(name, one);
  }
  for (const [name, bytes] of Object.entries(files)) data.append("uploadfile", new Blob([new Uint8Array(bytes)]), name);
  return data;
}
