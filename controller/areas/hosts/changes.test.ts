import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import type { Expected } from "../../../common/revisions.ts";
import { BareAgent, openTestHosts, type TestHosts } from "../../../test/helpers/hosts/hosts.ts";
import { eventually } from "../../../test/helpers/programs/programs.ts";
import { AGED_CHANGES, TIMES } from "../../../test/helpers/time/times.ts";
import { TEST_SECRETS } from "../../../test/helpers/time/runtime.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores } from "../../store/engine.ts";
import type { KvStore } from "../../store/kv.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import type { UnrestrictedObjects } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { QueryService } from "../query/index.ts";
import { HostRecords } from "./records.ts";

/** Changes of a host are made one after the other, each on the revision that its caller expects. */

let world: TestHosts;
let other: TestHosts;
beforeAll(async () => {
  world = await openTestHosts();
  other = await openTestHosts({ beside: world });
});
afterAll(async () => {
  await other[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

const admin = () => world.principal();
const revisionOf = async (host: string) => (await world.hosts.get(admin(), host)).revision;
const on = (...revisions: string[]): { expected: Expected } => ({ expected: { revisions, isAbsent: false } });
const IS_ABSENT = { expected: { isAbsent: true } };
const stale = { code: "stale" };
const mql = (text: string) => new QueryService({ objects: world.objects, runtime: world.runtime }).rows(admin(), text);
const update = (what: string) => mql(`update /matrix/system/hostinfo ${what} where host = 'ways'`);

test.each<readonly [string, () => Promise<unknown>]>([
  ["a call", () => world.hosts.save(admin(), { host: "ways", domain: "b" })],
  ["a secret", () => world.hosts.save(admin(), { host: "ways", config: { password: "hunter2" } })],
  ["another controller", () => other.hosts.save(admin(), { host: "ways", hostgroups: ["b"] })],
  ["a tag", () => update("tags = tags + 'b'")],
  ["a column of a statement", () => update("domain = 'c'")],
  ["an insert over it", () => mql("insert into /matrix/system/hostinfo (host, domain) values ('ways', 'd')")],
  ["the enrolment of its agent", () => world.enrol("ways")],
  [
    "its removal and another host of that name",
    async () => {
      await world.hosts.remove(admin(), "ways");
      await world.hosts.save(admin(), { host: "ways" });
    },
  ],
])("a host gets another revision by %s", async (_, change) => {
  await world.hosts.save(admin(), { host: "ways", domain: "a" });
  const before = await revisionOf("ways");
  await change();
  expect(await revisionOf("ways")).not.toBe(before);
});

test("facts, states and depots leave the revision as it is, and so does another enrolment", async () => {
  const identity = await world.enrol("told");
  const before = await revisionOf("told");
  const agent = new BareAgent(world.agentPort, identity);
  const facts = { host: "told", os: "linux", arch: "x", addresses: ["10.6.6.6"], pid: 1, values: { load: "1" } };
  await agent.hello({ facts });
  const shown = async () => {
    const { config, iplist } = await world.hosts.get(admin(), "told");
    return config.os === "linux" && config.load === "1" && iplist.length === 1;
  };
  await eventually("the facts are on record", 10_000, shown);
  await world.hosts.noteDepot(admin(), "told", { name: "tools", version: "1" }, true);
  agent.close();
  await world.enrol("told");
  expect(await revisionOf("told")).toBe(before);
});

test("a host is made, changed and removed only as its caller expects it", async () => {
  const made = await world.hosts.save(admin(), { host: "expected" }, IS_ABSENT);
  await expect(world.hosts.save(admin(), { host: "expected" }, IS_ABSENT)).rejects.toMatchObject(stale);
  await expect(world.hosts.save(admin(), { host: "none" }, on("0"))).rejects.toMatchObject(stale);
  expect(await world.hosts.exists(admin(), "none")).toBe(false);
  const next = await world.hosts.save(admin(), { host: "expected", domain: "a" }, on(made.revision));
  const late = world.hosts.save(admin(), { host: "expected", domain: "b" }, on(made.revision));
  await expect(late).rejects.toMatchObject({ ...stale, details: { revision: next.revision, by: admin().user } });
  await expect(world.hosts.remove(admin(), "expected", on(made.revision).expected)).rejects.toMatchObject(stale);
  expect((await world.hosts.get(admin(), "expected")).domain).toBe("a");
  await world.hosts.remove(admin(), "expected", on(next.revision).expected);
  expect(await world.hosts.exists(admin(), "expected")).toBe(false);
});

test("of two controllers that change, make or remove a host on one revision, one does", async () => {
  for (let round = 0; round < 5 * TIMES; round++) {
    const host = `raced-${round}`;
    const outcomes = (works: readonly Promise<unknown>[]) =>
      Promise.allSettled(works).then((all) =>
        all.map((one) => (one.status === "rejected" ? codeOf(one.reason) : "ok")),
      );
    const both = [world, other];
    expect((await outcomes(both.map(({ hosts }) => hosts.save(admin(), { host }, IS_ABSENT)))).sort()).toEqual([
      "ok",
      "stale",
    ]);
    const now = on(await revisionOf(host));
    const changes = both.map(({ hosts }, at) => hosts.save(admin(), { host, domain: String(at) }, now));
    expect((await outcomes(changes)).sort()).toEqual(["ok", "stale"]);
    const last = await revisionOf(host);
    const [removed, changed] = await outcomes([
      world.hosts.remove(admin(), host, on(last).expected),
      other.hosts.save(admin(), { host, domain: "c" }, on(last)),
    ]);
    expect([removed, changed].sort()).toEqual(["ok", "stale"]);
    expect(await world.hosts.exists(admin(), host)).toBe(changed === "ok");
  }
});

test("a host that was stored before there were revisions has the first one until it changes", async () => {
  const path = "/matrix/system/hostinfo";
  await world.objects.unrestricted.insert(admin(), path, [{ host: "former", domain: "a" }]);
  expect(await revisionOf("former")).toBe("0");
  await world.hosts.save(admin(), { host: "former", domain: "b" }, on("0"));
  await expect(world.hosts.save(admin(), { host: "former", domain: "c" }, on("0"))).rejects.toMatchObject(stale);
});

test("a condition on a hidden host tells nothing of its last change", async () => {
  await world.hosts.save(admin(), { host: "hidden", domain: "red" });
  const data = [{ class: "/", access: "write" as const, where: "domain = 'green'" }];
  const writer = { ...admin(), grants: ["hosts:read", "hosts:write", "objects:read", "objects:write"], data };
  const now = await revisionOf("hidden");
  for (const { expected } of [on(now), on("0"), IS_ABSENT]) {
    await expect(world.hosts.save(writer, { host: "hidden" }, { expected })).rejects.toSatisfy(tellsNothing("denied"));
    await expect(world.hosts.remove(writer, "hidden", expected)).rejects.toSatisfy(tellsNothing("not_found"));
  }
  expect(await revisionOf("hidden")).toBe(now);

  function tellsNothing(code: string) {
    return (error: unknown): boolean => codeOf(error) === code && !JSON.stringify(error).includes(now);
  }
});

test("a refused change leaves nothing behind", async () => {
  await world.hosts.save(admin(), { host: "refused", domain: "a" });
  const before = [await revisionOf("refused"), await keysOf("refused")];
  const config = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`c${at}`, "x".repeat(60_000)]));
  await expect(world.hosts.save(admin(), { host: "refused", config })).rejects.toMatchObject({ code: "too_large" });
  const reader = { ...admin(), data: [{ class: "/", access: "read" as const }] };
  await expect(world.hosts.save(reader, { host: "refused", domain: "b" })).rejects.toMatchObject({ code: "denied" });
  expect([await revisionOf("refused"), await keysOf("refused")]).toEqual(before);
});

