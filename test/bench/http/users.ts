import { randomBytes } from "node:crypto";
import { verify } from "@node-rs/argon2";
import type { FastifyInstance } from "fastify";
import type { Assembly } from "../../../controller/assembly.ts";
import { allows, classAccess, pathAllowed, type Principal } from "../../../controller/areas/permissions/index.ts";
import { type UserRecord, USERS } from "../../../controller/areas/users/store.ts";
import { openClusterEngine } from "../../../controller/store/cluster/index.ts";
import type { Engine } from "../../../controller/store/engine.ts";
import { decodeStored } from "../../../controller/store/format.ts";
import { Installation } from "../../e2e/installation.ts";
import { openTestEngine } from "../../helpers/engines/engine.ts";
import { testPrincipal } from "../../helpers/time/runtime.ts";
import { withCluster } from "../driver/cluster.ts";
import { ITEM_CLASS, leafOf, PASSWORD, realRuntime, userName, USERS_OF_CREW, withCrew } from "./crew.ts";
import { median, perSecond, quantile, type Bench, type Figure } from "../driver/frame.ts";
import { residentMb } from "../driver/process.ts";

const DECISIONS = 100_000;
const READS = 400;
const READ_ROUNDS = 61;
const ITEMS = 1_000;
const SIGN_INS = 60;
const LOOKUPS = 60;
const CHANGES = 20;
const CHANGE_MAX_MS = 1_000;
const CHANGE_DEADLINE_MS = 30_000;
const TENANTS = Number(process.env.ODP_BENCH_TENANTS ?? 1_000);
const TENANTS_AT_ONCE = 4;
const TENANTS_MAX_MB = 1_024;
const CALLER = { company: "matrix", password: PASSWORD, remote: "bench", traceparent: "" };

/**
 * 10,000 users in 1,000 groups, each user in three nested ones, on either engine, on etcd with two controllers. Also
 * 1,000 tenants of one installation at rest.
 */
export const usersBench: Bench = {
  name: "users",
  async run() {
    return [...(await embeddedFigures()), ...(await withCluster(clusterFigures)), await tenantsFigure()];
  },
};

async function embeddedFigures(): Promise<readonly Figure[]> {
  await using engine = await openTestEngine();
  return await withCrew([engine], async (controllers) => [
    ...(await inProcess(controllers)),
    ...(await peopleFigures("embedded", engine, controllers)),
  ]);
}

async function clusterFigures(settings: Parameters<Parameters<typeof withCluster>[0]>[0]): Promise<readonly Figure[]> {
  const prefix = `bench${randomBytes(4).toString("hex")}`;
  const engines: Engine[] = [];
  try {
    for (let at = 0; at < 2; at++)
      engines.push(await openClusterEngine({ ...settings, prefix, runtime: realRuntime() }));
    const [first] = engines;
    if (first === undefined) throw new RangeError("there is an engine");
    return await withCrew(engines, (controllers) => peopleFigures("etcd, two controllers", first, controllers));
  } finally {
    await engines[0]?.dropTenant("matrix");
    for (const engine of engines) await engine.close();
  }
}

/** Figures of work that needs no store. */
async function inProcess([controller]: readonly Assembly[]): Promise<readonly Figure[]> {
  if (controller === undefined) throw new RangeError("there is a controller");
  return [await decisionFigure(controller), await readFigure(controller)];
}

/** A decision on a user's rights: those of the groups, the permission of the call, the class and the path. */
async function decisionFigure({ groups }: Assembly): Promise<Figure> {
  const definitions = await groups.definitions(testPrincipal());
  const own = { grants: [], data: [] };
  const timesMs: number[] = [];
  // The first decision for a set of groups compiles it, once per change of groups, for all users of the set.
  for (let n = 0; n < USERS_OF_CREW; n++) definitions.rightsOf({ username: userName(n), isAdministrator: false, own });
  for (let n = 0; n < DECISIONS; n++) {
    const began = process.cpuUsage();
    const rights = definitions.rightsOf({ username: userName(n), isAdministrator: false, own });
    const isAllowed = allows(rights, "objects:read") && classAccess(rights, ITEM_CLASS).readable;
    pathAllowed(rights, `/home/${userName(n)}/plan.txt`);
    timesMs.push(cpuMs(began));
    if (!isAllowed) throw new Error("the user may read");
  }
  const name =
    "a decision in process, p99 of processor time: rights of three nested groups, permission, class and path";
  return most(name, "µs", { ours: quantile(timesMs, 0.99) * 1_000, against: 20 });
}

/** The same reads by a user of three nested groups and by an administrator, in turns of a few milliseconds. */
async function readFigure(controller: Assembly): Promise<Figure> {
  const admin = testPrincipal();
  const values = Array.from(
    { length: ITEMS },
    (_, n) => `('c${n}', 'g1', 'mine', 'item ${n}', 'note', ${n}, 'c', 'm')`,
  );
  await controller.query.rows(
    admin,
    `insert into ${ITEM_CLASS} (code, grp, owner, label, note, amount, cost, margin) values ${values.join(", ")}`,
  );
  const user = await principalOf(controller, userName(7));
  const text = `select code, label, note, amount from ${ITEM_CLASS} where id = ?`;
  const reads = (principal: Principal): Promise<number> =>
    perSecond(READS, 1, async (n) => {
      const rows = await controller.query.rows(principal, text, [`item:c${n % ITEMS}`]);
      if (rows.length !== 1) throw new Error("the object is there");
    });
  for (const principal of [admin, user, admin, user]) await reads(principal);
  const pairs: { ours: number; bare: number }[] = [];
  for (let round = 0; round < READ_ROUNDS; round++) {
    // The order alternates, because work left over from one turn burdens the next.
    const first = round % 2 === 0 ? await reads(user) : undefined;
    const bare = await reads(admin);
    pairs.push({ bare, ours: first ?? (await reads(user)) });
  }
  const against = median(pairs.map(({ bare }) => bare));
  return {
    name: "an object by its id as a library, three nested groups with row conditions and columns",
    unit: "reads/s",
    ours: against * median(pairs.map(({ ours, bare }) => ours / bare)),
    against,
    againstName: "the same by an administrator",
    kind: "ratio",
    goal: 0.95,
  };
}

