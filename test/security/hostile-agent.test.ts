import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createKeyPem, createRequest } from "../../agent/identity/csr.ts";
import {
  AGENT_FRAME_MAX_FIELDS,
  HOST_CONFIG_MAX_ENTRIES,
  HOST_FACTS_MAX_ENTRIES,
  INGEST_HINTS_STREAMS_MAX,
  PIN_AHEAD_MAX_US,
} from "../../common/limits.ts";
import { ulidOf } from "../../common/ids.ts";
import type { Row } from "../../common/value.ts";
import { assemble, type Assembly } from "../../controller/assembly.ts";
import { openSecretKey } from "../../controller/secrets/index.ts";
import { decodeStored } from "../../controller/store/format.ts";
import type { Entry, Pin } from "../../proto/gen/agent/v1/agent.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { realClock } from "../helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../helpers/engines/engine.ts";
import { BareAgent, enrolRequest, sha256, type TestIdentity } from "../helpers/hosts/hosts.ts";
import { eventually } from "../helpers/programs/programs.ts";
import { PASSWORD } from "../helpers/areas/http-app.ts";
import { testPrincipal, testRuntime } from "../helpers/time/runtime.ts";
import { StoppableStores } from "../helpers/engines/stoppable-stores.ts";
import { storeFolder } from "../helpers/runs/folders.ts";

/** An agent on a machine that an attacker controls: it has a valid certificate and sends arbitrary frames. */

const ADMIN = testPrincipal();
const NEIGHBOUR = testPrincipal("administrator", "second");
const OWN_RULE = "/matrix/rules/line";
const FOREIGN_RULE = "/matrix/rules/ledger";
const COLUMNS = [
  { name: "name", type: "varchar" },
  { name: "n", type: "int" },
] as const;
const DEADLINE_MS = 20_000;

let engine: TestEngine;
let stores: StoppableStores;
let folder: string;
let odp: Assembly;
let port = 0;
let streams = 0;
const agents: BareAgent[] = [];

beforeAll(async () => {
  engine = await openTestEngine();
  folder = await storeFolder("odp-hostile-");
  const secrets = await openSecretKey({ file: join(folder, "secret.key"), create: true });
  stores = new StoppableStores(engine);
  odp = await assemble({
    engine: { ...engine, tenant: (name) => stores.tenant(name) },
    secrets,
    version: "test",
    runtime: testRuntime(realClock),
    controllerId: "hostile",
    publicNames: ["localhost"],
    dataDir: folder,
    agentPort: () => port,
  });
  for (const { tenant, ospace } of [ADMIN, NEIGHBOUR]) await odp.tenants.ensureTenant({ name: tenant, ospace });
  // Rules run with the rights of the user who stored them.
  await odp.users.ensureAdministrator({ tenant: "matrix", username: ADMIN.user, password: PASSWORD });
  port = await odp.agents.listen("127.0.0.1", 0);
  for (const name of ["line", "ledger"]) {
    await odp.objects.createClass(ADMIN, {
      path: `/matrix/${name}`,
      columns: COLUMNS,
      ...(name === "ledger" ? { keys: ["name"] } : { kind: "record" as const }),
    });
    await odp.rules.put(ADMIN, `/matrix/rules/${name}`, `--class=/matrix/${name}\n--parser=csv\n--fields=name,n\n`);
  }
  for (const host of ["web", "bank"]) await odp.hosts.save(ADMIN, { host });
  await odp.policies.save(ADMIN, policy("lines", OWN_RULE, ["web"]));
  await odp.policies.save(ADMIN, policy("ledgers", FOREIGN_RULE, ["bank"]));
});

