import { createKeyPem, createRequest } from "../../agent/identity/csr.ts";
import type { Identity } from "../../agent/identity/identity.ts";
import type { CommandPolicySpec } from "../../common/api/policies.ts";
import { enrolRequest } from "../helpers/hosts/hosts.ts";
import { MemoryDatabase } from "../helpers/engines/memory/engine.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { Controller } from "./controller.ts";
import { Network } from "./network.ts";
import { World } from "./world.ts";

export const TENANT = "matrix";
export const ADMIN = testPrincipal("administrator", TENANT);
export const HOSTS = ["h1", "h2", "h3"] as const;
export const CONTROLLERS = ["a", "b"] as const;
export const RULE = "/matrix/rules/line";
export const START_MS = Date.UTC(2026, 0, 1);
const FIRST_STEPS_MS = 600_000;

/** An installation before any fault: created once, copied for every history. */
export interface Template {
  readonly database: MemoryDatabase;
  readonly identities: ReadonlyMap<string, Identity>;
  /** Time at which histories start. */
  readonly startMs: number;
}

let made: Promise<Template> | undefined;

export function template(): Promise<Template> {
  return (made ??= make());
}

export function addressOf(controller: string): string {
  return `${controller}:7070`;
}

/** The text of a rule that stores lines in this class. */
export function ruleText(path: string): string {
  return `--class=${path}\n--parser=csv\n--fields=name,n\n`;
}

/** `tick` runs every three seconds and prints two lines, `beat` every second and prints one; `tail` prints always. */
export const POLICIES: readonly CommandPolicySpec[] = [
  {
    kind: "command",
    name: "tick",
    rule: RULE,
    command: "tick ms=700 lines=2",
    ctype: 1,
    interval: 3,
    unit: "second",
    split: true,
  },
  {
    kind: "command",
    name: "beat",
    rule: RULE,
    command: "beat ms=100 lines=1",
    ctype: 1,
    interval: 1,
    unit: "second",
    split: true,
  },
  {
    kind: "command",
    name: "tail",
    rule: RULE,
    command: "tail ms=0 lines=0 every=900",
    ctype: 1,
    interval: 1,
    unit: "second",
    isdaemon: true,
  },
];

async function make(): Promise<Template> {
  const world = new World({ seed: 1, startMs: START_MS });
  const database = new MemoryDatabase(world.clock);
  const controller = new Controller({
    name: "a",
    world,
    database,
    network: new Network(world, { toAgent: () => undefined }),
  });
  const services = await controller.start();
  const { tenants, users } = services;
  await world.settle(tenants.ensureTenant({ name: TENANT, ospace: `/${TENANT}` }));
  // Schedules run with the rights of the user who saved them.
  await world.outside(
    users.operator.ensureAdministrator({ tenant: TENANT, username: ADMIN.user, password: "sim-Pass-w0rd" }),
  );
  const columns = [
    { name: "name", type: "varchar" },
    { name: "n", type: "int" },
  ] as const;
  for (const path of ["/matrix/line", "/matrix/line2"])
    await world.settle(services.objects.createClass(ADMIN, { path, kind: "record", columns }));
  await world.settle(services.rules.put(ADMIN, RULE, ruleText("/matrix/line")));
  const identities = new Map<string, Identity>();
  for (const host of HOSTS) identities.set(host, await enrolled(world, services, host));
  for (const spec of POLICIES) await world.settle(services.policies.save(ADMIN, { spec }));
  await world.settle(controller.stop());
  await world.advance(FIRST_STEPS_MS);
  return { database, identities, startMs: world.nowMs };
}

async function enrolled(
  world: World,
  { hosts }: Awaited<ReturnType<Controller["start"]>>,
  host: string,
): Promise<Identity> {
  const keyPem = createKeyPem();
  const { token } = await world.settle(hosts.tokens.create(ADMIN, { host }));
  const answer = await world.outside(hosts.agents.enrol(enrolRequest(token, createRequest(keyPem, host))));
  const { certificate, authorities } = answer;
  return { format: 1, host, tenant: TENANT, keyPem, certificate, authorities, controllers: CONTROLLERS.map(addressOf) };
}