async function principalOf({ users }: Assembly, username: string): Promise<Principal> {
  const { session } = await users.signIn({ ...CALLER, username });
  const principal = await users.bySession(session, "");
  if (principal === undefined) throw new Error("the session is there");
  return principal;
}

async function peopleFigures(
  where: string,
  engine: Engine,
  controllers: readonly Assembly[],
): Promise<readonly Figure[]> {
  const [first, last] = [controllers[0], controllers.at(-1)];
  if (first === undefined || last === undefined) throw new RangeError("there is a controller");
  const app = await first.http();
  try {
    return [
      await signInFigure(where, engine, first),
      await lookupFigure(where, app, first),
      await changeFigure(where, first, last),
    ];
  } finally {
    await app.close();
  }
}

/** Time of a sign-in beyond a check of the same hash, in turns. */
async function signInFigure(where: string, engine: Engine, { users }: Assembly): Promise<Figure> {
  const entry = await (await engine.tenant("matrix")).kv.get(USERS + userName(0));
  if (entry === undefined) throw new Error("the user is there");
  const { hash } = decodeStored<UserRecord>(entry.value);
  const beyondMs: number[] = [];
  for (let n = 0; n < SIGN_INS; n++) {
    const bareMs = await tookMs(() => verify(hash, PASSWORD));
    beyondMs.push((await tookMs(() => users.signIn({ ...CALLER, username: userName(n * 97) }))) - bareMs);
  }
  return most(`a sign-in beyond argon2id, median, ${where}`, "ms", { ours: median(beyondMs), against: 30 });
}

async function lookupFigure(where: string, app: FastifyInstance, { users }: Assembly): Promise<Figure> {
  const { session } = await users.signIn({ ...CALLER, username: "admin" });
  const timesMs: number[] = [];
  for (let n = 0; n < LOOKUPS; n++) {
    const query = { user: userName(n * 97), class: ITEM_CLASS, sessionid: session };
    const began = process.cpuUsage();
    const { body } = await app.inject({ url: "/admin/perms/explain", query });
    timesMs.push(cpuMs(began));
    const { message } = JSON.parse(body) as { readonly message: { readonly who: readonly unknown[] } };
    if (message.who.length < 100) throw new Error("groups give the right");
  }
  return most(`who may read a class, p95 of processor time, ${where}`, "ms", {
    ours: quantile(timesMs, 0.95),
    against: 100,
  });
}

/** Longest time from the call until a session at the other controller has the new rights. */
async function changeFigure(where: string, first: Assembly, last: Assembly): Promise<Figure> {
  const user = 11;
  const { session } = await last.users.signIn({ ...CALLER, username: userName(user) });
  const timesMs: number[] = [];
  for (let n = 0; n < CHANGES; n++) {
    const opened = `/matrix/opened${n}`;
    timesMs.push(
      await tookMs(async () => {
        await first.groups.update(testPrincipal(), { name: leafOf(user), readonly: [opened] });
        const endMs = performance.now() + CHANGE_DEADLINE_MS;
        for (;;) {
          const principal = await last.users.bySession(session, "");
          if (principal && classAccess(principal, opened).readable) return;
          if (performance.now() > endMs) throw new Error("the change is told");
          await new Promise((resolve) => setImmediate(resolve));
        }
      }),
    );
  }
  const name = `a change of one of 1,000 groups until it holds, the longest of ${CHANGES}, ${where}`;
  return most(name, "ms", { ours: Math.max(...timesMs), against: CHANGE_MAX_MS });
}

/** Memory of a program that was started with the tenants: all pages that it holds, including those of files. */
async function tenantsFigure(): Promise<Figure> {
  const odp = await Installation.start({});
  try {
    await odp.session();
    await perSecond(TENANTS - 1, TENANTS_AT_ONCE, (n) =>
      odp.ok("POST", "/companys", JSON.stringify({ name: `tenant${n}`, password: PASSWORD })),
    );
    await odp.controller.kill("SIGTERM");
    await odp.startController();
    await odp.ok("GET", "/companys");
    return most(`${TENANTS} tenants at rest, resident memory, embedded`, "MB", {
      ours: residentMb(odp.controller.pid),
      against: TENANTS_MAX_MB,
    });
  } finally {
    await odp.stop();
  }
}

/** CPU time of all threads in ms; other load on the machine does not count. */
function cpuMs(began: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(began);
  return (user + system) / 1_000;
}

async function tookMs(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

function most(name: string, unit: string, { ours, against }: Pick<Figure, "ours" | "against">): Figure {
  return { name, unit, ours, against, againstName: "the limit", kind: "most", goal: 1 };
}
