import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { assemble, type Assembly } from "../../controller/assembly.ts";
import { openSecretKey } from "../../controller/secrets/index.ts";
import type { Engine, TenantStore } from "../../controller/store/engine.ts";
import type { Clock } from "../../common/time.ts";
import { realClock } from "../helpers/time/clock.ts";
import { openTestEngine } from "../helpers/engines/engine.ts";
import { PASSWORD } from "../helpers/http/http-app.ts";
import { testRuntime } from "../helpers/time/runtime.ts";
import { storeFolder } from "../helpers/runs/folders.ts";

/** A whole controller without ports and agents, with an administrator. It counts writes. */
export interface World extends AsyncDisposable {
  readonly app: FastifyInstance;
  readonly assembly: Assembly;
  /** Number of writes so far, except for sessions, failed sign-ins and the audit trail. */
  readonly written: () => number;
  /** A new session of the administrator. */
  readonly signIn: () => Promise<string>;
}

export interface WorldOptions {
  readonly licenseKeys?: readonly string[];
  /** The built `script-worker.ts`. Absent: no script runs. */
  readonly scripts?: URL;
  /** As in the options of the assembly. */
  readonly outboundNetworks?: readonly string[];
  readonly clock?: Clock;
}

export async function openWorld({ clock = realClock, ...options }: WorldOptions = {}): Promise<World> {
  const engine = await openTestEngine();
  const folder = await storeFolder("odp-security-");
  const counted = counting(engine);
  const secrets = await openSecretKey({ file: join(folder, "secret.key"), create: true });
  const assembly = await assemble({
    engine: counted.engine,
    secrets,
    version: "test",
    runtime: testRuntime(clock),
    controllerId: "security",
    publicNames: ["odp.example"],
    dataDir: folder,
    agentPort: () => 0,
    ...options,
  });
  await assembly.tenants.ensureTenant({ name: "matrix", ospace: "/matrix" });
  await assembly.users.operator.ensureAdministrator({ tenant: "matrix", username: "admin", password: PASSWORD });
  const app = await assembly.http();
  return {
    app,
    assembly,
    written: () => counted.writes,
    async signIn() {
      const { session } = await assembly.users.signIn({
        company: "matrix",
        username: "admin",
        password: PASSWORD,
        remote: "test",
        traceparent: "",
      });
      return session;
    },
    async [Symbol.asyncDispose]() {
      await app.close();
      await assembly.close();
      await engine[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
    },
  };
}

interface Counted {
  readonly engine: Engine;
  writes: number;
}

function counting(inner: Engine): Counted {
  const counted: Counted = {
    writes: 0,
    engine: {
      kind: inner.kind,
      isRemote: inner.isRemote,
      system: async () => watched(await inner.system()),
      tenant: async (name) => watched(await inner.tenant(name)),
      createTenant: (name, options) => inner.createTenant(name, options),
      dropTenant: (name) => inner.dropTenant(name),
      releaseTenant: (name) => inner.releaseTenant(name),
      nodes: () => inner.nodes(),
      ready: () => inner.ready(),
      close: () => inner.close(),
    },
  };
  const watched = ({ kv, objects, blobs, scrub }: TenantStore): TenantStore => ({
    kv: recording(kv, { put: ([key]) => !isOfSignIn(key), delete: ([key]) => !isOfSignIn(key), txn: () => true }),
    objects: recording(objects, { change: () => true, removeRecords: () => true }),
    blobs: recording(blobs, { put: () => true, append: () => true, unmark: () => true, removeStream: () => true }),
    scrub: recording(scrub, { add: () => true, remove: () => true }),
  });
  const recording = <T extends object>(
    store: T,
    counts: Readonly<Record<string, (args: readonly unknown[]) => boolean>>,
  ): T =>
    new Proxy(store, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== "function") return member;
        const method = member as (...args: readonly unknown[]) => unknown;
        return (...args: readonly unknown[]): unknown => {
          if (typeof name === "string" && counts[name]?.(args)) counted.writes++;
          return method.apply(target, [...args]);
        };
      },
    });
  return counted;
}

/** Sessions and failures to sign in, and the head of the audit trail, which tells them. */
function isOfSignIn(key: unknown): boolean {
  return /session|^signinfailures\/|^audit\/heads$/.test(String(key));
}