test("a change that its record cannot take is over: the next one is made", async () => {
  const failure = new AppError("invalid", "not in this class");
  await world.hosts.save(admin(), { host: "taken", domain: "a" });
  const refusing = recordsOf((name) => name === "update", { failure });
  await expect(refusing.save(admin(), { host: "taken", domain: "b" })).rejects.toMatchObject({ code: "invalid" });
  expect(await keysOf("taken")).toEqual(["hosts/sequence/taken"]);
  const refusedInsert = recordsOf((name) => name === "ingest", { failure });
  await expect(refusedInsert.save(admin(), { host: "untaken" })).rejects.toMatchObject({ code: "invalid" });
  expect(await keysOf("untaken")).toEqual([]);
  expect(await world.hosts.save(admin(), { host: "taken", domain: "c" })).toMatchObject({ domain: "c" });
});

test("a save answers the revision that it made, also if another change follows at once", async () => {
  const { revision: first } = await world.hosts.save(admin(), { host: "followed", domain: "a" });
  let follows = true;
  const slow = recordsOf(async (name) => {
    if (name === "get" && follows && (await revisionOf("followed")) !== first) {
      follows = false;
      await other.hosts.save(admin(), { host: "followed", domain: "c" });
    }
    return false;
  });
  const { revision } = await slow.save(admin(), { host: "followed", domain: "b" });
  expect(follows).toBe(false);
  await expect(world.hosts.save(admin(), { host: "followed" }, on(revision))).rejects.toMatchObject(stale);
});

