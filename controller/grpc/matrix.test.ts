import { credentials, loadPackageDefinition, status, type ChannelCredentials, type Client } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BareAgent, openTestHosts, pemOf, type TestHosts, type TestIdentity } from "../../test/helpers/hosts/hosts.ts";
import { TestAuthority } from "../../test/helpers/hosts/test-authority.ts";

/** Every call of the agent port, as a client that knows only the `.proto` files makes it, with every credential. */

type Message = Readonly<Record<string, unknown>>;
interface Call {
  on(event: "data", listener: (message: Message) => void): this;
  on(event: "error", listener: (error: Error & { readonly code: status }) => void): this;
  on(event: "end", listener: () => void): this;
  write?(message: Message): void;
  cancel(): void;
}
type Method = (this: Client, first?: Message) => Call;
interface Service {
  new (address: string, credential: ChannelCredentials, options: object): Client & Record<string, Method>;
  /** Absent for a message. */
  readonly service?: Readonly<Record<string, { readonly requestStream: boolean }>>;
}

const definitions = loadSync(["agent/v1/agent.proto", "peer/v1/peer.proto"], { includeDirs: ["proto"], oneofs: true });
const packages = loadPackageDefinition(definitions) as unknown as {
  readonly odp: Readonly<Record<string, { readonly v1: Readonly<Record<string, Service>> }>>;
};

let world: TestHosts;
let victim: BareAgent;
let digest = "";
const closers: (() => unknown)[] = [];
const given = new Map<string, ChannelCredentials>();

/** Credentials of the agent `victim` and of the calling controller, and all that must open nothing of them. */
beforeAll(async () => {
  world = await openTestHosts({ leads: () => Promise.resolve(true) });
  const { blobs } = await world.engine.tenant("matrix");
  ({ digest } = await blobs.put([Buffer.from("echo mine\n")], "test"));
  const file = { path: "run.sh", digest, size: 10, executable: true };
  const depot = { name: "d", version: "1.0.0", files: [file] };
  world.desired.set("matrix/victim", { revision: 1, policies: [{ name: "p", revision: 1, spec: "{}", depot }] });

  const authorities = Buffer.from(world.hosts.agents.authorities);
  const certified = ({ keyPem, answer }: TestIdentity): ChannelCredentials =>
    credentials.createSsl(authorities, Buffer.from(keyPem), Buffer.from(pemOf(answer.certificate)));
  const brief = await openTestHosts({ beside: world, agentCertificateLifetimeMs: 1 });
  const elsewhere = await TestAuthority.make();
  const stranger = await elsewhere.issue("client");
  given.set("another host's certificate", certified(await world.enrol("neighbour")));
  given.set("no credential", credentials.createSsl(authorities));
  given.set("a certificate of another authority", credentials.createSsl(authorities, stranger.key, stranger.cert));
  given.set("an expired certificate", certified(await brief.enrol("victim")));
  given.set("a revoked certificate", certified(await world.enrol("victim")));
  const identity = await world.enrol("victim");
  given.set("the certificate of a removed host", certified(await world.enrol("removed")));
  await world.hosts.remove(world.principal(), "removed");
  given.set("another tenant's certificate", certified(await world.enrol("abroad", "second")));
  given.set("the own certificate", certified(identity));
  const { certificate, key } = await world.hosts.peers.certificate();
  given.set(
    "a controller's certificate",
    credentials.createSsl(authorities, Buffer.from(key), Buffer.from(certificate)),
  );
  victim = new BareAgent(world.agentPort, identity);
  await victim.hello({ tunnels: true });
  await victim.next("desired");
  closers.push(
    () => victim.close(),
    () => brief[Symbol.asyncDispose](),
    () => world[Symbol.asyncDispose](),
  );
});
afterAll(async () => {
  for (const close of closers) await close();
});

interface Case {
  /** The first message; it asks for something of the host `victim`. */
  readonly ask: () => Promise<Message>;
  /** Member of the first message of the answer, if it has one. */
  readonly answer: string | undefined;
  /** Actions of the agent of `victim` during the call. */
  readonly meanwhile?: () => Promise<void>;
}

const PLACE = { tenant: "matrix", host: "victim", group: "g", address: "127.0.0.1", port: 1 };

