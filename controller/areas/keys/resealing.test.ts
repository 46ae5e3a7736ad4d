import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { mapLimited } from "../../../common/concurrency.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { onCluster } from "../../../test/helpers/engines/engine.ts";
import { KeyWorld, NEW, OLD } from "../../../test/helpers/areas/key-world.ts";
import { Mortality } from "../../../test/helpers/engines/mortal.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { keyIdOf, secretBox, type SealedItem, type SealedKind } from "../../secrets/index.ts";
import { encodeJson } from "../../store/format.ts";
import { Resealing } from "./resealing.ts";

const admin = testPrincipal();
const MANY = onCluster ? 100 : 1_000;
const idOf = (key: Uint8Array): string => secretBox([key]).keyId;

let world: KeyWorld;
beforeAll(async () => (world = await KeyWorld.open([OLD])));
afterAll(() => world[Symbol.asyncDispose]());
/** Every test begins with everything sealed by the old key only. */
beforeEach(async () => {
  world.use([OLD, NEW]);
  await sealAll();
  world.use([OLD]);
}, 60_000);

/** A resealing pass by a controller that is alone or takes itself for the only one. */
function pass(kinds: readonly SealedKind[] = world.kinds): Resealing {
  const { secrets } = world;
  const self = { id: "one", addresses: [], url: "", version: "", sinceMs: 0 };
  return new Resealing({
    secrets,
    runtime: testRuntime(realClock),
    controllers: { own: "one", all: () => [self], tellKeys: () => Promise.resolve() },
    tenants: world.assembly.tenants,
    parts: { keep: () => Promise.resolve(), load: () => Promise.resolve() },
    kinds: () => kinds,
    rereads: true,
    settleMs: 0,
  });
}

async function sealAll(resealing = pass()): Promise<void> {
  while ((await resealing.round()) > 0);
}

/** Number of sealed things that need the key. */
async function needing(key: Uint8Array): Promise<number> {
  const { keys } = await world.assembly.keys.status(admin);
  return keys.find(({ id }) => id === idOf(key))?.total ?? 0;
}

const set = (key: string, text: string) => world.assembly.config.set(admin, { key, value: text, secret: true });

/** The kinds, with `instead` around the `sealAnew` of each item. */
function withSealing(instead: (seal: () => Promise<boolean>, item: SealedItem) => Promise<boolean>): SealedKind[] {
  return world.kinds.map((kind) => ({
    ...kind,
    async *all(tenant: string) {
      for await (const item of kind.all(tenant)) {
        const { sealAnew } = item;
        yield sealAnew ? { ...item, sealAnew: () => instead(sealAnew, item) } : item;
      }
    },
  }));
}

test("an entry that is changed while it is sealed anew keeps the change, its versions and its time", async () => {
  await set("/matrix/raced", "before");
  await world.sealOne("raced-host");
  world.use([NEW, OLD]);
  const changing = withSealing(async (seal, { name }) => {
    if (name === "config/matrix/raced") await set("/matrix/raced", "after");
    if (name === "hostinfo:raced-host")
      await world.assembly.hosts.save(admin, { host: "raced-host", config: { password: "changed", apitoken: null } });
    return seal();
  });
  await pass(changing).round();
  await sealAll();
  expect(await world.opened("/matrix/raced")).toBe("after");
  expect((await world.assembly.history.history(admin, "/matrix/raced")).map(({ version }) => version)).toEqual([2, 1]);
  const credentials = (await world.assembly.hosts.find(admin, "raced-host"))?.credentials ?? {};
  expect(Object.keys(credentials)).toEqual(["password"]);
  expect(world.credential(credentials.password ?? "", "raced-host")).toBe("changed");
  expect(await needing(OLD)).toBe(0);
});

test("two controllers that seal anew at the same time lose nothing", async () => {
  for (let at = 0; at < 20; at++) await set(`/matrix/both/${at}`, `value ${at}`);
  world.use([NEW, OLD]);
  await Promise.all([sealAll(pass()), sealAll(pass())]);
  for (let at = 0; at < 20; at++) expect(await world.opened(`/matrix/both/${at}`)).toBe(`value ${at}`);
  expect(await needing(OLD)).toBe(0);
});

