import { afterEach } from "vitest";
import { realClock } from "../time/clock.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { testPrincipal, TEST_SECRETS, testRuntime } from "../time/runtime.ts";
import type { Clock } from "../../../common/time.ts";
import type { Engine, TenantStore as TenantStores } from "../../../controller/store/engine.ts";
import { AuditService } from "../../../controller/areas/audit/index.ts";
import { passwordFault, UserService } from "../../../controller/areas/users/index.ts";
import { MemoryTrail } from "../http/http-app.ts";
import { CompanyService } from "../../../controller/areas/tenants/companies.ts";
import { TenantGate } from "../../../controller/areas/tenants/gate.ts";
import { TenantRemoval } from "../../../controller/areas/tenants/removal.ts";
import { TenantService } from "../../../controller/areas/tenants/service.ts";
import type { Company } from "../../../controller/areas/tenants/types.ts";

/** Installations of several controllers that make, change and delete tenants. */

export const PASSWORD = "correct horse";

export const admin = testPrincipal();

/** Services of one controller that concern tenants. */
export interface Controller {
  readonly gate: TenantGate;
  readonly companies: CompanyService;
  readonly removal: TenantRemoval;
  readonly tenants: TenantService;
  readonly users: UserService;
}

/** Installation of the running test, after `begin`. */
export let installation: Installation;

/** Closes the installation after each test of the calling file. */
export function useInstallations(): void {
  afterEach(async () => {
    for (const { gate } of installation.controllers) await gate.close();
    await installation.engine[Symbol.asyncDispose]();
  });
}

/** Controllers of one installation whose first tenant is `matrix`. */
class Installation {
  readonly engine: TestEngine;
  readonly alive = new Set<string>();
  readonly controllers: Controller[] = [];
  clock: Clock = realClock;
  after: Clock["after"] = (...of) => realClock.after(...of);
  /** Keys in the system store that belong to tenants. */
  readonly keys: string[] = [];

  constructor(engine: TestEngine) {
    this.engine = engine;
  }

  async controller(id: string, engine: Engine = this.engine): Promise<Controller> {
    this.alive.add(id);
    const clock: Clock = {
      ...realClock,
      nowMs: () => this.clock.nowMs(),
      after: (...of) => this.after(...of),
    };
    const runtime = { ...testRuntime(clock), random: { next: Math.random, bytes: randomBytes } };
    const gate = await TenantGate.open({ stores: engine, runtime, controllerId: id });
    const tenants = new TenantService({ runtime, engine });
    gate.onLeave((tenant) => tenants.forget(tenant));
    const audit = new AuditService({ runtime, trail: new MemoryTrail(), keys: TEST_SECRETS });
    const users = new UserService({ runtime, stores: gate, tenants, audit });
    const controllers = { own: id, has: (one: string) => this.alive.has(one) };
    const companies = new CompanyService({
      engine,
      runtime,
      gate,
      users,
      controllers,
      passwordFault,
      onDue: () => {},
      licenseOf: () => Promise.resolve("{}"),
      use: { shown: () => undefined, measureSoon: () => {} },
    });
    const keys = this.keys;
    const keysOf = async function* (): AsyncGenerator<string> {
      yield* await Promise.resolve(keys);
    };
    const removal = new TenantRemoval({ engine, runtime, gate, controllers, keysOf: () => [keysOf] });
    await tenants.ensureTenant({ name: "matrix", ospace: "/matrix" });
    const controller = { gate, companies, removal, tenants, users };
    this.controllers.push(controller);
    return controller;
  }

  purge({ removal }: Controller): Promise<void> {
    return removal.run(new AbortController().signal);
  }
}

function randomBytes(count: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(count));
}

/** Opens a new installation without controllers, as that of the running test. */
export async function begin(): Promise<Installation> {
  installation = new Installation(await openTestEngine());
  return installation;
}

/** Names of the companies of all pages. */
export async function names(pages: AsyncIterable<readonly Company[]>): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const page of pages) found.push(...page.map(({ name }) => name));
  return found;
}

/** Tells if the password opens a session of `admin` in that company. */
export async function signsIn({ users }: Controller, company: string, password: string): Promise<boolean> {
  const request = { company, username: "admin", password, remote: "test", traceparent: "" };
  return users.signIn(request).then(
    () => true,
    () => false,
  );
}

/** Returns an entry that must be there. */
export async function entry(kv: TenantStores["kv"], key: string) {
  const found = await kv.get(key);
  if (!found) throw new Error(`There is no ${key}.`);
  return found;
}

/** Name of the store that an entry of a tenant points to. */
export function storeIn({ value }: { readonly value: Uint8Array }): string {
  return (JSON.parse(Buffer.from(value.subarray(1)).toString()) as { readonly store: string }).store;
}
