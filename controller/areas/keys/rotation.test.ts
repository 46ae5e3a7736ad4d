import { afterAll, beforeAll, expect, test } from "vitest";
import type { KeyStatus } from "../../../common/api/keys.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { KeyWorld, NEW, OLD } from "../../../test/helpers/areas/key-world.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { secretBox } from "../../secrets/index.ts";

const admin = testPrincipal();
const idOf = (key: Uint8Array): string => secretBox([key]).keyId;
const ENTRY = {
  tenant: "matrix",
  user: "admin",
  permission: "config:write",
  action: "POST /config/set",
  outcome: "ok",
  code: "",
  remote: "",
  traceparent: "",
} as const;

let engine: TestEngine;
beforeAll(async () => (engine = await openTestEngine()));
afterAll(() => engine[Symbol.asyncDispose]());

const statusOf = ({ assembly }: KeyWorld): Promise<KeyStatus> => assembly.keys.status(admin);
const sealedWith = (status: KeyStatus, key: Uint8Array) => status.keys.find(({ id }) => id === idOf(key))?.sealed;

/** Waits until each controller seals with the key and knows that the other does, too. */
async function settled(controllers: readonly KeyWorld[], key: Uint8Array): Promise<void> {
  for (const { assembly, secrets } of controllers)
    await expect
      .poll(
        async () => {
          await assembly.resealing.round();
          return [secrets.keyId, assembly.resealing.waiting];
        },
        { timeout: 30_000 },
      )
      .toEqual([idOf(key), undefined]);
}

test("a new key becomes current while controllers run, and all that is kept is sealed anew", async () => {
  const one = await KeyWorld.open([OLD], engine);
  const two = await KeyWorld.open([OLD], engine);
  await one.sealOne("first");
  await one.assembly.audit.record(ENTRY);
  const before = await statusOf(one);
  expect(before).toMatchObject({ wanted: idOf(OLD), sealing: idOf(OLD), left: 0 });
  expect(sealedWith(before, OLD)).toMatchObject({
    hosts: 1,
    "groups of hosts": 1,
    configuration: 1,
    "versions of configuration": 2,
    "second factors": 1,
    authority: 1,
  });

  // Only one controller has the new key: it keeps sealing with the old one and says why.
  one.use([NEW, OLD]);
  expect(await one.assembly.resealing.round()).toBe(0);
  expect([one.secrets.keyId, one.secrets.ids[0]]).toEqual([idOf(OLD), idOf(NEW)]);
  expect((await statusOf(one)).waiting).toContain(`does not have the key ${idOf(NEW)}`);
  two.use([NEW, OLD]);
  await two.assembly.resealing.round();
  await settled([one, two], NEW);
  await two.sealOne("second");

  await expect
    .poll(async () => (await one.assembly.resealing.round()) + (await statusOf(two)).left, { timeout: 30_000 })
    .toBe(0);
  const after = await statusOf(two);
  expect(after).toMatchObject({ wanted: idOf(NEW), sealing: idOf(NEW), left: 0, ending: 0 });
  expect(sealedWith(after, OLD)).toEqual({});
  expect(sealedWith(after, NEW)).toMatchObject({ hosts: 2, configuration: 2, "versions of configuration": 4 });
  for (const name of ["first", "second"]) await one.opensAll(name);
  for (const world of [one, two]) await world[Symbol.asyncDispose]();

  // Without the old key everything still opens, and old proofs still verify.
  await using alone = await KeyWorld.open([NEW], engine);
  for (const name of ["first", "second"]) await alone.opensAll(name);
  expect(alone.secrets.opening).toEqual([idOf(NEW)]);
  expect(await alone.assembly.audit.verifyChain(admin)).toMatchObject({ unkeyed: 0, problems: [] });
}, 120_000);

test("a controller that has the old key only says that it cannot open, and does not start", async () => {
  await expect(KeyWorld.open([OLD], engine)).rejects.toThrow(
    `sealed with the key ${idOf(NEW)}, which this controller does not have`,
  );
});

test("only administrators of the first tenant see to the keys", async () => {
  await using world = await KeyWorld.open([NEW], engine);
  const { keys } = world.assembly;
  for (const foreign of [testPrincipal("administrator", "second"), testPrincipal("viewer")]) {
    await expect(keys.status(foreign)).rejects.toMatchObject({ code: "denied" });
    await expect(keys.reload(foreign)).rejects.toMatchObject({ code: "denied" });
  }
});
