import { afterAll, beforeAll, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { SENT_HOSTS_KNOWN_MAX, SENT_POLICIES_KEPT_MAX, SENT_POLICIES_MAX_BYTES } from "../../../common/limits.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { MemoryStores } from "../../../test/helpers/engines/memory/stores.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores } from "../../store/engine.ts";
import type { KvStore } from "../../store/kv.ts";
import type { DesiredPolicy } from "../hosts/index.ts";
import { SentPolicies } from "./sent-policies.ts";

let engine: TestEngine;
beforeAll(async () => {
  engine = await openTestEngine();
});
afterAll(() => engine[Symbol.asyncDispose]());

let hosts = 0;
const newHost = () => `h${++hosts}`;

function policy(name: string, spec: unknown = { rule: `/matrix/rules/${name}` }): DesiredPolicy {
  return { name, revision: 1, spec: JSON.stringify(spec) };
}

/** A controller over the shared store. `assigned` is what its hosts are to be sent by now, and may be changed. */
function controller(assigned: DesiredPolicy[], stores: Stores = engine): SentPolicies {
  const desired = () => Promise.resolve({ revision: 1, policies: [...assigned] });
  return new SentPolicies({ stores, desired: { desired } });
}

/** Those of the names, and of the rules that are called so, which the host was not sent. */
async function missing(sent: SentPolicies, host: string, names: readonly string[], tenant = "matrix") {
  const rules = names.map((name) => `/matrix/rules/${name}`);
  const found = await sent.missing(tenant, host, { policies: new Set(names), rules: new Set(rules) });
  return { policies: [...found.policies], rules: [...found.rules].map((rule) => rule.replace("/matrix/rules/", "")) };
}

const NONE = { policies: [], rules: [] };

/** The stores, with the store of keys of each tenant changed. */
function withKv(instead: (kv: KvStore) => Partial<KvStore>, stores: Stores = engine): Stores {
  const wrapped = async (name: string) => {
    const store = await stores.tenant(name);
    return { ...store, kv: wrappedKv(store.kv, instead(store.kv)) };
  };
  return { system: () => stores.system(), tenant: wrapped };
}

test("a host was sent what it is to be sent, with the rules of that, and nothing else", async () => {
  const host = newHost();
  const withoutRule = [{}, { rule: "" }, { rule: 5 }, null, "text"].map((spec, at) => policy("bcdef"[at] ?? "", spec));
  const sent = controller([policy("a"), ...withoutRule]);
  expect((await sent.desired("matrix", host)).policies).toHaveLength(6);
  expect(await missing(sent, host, ["a"])).toEqual(NONE);
  expect(await missing(sent, host, ["a", "b", "x"])).toEqual({ policies: ["x"], rules: ["b", "x"] });
  const asked = { policies: new Set<string>(), rules: new Set([""]) };
  expect([...(await sent.missing("matrix", host, asked)).rules]).toEqual([""]);
});

test("a rule is needed as long as the host is to have a policy with it", async () => {
  const assigned = [policy("a"), policy("b")];
  const sent = controller(assigned);
  const host = newHost();
  await sent.desired("matrix", host);
  expect(await sent.needs("matrix", host, "/matrix/rules/b")).toBe(true);
  assigned.pop();
  expect(await sent.needs("matrix", host, "/matrix/rules/b")).toBe(false);
  expect(await missing(sent, host, ["b"])).toEqual(NONE);
});

test("a policy that was taken away still counts as sent, also to another controller and after a restart", async () => {
  const [host, assigned] = [newHost(), [policy("a")]];
  const first = controller(assigned);
  await first.desired("matrix", host);
  assigned.splice(0, 1, policy("b"));
  await first.desired("matrix", host);
  for (const sent of [first, controller([])]) {
    expect(await missing(sent, host, ["a", "b", "x"])).toEqual({ policies: ["x"], rules: ["x"] });
  }
});

