import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createKeyPem, createRequest } from "../../../agent/identity/csr.ts";
import type { Row } from "../../../common/value.ts";
import { assemble, type Assembly } from "../../../controller/assembly.ts";
import { openSecretKey } from "../../../controller/secrets/index.ts";
import type { Entry, Pin } from "../../../proto/gen/agent/v1/agent.ts";
import { afterAll, beforeAll, expect } from "vitest";
import { realClock } from "../time/clock.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { BareAgent, enrolRequest, type TestIdentity } from "./hosts.ts";
import { PASSWORD } from "../http/http-app.ts";
import { testPrincipal, testRuntime } from "../time/runtime.ts";
import { StoppableStores } from "../engines/stoppable-stores.ts";
import { storeFolder } from "../runs/folders.ts";

/** An agent on a machine that an attacker controls: it has a valid certificate and sends arbitrary frames. */

/** An agent on a machine that an attacker controls: it has a valid certificate and sends arbitrary frames. */

export const ADMIN = testPrincipal();
export const NEIGHBOUR = testPrincipal("administrator", "second");
export const OWN_RULE = "/matrix/rules/line";
export const FOREIGN_RULE = "/matrix/rules/ledger";
const COLUMNS = [
  { name: "name", type: "varchar" },
  { name: "n", type: "int" },
] as const;

export let engine: TestEngine;
export let stores: StoppableStores;
let folder: string;
export let odp: Assembly;
export let port = 0;
let streams = 0;
export const agents: BareAgent[] = [];

/** Opens a controller, with policies of two hosts, for all tests of the calling file. */
export function useHostileAgents(): void {
  // Files share a process, and each closes its own agents.
  agents.length = 0;
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
    await odp.users.operator.ensureAdministrator({ tenant: "matrix", username: ADMIN.user, password: PASSWORD });
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
}

/** Work of a neighbour of the hostile agent must complete now. */
export async function othersAreServed(): Promise<void> {
  const good = await connected("web", `good-stream-${(streams += 1)}`);
  const name = `served${streams}`;
  await good.send(records(1, [`${name},1`]));
  await good.acknowledged(1);
  expect(await rows(`select name from /matrix/line where name = '${name}'`)).toHaveLength(1);
  good.agent.close();
}

/** A policy that runs a command on these hosts, with that rule. */
export function policy(name: string, rule: string, hosts: readonly string[]) {
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

/** Enrols a host anew and returns its identity. */
export async function enrolled(host: string, principal = ADMIN): Promise<TestIdentity> {
  const { token } = await odp.hosts.tokens.create(principal, { host });
  const keyPem = createKeyPem();
  return { keyPem, answer: await odp.hosts.agents.enrol(enrolRequest(token, createRequest(keyPem, host))) };
}

/** Connects an enrolled agent. Without an id it opens a stream of its own. */
export async function connected(host: string, streamId = `hostile-stream-${(streams += 1)}`): Promise<Hostile> {
  const agent = new BareAgent(port, await enrolled(host));
  agents.push(agent);
  await agent.hello({ streamId });
  return new Hostile(agent, streamId);
}

/** A connected agent with its stream. */
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

/** An entry of records, by default of the own policy and rule. */
export function records(
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

/** Returns all rows of a statement. */
export async function rows(mql: string, principal = ADMIN): Promise<readonly Row[]> {
  return odp.query.rows(principal, `${mql} limit -1`);
}