afterAll(async () => {
  for (const agent of agents) agent.close();
  await odp.agents.close();
  await odp.close();
  await engine[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

function policy(name: string, rule: string, hosts: readonly string[]) {
  return {
    spec: {
      kind: "command" as const,
      name,
      rule,
      command: "true",
      ctype: 1 as const,
      interval: 60,
      unit: "second" as const,
    },
    hosts,
  };
}

async function enrolled(host: string, principal = ADMIN): Promise<TestIdentity> {
  const { token } = await odp.hosts.createToken(principal, { host });
  const keyPem = createKeyPem();
  return { keyPem, answer: await odp.hosts.agents.enrol(enrolRequest(token, createRequest(keyPem, host))) };
}

async function connected(host: string, streamId = `hostile-stream-${(streams += 1)}`): Promise<Hostile> {
  const agent = new BareAgent(port, await enrolled(host));
  agents.push(agent);
  await agent.hello({ streamId });
  return new Hostile(agent, streamId);
}

class Hostile {
  readonly agent: BareAgent;
  readonly streamId: string;

  constructor(agent: BareAgent, streamId: string) {
    this.agent = agent;
    this.streamId = streamId;
  }

  /** Sends correctly pinned entries. */
  send(...entries: Entry[]): Promise<void> {
    return this.agent.sendPinned(this.streamId, entries);
  }

  /** Sends the entries unchanged. */
  sendRaw(entries: Entry[], pin?: Pin): void {
    this.agent.send({ $case: "batch", value: { streamId: this.streamId, entries, ...(pin && { pin }) } });
  }

  async acknowledged(sequence: number): Promise<void> {
    while ((await this.agent.next("acknowledge")).throughSequence < sequence);
  }
}

function records(
  sequence: number,
  lines: readonly string[],
  more: { readonly rule?: string; readonly policy?: string; readonly timeMs?: number } = {},
): Entry {
  const { rule = OWN_RULE, policy: named = "lines", timeMs = Date.now() } = more;
  const value = {
    policy: named,
    policyRevision: 1,
    source: "x",
    generation: "g",
    offset: 0,
    groups: {},
    rule,
    cut: [],
    malformed: [],
    raw: Buffer.alloc(0),
    rawLengths: [],
    records: lines.map((line) => Buffer.from(line)),
  };
  return { sequence, timeMs, traceparent: "", body: { $case: "records", value } };
}

function run(sequence: number, name: string): Entry {
  const value = {
    policy: name,
    policyRevision: 1,
    scheduledMs: Date.now(),
    state: "ok",
    code: 0,
    message: "",
    startedMs: 1,
    endedMs: 2,
    records: 1,
  };
  return { sequence, timeMs: Date.now(), traceparent: "", body: { $case: "run", value } };
}

function gap(sequence: number, name: string): Entry {
  const value = { policy: name, source: "", reason: "vanished", count: 1, unit: "runs", fromMs: 0, toMs: 0 };
  return { sequence, timeMs: Date.now(), traceparent: "", body: { $case: "gap", value } };
}

function result(sequence: number, commandId: string): Entry {
  return {
    sequence,
    timeMs: Date.now(),
    traceparent: "",
    body: { $case: "result", value: { commandId, state: "ok", code: 0, message: "forged", startedMs: 1, endedMs: 2 } },
  };
}

async function rows(mql: string, principal = ADMIN): Promise<readonly Row[]> {
  return odp.query.rows(principal, `${mql} limit -1`);
}

async function refusals(host: string): Promise<readonly Row[]> {
  return rows(`select name, msg, count, raw from /matrix/consolelog/rule where host = '${host}'`);
}

/** Work of a neighbour of the hostile agent must complete now. */
async function othersAreServed(): Promise<void> {
  const good = await connected("web", `good-stream-${(streams += 1)}`);
  const name = `served${streams}`;
  await good.send(records(1, [`${name},1`]));
  await good.acknowledged(1);
  expect(await rows(`select name from /matrix/line where name = '${name}'`)).toHaveLength(1);
  good.agent.close();
}

describe("what an agent may write", () => {
  test("is parsed by rules of policies that were sent to its host, and by no others", async () => {
    const web = await connected("web");
    await web.send(
      records(1, ["mine,1"]),
      records(2, ["stolen,1000000", "more,1"], { rule: FOREIGN_RULE }),
      records(3, ["stolen,2"], { rule: "/matrix/rules/none" }),
      records(4, ["stolen,3"], { rule: "/second/rules/line" }),
      records(5, ["stolen,4"], { rule: "../ledger" }),
      records(6, ["mine,2"], { policy: "ledgers" }),
    );
    await web.acknowledged(6);
    expect(await rows("select name from /matrix/ledger")).toEqual([]);
    expect((await rows("select name, n from /matrix/line where name = 'mine'")).map(({ n }) => n).sort()).toEqual([
      1, 2,
    ]);
    const refused = await refusals("web");
    expect(refused).toContainEqual(
      expect.objectContaining({
        name: FOREIGN_RULE,
        msg: `The rule ${FOREIGN_RULE} belongs to no policy that was sent to web.`,
        count: 2,
        raw: "stolen,1000000",
      }),
    );
    expect(refused.filter(({ msg }) => String(msg).includes("belongs to no policy that was sent to web"))).toHaveLength(
      4,
    );
  });

  test("stays its own after the policy was taken away: an outbox may hold it still", async () => {
    await odp.hosts.save(ADMIN, { host: "former" });
    await odp.policies.save(ADMIN, policy("passing", FOREIGN_RULE, ["former"]));
    const before = await connected("former");
    await before.agent.next("desired");
    before.agent.close();
    await odp.policies.remove(ADMIN, "passing");
    const after = await connected("former");
    await after.send(records(1, ["late,7"], { rule: FOREIGN_RULE, policy: "passing" }), run(2, "passing"));
    await after.acknowledged(2);
    expect(await rows("select n from /matrix/ledger where name = 'late'")).toEqual([{ n: 7 }]);
    expect(await refusals("former")).toEqual([]);
  });

  test("is no other's after its host was removed and came again", async () => {
    await odp.hosts.remove(ADMIN, "former");
    const next = await connected("former");
    await next.send(records(1, ["later,8"], { rule: FOREIGN_RULE, policy: "passing" }));
    await next.acknowledged(1);
    expect(await rows("select n from /matrix/ledger where name = 'later'")).toEqual([]);
  });

  test.each<[what: string, lie: (pin: Pin, others: Pin) => Partial<Pin>]>([
    ["a time far ahead", ({ told }) => ({ writeUs: (told?.us ?? 0) + PIN_AHEAD_MAX_US })],
    ["a time before the one it was told", ({ told }) => ({ writeUs: (told?.us ?? 0) - 1 })],
    [
      "a told time of its own making",
      ({ writeUs, told }) => ({ writeUs: writeUs + 1e9, told: { us: writeUs + 1e9, proof: told?.proof ?? "" } }),
    ],
    ["no told time", () => ({ told: undefined })],
    ["a time told to another host", (_, { told, writeUs }) => ({ told, writeUs })],
    [
      "a digest of another rule",
      ({ rules }) => ({ rules: rules.map((rule) => ({ ...rule, digest: "0".repeat(64) })) }),
    ],
    ["an error of its own", ({ rules }) => ({ rules: rules.map((rule) => ({ ...rule, digest: "", error: "x" })) })],
    ["a proof that is none", ({ rules }) => ({ rules: rules.map((rule) => ({ ...rule, proof: "no" })) })],
    ["the rule of another host", (_, { rules }) => ({ rules: rules.map((rule) => ({ ...rule, rule: OWN_RULE })) })],
    ["what another host was told of its rule", (_, { rules }) => ({ rules: [...rules] })],
    [
      "a rule besides that nobody told",
      ({ rules }) => ({ rules: rules.flatMap((rule) => [rule, { ...rule, digest: "1" }]) }),
    ],
    ["no rule", () => ({ rules: [] })],
  ])("is refused with %s, and the agent is to ask again", async (_, lie) => {
    const bank = await connected("bank");
    const theirs = await bank.agent.pin([records(1, [], { rule: FOREIGN_RULE })]);
    const web = await connected("web");
    const entry = records(1, ["lied,1"]);
    const pin = await web.agent.pin([entry]);
    web.sendRaw([entry], { ...pin, ...lie(pin, theirs) });
    expect(await web.agent.next("refused")).toMatchObject({ code: "invalid", askAgain: true });
    expect(await rows("select name from /matrix/line where name = 'lied'")).toEqual([]);
  });

  test("is refused without a pin, and by what a neighbour's host of the same name was told", async () => {
    const web = await connected("web");
    web.sendRaw([records(1, ["bare,1"])]);
    expect(await web.agent.next("refused")).toMatchObject({ askAgain: true });
    const neighbour = new BareAgent(port, await enrolled("web", NEIGHBOUR));
    agents.push(neighbour);
    await neighbour.hello({ streamId: "stream-of-a-neighbour" });
    const pin = await neighbour.pin([records(1, [])]);
    const again = await connected("web");
    again.sendRaw([records(1, ["bare,2"])], pin);
    expect(await again.agent.next("refused")).toMatchObject({ askAgain: true });
    expect(await rows("select name from /matrix/line where name = 'bare'")).toEqual([]);
  });

  test("tells of no runs and gaps of policies it was never sent", async () => {
    const web = await connected("web");
    await web.send(run(1, "lines"), run(2, "ledgers"), gap(3, "ledgers"), gap(4, ""), run(5, "x".repeat(100_000)));
    await web.acknowledged(5);
    expect(await rows("select policy from /matrix/system/policyrun where policy = 'ledgers'")).toEqual([]);
    expect(await rows("select policy from /matrix/system/policygap where policy = 'ledgers'")).toEqual([]);
    expect(
      (await refusals("web")).filter(({ msg }) => msg === "The policy ledgers was never sent to web."),
    ).toHaveLength(2);
  });

  test("bears the time it says, or is refused, and holds nothing up", async () => {
    const web = await connected("web");
    const times = [0, -1, -(2 ** 52), 2 ** 52, Number.MAX_SAFE_INTEGER, 8.64e15 + 1, Date.now() + 1e12];
    await web.send(
      ...times.map((timeMs, at) => records(at + 1, [`time${at},1`], { timeMs })),
      records(times.length + 1, ["intime,1"]),
    );
    await web.acknowledged(times.length + 1);
    expect(await rows("select name from /matrix/line where name = 'intime'")).toHaveLength(1);
  });
});

describe("who an agent is", () => {
  test("no stream of another host, and none of its own under another's name", async () => {
    const bank = await connected("bank", "stream-of-the-bank");
    await bank.send(records(1, ["account,1"], { rule: FOREIGN_RULE, policy: "ledgers" }));
    await bank.acknowledged(1);
    const identity = await enrolled("web");
    const thief = new BareAgent(port, identity);
    agents.push(thief);
    expect(await thief.hello({ streamId: "stream-of-the-bank" })).toMatchObject({ acknowledged: 0 });
    await thief.sendPinned("stream-of-the-bank", [records(1, ["account,0"])]);
    expect(await thief.next("acknowledge")).toMatchObject({ throughSequence: 1 });
    thief.close();
    const liar = new BareAgent(port, identity);
    agents.push(liar);
    await expect(
      liar.hello({ facts: { host: "bank", os: "", arch: "", addresses: [], pid: 1, values: {} } }),
    ).rejects.toThrow(/names the host bank, the certificate web/);
    const web = await connected("web");
    web.agent.send({
      $case: "batch",
      value: { streamId: "stream-of-the-bank", entries: [records(2, ["account,0"], { rule: FOREIGN_RULE })] },
    });
    expect(await web.agent.next("refused")).toMatchObject({ code: "invalid" });
    expect(await rows("select n from /matrix/ledger where name = 'account'")).toEqual([{ n: 1 }]);
  });

  test("the same names in a neighbour's installation are other ones", async () => {
    const neighbour = new BareAgent(port, await enrolled("bank", NEIGHBOUR));
    agents.push(neighbour);
    expect(await neighbour.hello({ streamId: "stream-of-the-bank" })).toMatchObject({ acknowledged: 0 });
    await neighbour.sendPinned("stream-of-the-bank", [records(1, ["account,0"], { rule: FOREIGN_RULE })]);
    expect(await neighbour.next("acknowledge")).toMatchObject({ throughSequence: 1 });
    expect(await rows("select n from /matrix/ledger where name = 'account'")).toEqual([{ n: 1 }]);
  });

  test("results of commands of others, or of none, reach nobody who waits", async () => {
    const bank = await connected("bank");
    const web = await connected("web");
    const outcome = odp.hosts.dispatch(
      ADMIN,
      "bank",
      { kind: "exec", line: "true" },
      { commandId: "for-the-bank", timeoutMs: 60_000 },
    );
    await bank.agent.next("command");
    await web.send(result(1, "for-the-bank"), result(2, "never-given"), result(3, "y".repeat(100_000)));
    web.agent.send({ $case: "command", value: { commandId: "for-the-bank", state: "refused", message: "no" } });
    await web.acknowledged(3);
    await bank.send({
      ...result(1, "for-the-bank"),
      body: {
        $case: "result",
        value: { commandId: "for-the-bank", state: "failed", code: 3, message: "true end", startedMs: 1, endedMs: 2 },
      },
    });
    expect(await outcome).toMatchObject({ host: "bank", state: "failed", code: 3, message: "true end" });
    const told = await rows("select host from /matrix/system/command where command = 'for-the-bank'");
    expect(told).toEqual([{ host: "bank" }]);
    const refused = (await refusals("web")).map(({ msg }) => msg);
    expect(refused).toEqual(
      expect.arrayContaining([
        "No command for-the-bank of web is on record.",
        "No command never-given of web is on record.",
      ]),
    );
    expect(
      await rows(
        "select msg from /matrix/consolelog/rule where host = 'web' and msg = 'The id of a command has at most 512 characters.'",
      ),
    ).toHaveLength(1);
  });

  test("results of commands that look like those of a run or a deployment are taken of none but that host's own", async () => {
    const web = await connected("web");
    const id = ulidOf(Date.now(), randomBytes(10));
    const made = [
      `job/${id}/web/0`,
      `job/${id}/bank/0`,
      `deploy/${id}/${id}`,
      `deploy/${"x".repeat(400)}/1`,
      `job/${"../".repeat(100)}/web/0`,
      "",
    ];
    await web.send(...made.map((commandId, at) => result(at + 1, commandId)));
    await web.acknowledged(made.length);
    expect(await rows("select command from /matrix/system/command where message = 'forged'")).toEqual([]);
  });

  test("content that nothing of its host refers to stays away", async () => {
    const { blobs } = await engine.tenant("matrix");
    await blobs.put([Buffer.from("the bank's depot")], "bank");
    const web = await connected("web");
    await expect(web.agent.fetch(sha256("the bank's depot"))).rejects.toThrow(/Nothing of web refers to this content/);
  });
});

describe("how much an agent may send", () => {
  test("a frame with more fields than an agent's can have ends its stream before it is decoded", async () => {
    const web = await connected("web");
    const tiny = Array.from({ length: AGENT_FRAME_MAX_FIELDS + 1 }, () => "");
    web.sendRaw([records(1, tiny)]);
    expect(await web.agent.next("refused")).toMatchObject({
      code: "too_large",
      message: expect.stringContaining("270000 fields"),
    });
    await othersAreServed();
  });

  test("a frame that is too large ends its stream", async () => {
    const web = await connected("web");
    web.sendRaw([records(1, ["x".repeat(9 * 1024 * 1024)])]);
    expect(await web.agent.next("refused")).toMatchObject({
      code: "too_large",
      message: expect.stringContaining("8388608 bytes"),
    });
    await othersAreServed();
  });

  test("ever new streams of a host leave one entry in the store that names its latest ones", async () => {
    const { kv } = await engine.tenant("matrix");
    await odp.hosts.save(ADMIN, { host: "streams" });
    await odp.policies.save(ADMIN, policy("streaming", OWN_RULE, ["streams"]));
    for (let at = 0; at < INGEST_HINTS_STREAMS_MAX + 3; at++) {
      const streams = await connected("streams", `new-stream-${at}`);
      await streams.send(records(1, [`new${at},1`], { policy: "streaming" }));
      await streams.acknowledged(1);
      streams.agent.close();
    }
    const hint = await eventually("how far they are is known", DEADLINE_MS, async () => {
      const entry = await kv.get("ingest/streams");
      const known = entry ? decodeStored<[string, number][]>(entry.value) : [];
      return known.at(-1)?.[0] === `new-stream-${INGEST_HINTS_STREAMS_MAX + 2}` ? known : undefined;
    });
    expect(hint).toEqual(Array.from({ length: INGEST_HINTS_STREAMS_MAX }, (_, at) => [`new-stream-${at + 3}`, 1]));
    await othersAreServed();
  });

  test("ten thousand frames without waiting for an answer end their stream; others are served, and what was acknowledged is stored once", async () => {
    await odp.hosts.save(ADMIN, { host: "flood" });
    await odp.policies.save(ADMIN, policy("floods", OWN_RULE, ["flood"]));
    const { agent } = await connected("flood", "flood-stream");
    // Holds back the store: if it kept up with the flood, nothing would stay unacknowledged.
    const held = stores.hold("append");
    const pin = await agent.pin([records(1, [], { policy: "floods" })]);
    for (let sequence = 1; sequence <= 10_000; sequence++) {
      const entries = [records(sequence, [`flood,${sequence}`], { policy: "floods" })];
      agent.send({ $case: "batch", value: { streamId: "flood-stream", entries, pin } });
      agent.send({ $case: "command", value: { commandId: `flood-${sequence}`, state: "accepted", message: "" } });
    }
    const first = await held;
    await othersAreServed();
    expect(await agent.next("refused")).toMatchObject({
      code: "limited",
      message: expect.stringContaining("unacknowledged"),
    });
    first.goOn();
    await agent.end();
    const next = await connected("flood", "flood-stream");
    await next.send(records(10_001, ["flood,0"], { policy: "floods" }));
    await next.acknowledged(10_001);
    const stored = (await rows("select n from /matrix/line where name = 'flood'"))
      .map(({ n }) => Number(n))
      .sort((x, y) => x - y);
    expect(stored).toEqual(Array.from({ length: stored.length }, (_, at) => at));
    expect(await rows("select count from /matrix/system/policygap where source = 'flood-stream'")).toEqual([]);
  });

  test("sequences that fall or repeat end the stream, those that leap are stored, and only what the agent lost is a hole", async () => {
    const falls = await connected("web");
    await falls.send(records(1, ["seq,1"]), records(1, ["seq,2"]));
    expect(await falls.agent.next("refused")).toMatchObject({ code: "invalid", askAgain: false });
    const web = await connected("web");
    await web.send(records(1, ["seq,3"]), records(1_000_000, ["seq,4"]));
    await web.agent.sendPinned(web.streamId, [records(Number.MAX_SAFE_INTEGER, ["seq,5"])], { missing: 7 });
    await web.acknowledged(Number.MAX_SAFE_INTEGER);
    expect((await rows("select n from /matrix/line where name = 'seq'")).map(({ n }) => n).sort()).toEqual([3, 4, 5]);
    expect(await rows(`select count from /matrix/system/policygap where source = '${web.streamId}'`)).toEqual([
      { count: 7 },
    ]);
    await othersAreServed();
  });

  test("facts under ever new names leave room for what people set, and set nothing that leads SSH or looks like a secret", async () => {
    const host = "facts";
    for (let round = 0; round < 6; round++) {
      const agent = new BareAgent(port, await enrolled(host));
      agents.push(agent);
      const many = Array.from({ length: HOST_FACTS_MAX_ENTRIES - 3 }, (_, at) => [`r${round}n${at}`, "v"]);
      const values = {
        ...Object.fromEntries(many),
        address: "10.6.6.6",
        extagent_start: "rm -rf /",
        password: "p",
      } as Record<string, string>;
      await agent.hello({ facts: { host, os: `round ${round}`, arch: "", addresses: [], pid: 1, values } });
      const shown = async () => ((await odp.hosts.get(ADMIN, host)).config.os === `round ${round}` ? true : undefined);
      await eventually("the facts are on record", DEADLINE_MS, shown);
      agent.close();
    }
    const { config } = await odp.hosts.get(ADMIN, host);
    expect(Object.keys(config).length).toBeLessThanOrEqual(HOST_CONFIG_MAX_ENTRIES - HOST_FACTS_MAX_ENTRIES + 3);
    expect(config).not.toMatchObject({ address: "10.6.6.6" });
    expect(Object.keys(config)).not.toEqual(expect.arrayContaining(["extagent_start"]));
    expect(Object.keys(config)).not.toEqual(expect.arrayContaining(["password"]));
    await odp.hosts.save(ADMIN, { host, config: { rack: "7" } });
  });
});