test("lists that statements change at the same time keep every item", async () => {
  await world.hosts.save(admin(), { host: "listed", hostgroups: ["a"] });
  const add = (item: string) =>
    mql(`update /matrix/system/hostinfo hostgroups = hostgroups + '${item}' where host = 'listed'`);
  await Promise.all(["b", "c", "d", "e"].map(add));
  expect([...(await world.hosts.get(admin(), "listed")).hostgroups].sort()).toEqual(["a", "b", "c", "d", "e"]);
});

test("hosts need no room: a tenant whose objects are as many as it may have gets more", async () => {
  const requireRoom = () => Promise.reject(new AppError("too_large", "no room"));
  const records = recordsOf(() => false, { requireRoom });
  expect(await records.save(admin(), { host: "roomless" })).toMatchObject({ host: "roomless" });
});

test("a host whose removal is decided enrols again as one with an agent", async () => {
  await world.enrol("again");
  await expect(recordsOf((name) => name === "remove").remove(admin(), "again")).rejects.toMatchObject({
    code: "unknown_outcome",
  });
  await world.enrol("again");
  await world.hosts.maintain("matrix");
  expect(await world.hosts.get(admin(), "again")).toMatchObject({ isagent: 1 });
});

test("maintenance that cannot finish a change says so", async () => {
  const dead = recordsOf((name) => name === "ingest");
  await expect(dead.save(admin(), { host: "unfinished" })).rejects.toMatchObject({ code: "unknown_outcome" });
  await expect(dead.finish("matrix")).rejects.toMatchObject({ code: "internal" });
  await world.hosts.maintain("matrix");
  expect(await world.hosts.exists(admin(), "unfinished")).toBe(true);
});

test("a change whose answer was lost is told as made, although another controller has finished it", async () => {
  const { revision } = await world.hosts.save(admin(), { host: "lost", domain: "a" });
  let answers = 0;
  const stores: Stores = {
    system: () => world.engine.system(),
    tenant: async (name) => {
      const store = await world.engine.tenant(name);
      const txn: KvStore["txn"] = async (request) => {
        const answer = await store.kv.txn(request);
        if (answers++ > 0) return answer;
        await other.hosts.maintain("matrix");
        throw new AppError("unknown_outcome", "the answer was lost");
      };
      return { ...store, kv: wrappedKv(store.kv, { txn }) };
    },
  };
  const records = recordsOf(() => false, { stores });
  expect(await records.save(admin(), { host: "lost", domain: "b" }, on(revision))).toMatchObject({ domain: "b" });
});

test("many changes of one host leave one entry, and its removal none", async () => {
  await world.hosts.save(admin(), { host: "aged" });
  const count = Math.ceil(AGED_CHANGES / 20);
  for (let at = 0; at < count; at++)
    await world.hosts.save(admin(), { host: "aged", domain: String(at) }, on(await revisionOf("aged")));
  expect(await keysOf("aged")).toEqual(["hosts/sequence/aged"]);
  await world.hosts.remove(admin(), "aged");
  expect(await keysOf("aged")).toEqual([]);
});

