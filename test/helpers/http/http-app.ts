import type { FastifyInstance, InjectOptions } from "fastify";
import { buildHttp, type HttpSettings } from "../../../controller/app.ts";
import type { AuditRecord } from "../../../controller/areas/audit/chain.ts";
import { AuditService, type AuditTrail } from "../../../controller/areas/audit/index.ts";
import { groupRoutes, GroupService } from "../../../controller/areas/groups/index.ts";
import { openidRoutes, OpenIdService } from "../../../controller/areas/openid/index.ts";
import { TenantService } from "../../../controller/areas/tenants/index.ts";
import { userRoutes, UserService } from "../../../controller/areas/users/index.ts";
import type { Endpoint } from "../../../controller/http/interface/endpoint.ts";
import type { SignIn } from "../../../controller/http/calls/signin.ts";
import type { Manual } from "../../../controller/http/manual/files.ts";
import type { SocketEndpoint } from "../../../controller/http/sockets/socket.ts";
import type { OpenIdSettings } from "../../../controller/settings/openid.ts";
import type { Runtime } from "../../../controller/runtime.ts";
import { AppError } from "../../../common/errors.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { testPrincipal, TEST_SECRETS, testRuntime } from "../time/runtime.ts";
import { realClock } from "../time/clock.ts";

export const PASSWORD = "correct horse";

/** Stores the audit trail in memory. With `broken`, it fails like an unavailable store. */
export class MemoryTrail implements AuditTrail {
  readonly records: AuditRecord[] = [];
  broken = false;
  appends = 0;

  append(_tenant: string, records: readonly AuditRecord[]): Promise<void> {
    this.appends++;
    if (this.broken) return Promise.reject(new AppError("unavailable", "the store is away"));
    this.records.push(...records);
    return Promise.resolve();
  }

  /** Number of entries per page of an answer. */
  pageEntries = Infinity;

  async *read(tenant: string): AsyncIterable<readonly AuditRecord[]> {
    let rest = await Promise.resolve(this.records.filter((record) => record.tenant === tenant).reverse());
    for (; rest.length > 0; rest = rest.slice(this.pageEntries)) yield rest.slice(0, this.pageEntries);
  }
}

export interface TestHttp extends AsyncDisposable {
  readonly app: FastifyInstance;
  readonly engine: TestEngine;
  readonly users: UserService;
  readonly groups: GroupService;
  readonly tenants: TenantService;
  readonly trail: MemoryTrail;
  readonly audit: AuditService;
  /** Returns a session id for `admin`, `viewer` or another user of a tenant whose password is `PASSWORD`. */
  signIn(username: string, company?: string): Promise<string>;
  /** Makes an injected call with that session in the query; returns the parsed envelope. */
  call(
    session: string,
    options: InjectOptions & { readonly url: string },
  ): Promise<{
    status: string;
    message: unknown;
    code?: string;
    meta?: unknown;
    warnings?: readonly string[];
    failed?: unknown;
  }>;
}

export interface TestHttpOptions {
  readonly endpoints?: readonly Endpoint[];
  readonly sockets?: readonly SocketEndpoint[];
  readonly runtime?: Runtime;
  /** Absent: a new engine. */
  readonly engine?: TestEngine;
  readonly settings?: Partial<HttpSettings>;
  /** See `UserDependencies.passwordWords`. */
  readonly passwordWords?: readonly string[];
  /** OpenID provider for sign-in; none if absent. */
  readonly openId?: OpenIdSettings;
  readonly callQuotaOf?: (tenant: string) => number;
  /** See `HttpParts.manual`. */
  readonly manual?: Manual;
  /** Allows commands of runs to sign in; absent: they cannot. */
  readonly byRun?: SignIn["byRun"];
}

/** The HTTP interface on its own engine, with `admin` and `viewer` in the tenants `matrix` and `second`. */
export async function openTestHttp(options: TestHttpOptions = {}): Promise<TestHttp> {
  const runtime = options.runtime ?? testRuntime(realClock);
  const engine = options.engine ?? (await openTestEngine({ clock: runtime.clock }));
  const tenants = new TenantService({ runtime, engine });
  const trail = new MemoryTrail();
  const audit = new AuditService({ runtime, trail, keys: TEST_SECRETS });
  const groups = new GroupService({ runtime, stores: engine });
  const { passwordWords = [] } = options;
  const secrets = TEST_SECRETS;
  const users = new UserService({ runtime, stores: engine, tenants, audit, groups, secrets, passwordWords });
  await populate(tenants, users);
  const openid = new OpenIdService({
    runtime,
    secrets: TEST_SECRETS,
    users: users.providers,
    settings: options.openId,
    networks: [],
  });
  const app = await buildHttp({
    runtime,
    endpoints: [
      ...userRoutes({ users, tenants, provider: options.openId?.name }),
      ...openidRoutes(openid),
      ...groupRoutes(groups),
      ...(options.endpoints ?? []),
    ],
    sockets: options.sockets ?? [],
    services: {
      signIn: { ...signInOf(users, groups), ...(options.byRun && { byRun: options.byRun }) },
      audit,
      ready: () => engine.ready(),
      ...(options.callQuotaOf && { callQuotaOf: options.callQuotaOf }),
    },
    settings: { dataDir: engine.dir, version: "0.0.0", ...options.settings },
    ...(options.manual && { manual: options.manual }),
  });
  return {
    app,
    engine,
    users,
    groups,
    tenants,
    trail,
    audit,
    async signIn(username, company = "matrix") {
      const signedIn = await users.signIn({ company, username, password: PASSWORD, remote: "test", traceparent: "" });
      return signedIn.session;
    },
    async call(session, request) {
      const url = `${request.url}${request.url.includes("?") ? "&" : "?"}sessionid=${session}`;
      const response = await app.inject({ ...request, url });
      return response.json();
    },
    async [Symbol.asyncDispose]() {
      await app.close();
      await groups.close();
      await engine.close();
    },
  };
}

function signInOf(users: UserService, groups: GroupService): SignIn {
  return {
    bySession: (session, traceparent) => users.bySession(session, traceparent),
    byKnownSession: (session, call) => users.byKnownSession(session, call),
    byPassword: (credentials, traceparent) => users.byPassword(credentials, traceparent),
    byToken: (token, traceparent) => users.byToken(token, traceparent),
    onChange: (listener) => {
      users.onChange(listener);
      groups.onChange(listener);
    },
  };
}

async function populate(tenants: TenantService, users: UserService): Promise<void> {
  for (const tenant of ["matrix", "second"]) {
    await tenants.ensureTenant({ name: tenant, ospace: `/${tenant}` });
    await users.operator.ensureAdministrator({ tenant, username: "admin", password: PASSWORD });
    await users.create(testPrincipal("administrator", tenant), {
      username: "viewer",
      password: PASSWORD,
      rights: { role: "viewer" },
    });
  }
}