/** The session is last, because it ends the one that the others need. */
const CALLS: Readonly<Record<string, Case>> = {
  "agent.AgentLink.Fetch": { ask: () => Promise.resolve({ digest }), answer: "data" },
  "agent.AgentLink.Tunnel": {
    async ask() {
      const stop = new AbortController();
      const opened = world.hosts.peers.openTunnel(PLACE, stop.signal);
      opened.then((stream) => stream.destroy()).catch(() => undefined);
      closers.unshift(() => stop.abort());
      return { opened: { id: (await victim.next("openTunnel")).id } };
    },
    answer: undefined,
  },
  "peer.PeerLink.Link": { ask: () => Promise.resolve({ hello: { protocol: 1 } }), answer: "beat" },
  "peer.PeerLink.Tunnel": {
    ask: () => Promise.resolve({ open: PLACE }),
    answer: "opened",
    async meanwhile() {
      const { id } = await victim.next("openTunnel");
      const tunnel = victim.client.tunnel().on("error", () => undefined);
      tunnel.write({ frame: { $case: "opened", value: { id, code: "unavailable", message: "closed" } } });
    },
  },
  "agent.AgentLink.Session": {
    ask: () => Promise.resolve({ hello: { protocol: 1, streamId: "matrix-of-calls", facts: { host: "victim" } } }),
    answer: "welcome",
  },
};

/** Credential that opens a call, by area. */
const OPENS: Readonly<Record<string, string>> = { agent: "the own certificate", peer: "a controller's certificate" };

interface Answer {
  readonly first: Message | undefined;
  readonly code: status;
}

/** Makes the call, and returns its first message and its end. A call that is served stays open, and is cancelled. */
async function answerOf(name: string, credential: ChannelCredentials): Promise<Answer> {
  const [area = "", service = "", method = ""] = name.split(".");
  const Stub = packages.odp[area]!.v1[service]!;
  const client = new Stub(`localhost:${world.agentPort}`, credential, { "grpc.use_local_subchannel_pool": 1 });
  const message = await CALLS[name]!.ask();
  const { requestStream } = Stub.service![method]!;
  const call = requestStream ? client[method]!.call(client) : client[method]!.call(client, message);
  const answer = new Promise<Answer>((resolve) => {
    let first: Message | undefined;
    call.on("error", ({ code }) => resolve({ first, code }));
    call.on("end", () => resolve({ first, code: status.OK }));
    call.on("data", (data) => {
      first ??= data;
      if (!("refused" in data)) resolve({ first, code: status.OK });
    });
  });
  if (requestStream) call.write?.(message);
  try {
    return await answer;
  } finally {
    call.cancel();
    client.close();
  }
}

test("the matrix has every call of the .proto files", () => {
  const named = Object.entries(packages.odp).flatMap(([area, { v1 }]) =>
    Object.entries(v1).flatMap(([name, { service = {} }]) =>
      Object.keys(service).map((method) => `${area}.${name}.${method}`),
    ),
  );
  expect(named.toSorted()).toEqual(Object.keys(CALLS).toSorted());
});

describe.each(Object.keys(CALLS))("%s", (name) => {
  const opening = OPENS[name.split(".")[0]!]!;

  test("is served to whom it is for", async () => {
    const { answer, meanwhile } = CALLS[name]!;
    const [{ first, code }] = await Promise.all([answerOf(name, given.get(opening)!), meanwhile?.()]);
    expect(code).toBe(status.OK);
    expect(Object.keys(first ?? {})).toEqual(answer === undefined ? [] : expect.arrayContaining([answer]));
  });

  test("is refused with every other credential", async () => {
    const others = [...given].filter(([credential]) => credential !== opening);
    for (const [credential, secure] of others) {
      const { first, code } = await answerOf(name, secure);
      // A session is told the reason in a frame. Without a certificate of the authority, TLS refuses the connection.
      const told = first?.["refused"] as { readonly code: string } | undefined;
      const reason = told?.code ?? (first === undefined ? status[code] : JSON.stringify(first));
      expect(["denied", "PERMISSION_DENIED", "UNAVAILABLE"], credential).toContain(reason);
    }
  });
});