test("a policy that is sent again with another rule has been sent by both", async () => {
  const [host, assigned] = [newHost(), [policy("a")]];
  const sent = controller(assigned);
  await sent.desired("matrix", host);
  assigned.splice(0, 1, policy("a", { rule: "/matrix/rules/b" }));
  await sent.desired("matrix", host);
  expect((await missing(controller([]), host, ["a", "b"])).rules).toEqual([]);
});

test("it is on record before it is sent: no policy goes out while the store is away", async () => {
  const away = withKv(() => ({ put: () => Promise.reject(new AppError("unavailable", "away")) }));
  await expect(controller([policy("a")], away).desired("matrix", newHost())).rejects.toMatchObject({
    code: "unavailable",
  });
});

test("a write whose outcome is unknown is looked at again", async () => {
  const host = newHost();
  const unsure = withKv((kv) => ({
    put: async (...call) => {
      await kv.put(...call);
      throw new AppError("unknown_outcome", "perhaps");
    },
  }));
  await controller([policy("a")], unsure).desired("matrix", host);
  expect(await missing(controller([]), host, ["a"])).toEqual(NONE);
});

test("controllers that send at the same time lose nothing of each other; an endless race is given up", async () => {
  const host = newHost();
  let between = () => controller([policy("b")]).desired("matrix", host);
  const raced = withKv((kv) => ({
    put: async (...call) => {
      await between();
      return kv.put(...call);
    },
  }));
  let rounds = 0;
  const once = between;
  between = () => (++rounds === 1 ? once() : Promise.resolve({ revision: 1, policies: [] }));
  await controller([policy("a")], raced).desired("matrix", host);
  expect(await missing(controller([]), host, ["a", "b"])).toEqual(NONE);
  between = () => controller([policy(`other-${++rounds}`)]).desired("matrix", host);
  await expect(controller([policy("c")], raced).desired("matrix", host)).rejects.toMatchObject({ code: "unavailable" });
});

test("what is known to be sent is not written again, and what is not sent is asked for once", async () => {
  const [host, assigned] = [newHost(), [policy("a")]];
  const calls = { get: 0, put: 0 };
  const counted = withKv((kv) => ({
    get: (key) => (calls.get++, kv.get(key)),
    put: (...call) => (calls.put++, kv.put(...call)),
  }));
  const sent = controller(assigned, counted);
  for (let round = 0; round < 3; round++) await sent.desired("matrix", host);
  expect(calls).toEqual({ get: 1, put: 1 });
  for (let round = 0; round < 3; round++) expect(await missing(sent, host, ["a"])).toEqual(NONE);
  assigned.push(policy("late"));
  expect(await missing(sent, host, ["late"]), "assigned meanwhile").toEqual(NONE);
  for (let round = 0; round < 3; round++) {
    expect(await missing(sent, host, ["x"])).toEqual({ policies: ["x"], rules: ["x"] });
  }
  expect(calls.put).toBe(2);
});

test("a new session looks again, because another controller may have sent more", async () => {
  const host = newHost();
  const here = controller([policy("a")]);
  await here.desired("matrix", host);
  expect(await missing(here, host, ["b"])).toEqual({ policies: ["b"], rules: ["b"] });
  await controller([policy("a"), policy("b")]).desired("matrix", host);
  here.look("matrix", host);
  expect(await missing(here, host, ["b"])).toEqual(NONE);
});

test("a host that is forgotten was sent nothing, and neither was its namesake in another tenant", async () => {
  const [host, assigned] = [newHost(), [policy("a")]];
  const sent = controller(assigned);
  await sent.desired("matrix", host);
  expect(await missing(controller([]), host, ["a"], "second")).toEqual({ policies: ["a"], rules: ["a"] });
  assigned.splice(0);
  await sent.forget("matrix", host);
  for (const asked of [sent, controller([])])
    expect(await missing(asked, host, ["a"])).toEqual({ policies: ["a"], rules: ["a"] });
});

