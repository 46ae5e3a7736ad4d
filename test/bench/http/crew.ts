import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { assemble, type Assembly } from "../../../controller/assembly.ts";
import { GroupStore } from "../../../controller/areas/groups/store.ts";
import type { GroupRecord } from "../../../controller/areas/groups/types.ts";
import { type UserRecord, USERS } from "../../../controller/areas/users/store.ts";
import { idKey, memberKey } from "../../../controller/areas/users/directory/tree-store.ts";
import type { Runtime } from "../../../controller/runtime.ts";
import { openSecretKey } from "../../../controller/secrets/index.ts";
import type { Engine } from "../../../controller/store/engine.ts";
import { decodeStored, encodeJson } from "../../../controller/store/format.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { testPrincipal } from "../../helpers/time/runtime.ts";

/** A large tenant whose users are each in three nested groups, and controllers on one engine that have it. */

export const USERS_OF_CREW = 10_000;
const GROUPS_OF_CREW = 1_000;
export const PASSWORD = "correct horse battery";
export const ITEM_CLASS = "/matrix/bench/item";
const MIDDLES = 90;
const TOPS = 10;
const LEAVES = GROUPS_OF_CREW - MIDDLES - TOPS;
const USERS_PER_WRITE = 40;
const GROUPS_PER_WRITE = 50;
const FIRST_ID = 5_000_000;

export const userName = (n: number): string => `u${n % USERS_OF_CREW}`;
/** The innermost of the three groups of a user. */
export const leafOf = (n: number): string => `leaf${(n % USERS_OF_CREW) % LEAVES}`;

export function realRuntime(): Runtime {
  const random = { next: () => Math.random(), bytes: (count: number) => new Uint8Array(randomBytes(count)) };
  return { clock: realClock, random, log: pino({ level: "silent" }) };
}

/** Whole controllers without ports, on engines that share their stores. The first one creates the crew. */
export async function withCrew<T>(
  engines: readonly Engine[],
  work: (controllers: readonly Assembly[]) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "odp-bench-users-"));
  const controllers: Assembly[] = [];
  try {
    const secrets = await openSecretKey({ file: join(folder, "secret.key"), create: true });
    for (const [at, engine] of engines.entries())
      controllers.push(
        await assemble({
          engine,
          secrets,
          version: "bench",
          runtime: realRuntime(),
          controllerId: `bench-${at}`,
          publicNames: ["odp.example"],
          dataDir: folder,
          agentPort: () => 0,
        }),
      );
    const [first] = controllers;
    const [engine] = engines;
    if (first === undefined || engine === undefined) throw new RangeError("there is a controller");
    await makeCrew(first, engine);
    for (const controller of controllers) controller.start();
    return await work(controllers);
  } finally {
    for (const controller of controllers) await controller.close();
    await rm(folder, { recursive: true });
  }
}

async function makeCrew({ tenants, users, query }: Assembly, engine: Engine): Promise<void> {
  await tenants.ensureTenant({ name: "matrix", ospace: "/matrix" });
  await users.operator.ensureAdministrator({ tenant: "matrix", username: "admin", password: PASSWORD });
  const rights = { grants: [], data: [] };
  await users.create(testPrincipal(), { username: userName(0), password: PASSWORD, rights });
  await copyUser(engine);
  await makeGroups(engine);
  await query.rows(
    testPrincipal(),
    `create class ${ITEM_CLASS} (code varchar, grp varchar, owner varchar, label varchar, note varchar, amount int, cost varchar, margin varchar, keys(code), index(grp))`,
  );
}

/** Copies the first user with its password hash, because hashing takes a core for tens of milliseconds. */
async function copyUser(engine: Engine): Promise<void> {
  const { kv } = await engine.tenant("matrix");
  const entry = await kv.get(USERS + userName(0));
  if (entry === undefined) throw new Error("the first user is not there");
  const record = decodeStored<UserRecord>(entry.value);
  for (let from = 1; from < USERS_OF_CREW; from += USERS_PER_WRITE) {
    const numbers = Array.from({ length: Math.min(USERS_PER_WRITE, USERS_OF_CREW - from) }, (_, at) => from + at);
    const then = numbers.flatMap((n) => {
      const [username, id] = [userName(n), String(BigInt(record.id) + BigInt(n))];
      return [
        { kind: "put", key: USERS + username, value: encodeJson({ ...record, username, id }) },
        { kind: "put", key: idKey(id), value: encodeJson({ username }) },
        { kind: "put", key: memberKey(record.parent, username), value: encodeJson({ id }) },
      ] as const;
    });
    await kv.txn({ if: [], then });
  }
}

/** Leaves contain the users, each middle group ten leaves, and each top group nine middle groups. */
async function makeGroups(engine: Engine): Promise<void> {
  const store = new GroupStore(engine);
  const groups = [
    ...Array.from({ length: LEAVES }, (_, at) => leaf(at)),
    ...Array.from({ length: MIDDLES }, (_, at) => middle(at)),
    ...Array.from({ length: TOPS }, (_, at) => top(at)),
  ];
  for (let from = 0; from < groups.length; from += GROUPS_PER_WRITE) {
    const change = { groups: groups.slice(from, from + GROUPS_PER_WRITE), paths: [] };
    await store.change("matrix", await store.load("matrix"), { change, mark: String(from) });
  }
}

type Opening = Partial<Omit<GroupRecord, "id" | "name" | "parent">>;

function group(at: number, name: string, opening: Opening): GroupRecord {
  const nothing = { member: [], readonly: [], writable: [], readexps: [], fields: {}, tags: [] };
  return { ...nothing, ...opening, id: String(FIRST_ID + at), name, parent: "" };
}

function leaf(at: number): GroupRecord {
  const members = Math.ceil((USERS_OF_CREW - at) / LEAVES);
  return group(at, `leaf${at}`, {
    member: Array.from({ length: members }, (_, of) => `U/${userName(at + of * LEAVES)}`),
    readexps: ["/matrix/bench: grp = 'g1'"],
  });
}

function middle(at: number): GroupRecord {
  const member = Array.from({ length: LEAVES / MIDDLES }, (_, of) => `G${FIRST_ID + at + of * MIDDLES}`);
  return group(LEAVES + at, `middle${at}`, {
    member,
    readonly: ["/matrix/bench"],
    fields: { "/matrix/bench": "code,label" },
  });
}

function top(at: number): GroupRecord {
  const member = Array.from({ length: MIDDLES / TOPS }, (_, of) => `G${FIRST_ID + LEAVES + at + of * TOPS}`);
  return group(LEAVES + MIDDLES + at, `top${at}`, {
    member,
    writable: ["/matrix/bench"],
    readexps: ["/matrix/bench: owner != 'other'"],
    fields: { "/matrix/bench": "-cost,-margin" },
  });
}