// A stop before one write is a stop after the write before it. On the cluster each check is slow, so one covers both.
describe("killed between any two steps", () => {
  test("whoever goes on seals the rest, and everything opens at every moment", async () => {
    await world.sealOne("killed");
    let died = true;
    for (let at = 0; died; at++) {
      for (const isWritten of onCluster ? [true] : [false, true]) {
        world.use(world.secrets.ids[0] === idOf(NEW) ? [OLD, NEW] : [NEW, OLD]);
        const mortality = new Mortality(at, isWritten);
        const step = (seal: () => Promise<boolean>, { name }: SealedItem) =>
          /killed|authority/.test(name) ? mortality.mortal({ put: seal }).put() : seal();
        const round = pass(withSealing(step)).round();
        died = await Promise.race([mortality.died.then(() => true), round.then(() => false)]);
        await world.opensAll("killed");
        await sealAll();
        expect(await needing(world.secrets.ids[1] === idOf(NEW) ? NEW : OLD)).toBe(0);
        await world.opensAll("killed");
      }
    }
  });
});

test("what does not open is told, and keeps nothing else from being sealed anew", async () => {
  const { kv } = await world.engine.tenant("matrix");
  const elsewhere = world.secrets.seal("x", "matrix/config/matrix/elsewhere");
  await kv.put("config/matrix/damaged", encodeJson({ n: 1, id: "i", by: "b", atMs: 0, sealed: elsewhere }));
  await set("/matrix/sound", "sound");
  world.use([NEW, OLD]);
  const resealing = pass();
  await sealAll(resealing);
  expect(resealing.waiting).toMatch(/config\/matrix\/damaged: The sealed secret of .* does not open/);
  expect(await needing(OLD)).toBe(1);
  expect(await world.opened("/matrix/sound")).toBe("sound");
  await kv.delete("config/matrix/damaged");
});

test("an unreadable source changes nothing and is told", async () => {
  world.use([]);
  const resealing = pass();
  await resealing.round();
  expect(resealing.waiting).toContain("There is no key");
  expect(world.secrets.keyId).toBe(idOf(OLD));
});

test("many entries are sealed anew in one pass, and the next finds nothing to do", async () => {
  const { kv } = await world.engine.tenant("second");
  const keys = Array.from({ length: MANY }, (_, at) => `/second/many/${String(at).padStart(5, "0")}`);
  await mapLimited(keys, 16, async (key) => {
    const version = { n: 1, id: "i", by: "b", atMs: 0, sealed: world.secrets.seal(key, `second/config${key}`) };
    await kv.put(`config${key}`, encodeJson(version));
  });
  world.use([NEW, OLD]);
  const resealing = pass();
  expect(await resealing.round()).toBeGreaterThanOrEqual(MANY);
  expect(await resealing.round()).toBe(0);
  expect(await needing(OLD)).toBe(0);
  for (const key of [keys[0] ?? "", keys.at(-1) ?? ""]) {
    const { sealed } = await world.stored("second", `config${key}`);
    expect([keyIdOf(sealed), world.secrets.open(sealed, `second/config${key}`)]).toEqual([idOf(NEW), key]);
  }
});

/** By file: the kind it seals, or the reason why its sealed data need not be resealed. */
const SEALED: Readonly<Record<string, string>> = {
  "config/values.ts": "configuration",
  "hosts/authority/authority.ts": "authority",
  "hosts/records.ts": "hosts",
  "hosts/ssh/destination.ts": "hosts",
  "jobs/definitions/parameters.ts": "runs",
  "jobs/groups/secrets.ts": "groups of hosts",
  "jobs/rights/run-access.ts": "runs",
  "keys/retained-parts.ts": "parts of former keys",
  "openid/tickets.ts": "(a cookie of minutes)",
  "users/second-factor/second-factor.ts": "second factors",
  "users/second-factor/tickets.ts": "(a form of minutes)",
};
/** The same for derived secrets: how each works after the key is gone. */
const DERIVED: Readonly<Record<string, string>> = {
  "audit/chain.ts": "audit/chain",
  "hosts/tokens/store.ts": "join tokens",
  "ingest/proofs.ts": "(an agent asks again)",
  "keys/retained-parts.ts": "(what is kept)",
};

test("whatever an area seals or derives is known here", () => {
  expect(using(/\.seal\(/)).toEqual(Object.keys(SEALED));
  expect(using(/\.derive\(/)).toEqual(Object.keys(DERIVED));
  const stated = world.assembly.areas.flatMap(({ derivations = [] }) => derivations);
  const known = [...world.kinds.map(({ name }) => name), ...stated];
  const named = [...Object.values(SEALED), ...Object.values(DERIVED)].filter((name) => !name.startsWith("("));
  expect(named.filter((name) => !known.includes(name))).toEqual([]);
});

/** Files of areas, except tests, whose text matches the pattern. */
function using(pattern: RegExp): readonly string[] {
  const root = "controller/areas";
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).sort();
  return files.filter((file) => {
    if (!file.endsWith(".ts") || file.endsWith(".test.ts")) return false;
    return pattern.test(readFileSync(`${root}/${file}`, "utf8"));
  });
}