describe("a controller that dies between its decision and the record", () => {
  const dying = () => recordsOf((name) => name === "update" || name === "ingest" || name === "remove");

  test("leaves the former revision with the former content, until the next change finishes it", async () => {
    const before = await world.hosts.save(admin(), { host: "left", domain: "a" });
    const half = dying().save(admin(), { host: "left", domain: "b", tags: ["t"] }, on(before.revision));
    await expect(half).rejects.toMatchObject({ code: "unknown_outcome" });
    expect(await world.hosts.get(admin(), "left")).toEqual(before);
    // It is decided, so the former revision is over.
    await expect(other.hosts.save(admin(), { host: "left" }, on(before.revision))).rejects.toMatchObject(stale);
    const after = await world.hosts.get(admin(), "left");
    expect(after).toMatchObject({ domain: "b", tags: ["t"] });
    expect(after.revision).not.toBe(before.revision);
  });

  test("is followed by the maintenance of any controller", async () => {
    const unknown = { code: "unknown_outcome" };
    await expect(dying().save(admin(), { host: "made", domain: "a" }, IS_ABSENT)).rejects.toMatchObject(unknown);
    expect(await world.hosts.exists(admin(), "made")).toBe(false);
    await other.hosts.maintain("matrix");
    expect(await world.hosts.get(admin(), "made")).toMatchObject({ domain: "a" });
    await expect(dying().remove(admin(), "made")).rejects.toMatchObject(unknown);
    await other.hosts.maintain("matrix");
    expect(await world.hosts.exists(admin(), "made")).toBe(false);
    expect(await keysOf("made")).toEqual([]);
  });

  test("and wakes up later changes nothing any more", async () => {
    await world.hosts.save(admin(), { host: "late", domain: "a" });
    const [held, reached] = [signal(), signal()];
    const slow = recordsOf(async (name) => {
      if (name !== "update") return false;
      reached.give();
      await held.given;
      return false;
    });
    const late = slow.save(admin(), { host: "late", domain: "b", tags: ["b"] });
    await reached.given;
    const next = await other.hosts.save(admin(), { host: "late", domain: "c", tags: ["c"] });
    held.give();
    await late;
    expect(await world.hosts.get(admin(), "late")).toEqual(next);
  });
});

test("no change is lost among controllers that fail at random", async () => {
  const random = seededRandom(7);
  const fails = (name: CallName) => name !== "get" && random.next() < 0.3;
  const writers = [recordsOf(fails), recordsOf(fails), recordsOf(() => false)];
  await world.hosts.save(admin(), { host: "counted", domain: "0" });
  let made = 0;
  const seen = new Map<string, Set<string>>();
  await Promise.all(
    writers.map(async (records) => {
      for (let at = 0; at < 10 * TIMES; at++) {
        const { domain, revision } = await world.hosts.get(admin(), "counted");
        seen.set(revision, (seen.get(revision) ?? new Set()).add(domain));
        const next = { host: "counted", domain: String(Number(domain) + 1) };
        const outcome = await records.save(admin(), next, on(revision)).then(() => "ok", codeOf);
        if (outcome === "ok" || outcome === "unknown_outcome") made++;
        else expect(["stale", "internal", "conflict"]).toContain(outcome);
      }
    }),
  );
  await world.hosts.maintain("matrix");
  expect(made).toBeGreaterThan(5);
  // A revision is never seen with the content of another one.
  expect([...seen.values()].filter(({ size }) => size > 1)).toEqual([]);
  expect((await world.hosts.get(admin(), "counted")).domain).toBe(String(made));
});

type CallName = keyof Pick<UnrestrictedObjects, "update" | "ingest" | "remove" | "get">;

interface Faults {
  readonly failure?: AppError;
  readonly stores?: Stores;
  readonly requireRoom?: () => Promise<void>;
}

/** Records of another controller, whose calls of objects fail when `fails` says so. */
function recordsOf(
  fails: (name: CallName) => boolean | Promise<boolean>,
  { failure = new AppError("internal", "This controller died."), stores = world.engine, requireRoom }: Faults = {},
): HostRecords {
  const { objects, runtime } = world;
  const failing = new Proxy(objects.unrestricted, {
    get(target, name: CallName) {
      const made = target[name] as (...given: unknown[]) => Promise<unknown>;
      if (!["update", "ingest", "remove", "get"].includes(name)) return made.bind(target);
      return async (...given: unknown[]) => {
        if (await fails(name)) throw failure;
        return made.apply(target, given);
      };
    },
  });
  return new HostRecords({
    stores,
    objects: {
      visible: objects.visible,
      unrestricted: failing,
      rehearse: async (principal: Principal) =>
        Object.assign(await objects.rehearse(principal), requireRoom && { requireRoom }),
    } as typeof objects,
    query: new QueryService({ objects, runtime }),
    runtime,
    secrets: TEST_SECRETS,
    actAs: (tenant) => Promise.resolve(world.principal(tenant)),
    isOnline: () => Promise.resolve(false),
    isHere: () => false,
  });
}

function signal(): { readonly given: Promise<void>; give(): void } {
  let give = (): void => undefined;
  const given = new Promise<void>((resolve) => (give = resolve));
  return { given, give };
}

async function keysOf(host: string): Promise<readonly string[]> {
  const { kv } = await world.engine.tenant("matrix");
  const keys: string[] = [];
  for await (const { key } of entriesUnder(kv, "hosts/")) if (key.endsWith(`/${host}`)) keys.push(key);
  return keys;
}

function codeOf(error: unknown): string {
  return error instanceof AppError ? error.code : String(error);
}