test("beyond the number kept, what was sent longest ago goes first; what is sent again is young again", async () => {
  const [host, assigned] = [newHost(), [policy("a"), policy("b")]];
  const sent = controller(assigned);
  const send = (...names: readonly string[]) => {
    assigned.splice(0, assigned.length, ...names.map((name) => policy(name)));
    return sent.desired("matrix", host);
  };
  await send("a", "b");
  await send("a", "c");
  await send(...Array.from({ length: SENT_POLICIES_KEPT_MAX - 2 }, (_, at) => `p${at}`));
  assigned.splice(0);
  expect(await missing(sent, host, ["a", "b", "c", "p0"])).toEqual({ policies: ["b"], rules: ["b"] });
});

test("names too long to keep all of them take no more than their bound, the latest stay", async () => {
  const host = newHost();
  const names = Array.from({ length: 1_000 }, (_, at) => `${at}-${"x".repeat(600)}`);
  await controller(names.map((name) => policy(name))).desired("matrix", host);
  const entry = await (await engine.tenant("matrix")).kv.get(`sent/${host}`);
  expect(entry?.value.length).toBeLessThanOrEqual(SENT_POLICIES_MAX_BYTES + 100);
  const left = await missing(controller([]), host, [names[0] ?? "", names.at(-1) ?? ""]);
  expect(left).toEqual({ policies: [names[0]], rules: [names[0]] });
});

test("so many hosts are known and no more: of those the store is not asked again, the one asked for longest ago goes", async () => {
  const reads: string[] = [];
  const counted = withKv((kv) => ({ get: (key) => (reads.push(key), kv.get(key)) }), new MemoryStores());
  const sent = controller([], counted);
  const ask = async (...places: readonly number[]) => {
    reads.splice(0);
    for (const at of places) await sent.desired("matrix", `h${at}`);
    return reads;
  };
  await ask(...Array.from({ length: SENT_HOSTS_KNOWN_MAX }, (_, at) => at));
  expect(await ask(2, 1, 0), "all known").toEqual([]);
  expect(await ask(SENT_HOSTS_KNOWN_MAX)).toHaveLength(1);
  expect(await ask(0, 1, 2, 4), "still known").toEqual([]);
  expect(await ask(3), "gone for the last one").toEqual(["sent/h3"]);
});

test("a policy has its zone and keeps it, whatever it is called", async () => {
  const names = ["__proto__", "constructor", "toString"];
  const assigned = names.map((name) =>
    policy(name, { rule: "/matrix/rules/a", attrs: { time_zone: "Europe/Berlin" } }),
  );
  const host = newHost();
  await controller(assigned).desired("matrix", host);
  const zones = await controller([]).zones("matrix", host, "/matrix/rules/a");
  expect(Object.entries(zones)).toEqual(names.map((name) => [name, "Europe/Berlin"]));
});

test("zones of policies are those they have now, or had last, by the rule that needs them", async () => {
  const zoned = (name: string, zone: string) =>
    policy(name, { rule: "/matrix/rules/a", attrs: { time_zone: zone, other: "x" } });
  const [host, assigned] = [newHost(), [zoned("a", "Europe/Berlin"), zoned("bad", "Mars/Base"), policy("b")]];
  const sent = controller(assigned);
  const zones = (of: SentPolicies, rule = "/matrix/rules/a") => of.zones("matrix", host, rule);
  expect(await zones(sent)).toEqual({ a: "Europe/Berlin" });
  expect(await zones(sent, "/matrix/rules/b")).toEqual({});
  assigned.splice(0, 1, zoned("a", "Asia/Tokyo"));
  await sent.desired("matrix", host);
  expect(await zones(sent)).toEqual({ a: "Asia/Tokyo" });
  assigned.splice(0);
  expect(await zones(controller(assigned))).toEqual({ a: "Asia/Tokyo" });
  assigned.push(policy("a"));
  expect(await zones(controller(assigned))).toEqual({});
});
