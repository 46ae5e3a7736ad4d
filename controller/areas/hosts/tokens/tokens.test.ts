import { afterAll, beforeAll, expect, test } from "vitest";
import { createKeyPem, createRequest } from "../../../../agent/identity/csr.ts";
import { enrolRequest, openTestHosts, type TestHosts } from "../../../../test/helpers/hosts/hosts.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { TEST_SECRETS } from "../../../../test/helpers/time/runtime.ts";
import type { KvStore } from "../../../store/kv.ts";
import { HostTokens } from "./tokens.ts";

let world: TestHosts;
let aheadMs = 0;
beforeAll(async () => {
  const plain = await openTestHosts();
  await plain[Symbol.asyncDispose]();
  const clock = { ...realClock, nowMs: () => realClock.nowMs() + aheadMs };
  world = await openTestHosts({ runtime: { ...plain.runtime, clock } });
});
afterAll(() => world[Symbol.asyncDispose]());

const admin = () => world.principal();
const ids = async (principal = admin()) => (await world.hosts.tokens.list(principal)).map(({ id }) => id);
const enrol = (token: string, host: string) =>
  world.hosts.agents.enrol(enrolRequest(token, createRequest(createKeyPem(), host)));
/** Sees only the host `seen`. */
const limited = () => ({
  ...admin(),
  data: [{ class: "/", access: "write" as const, where: "host = 'seen'", hidden: [] }],
});

test("a token is listed from its making to its expiry, with the host that used it", async () => {
  const { id, token, expires } = await world.hosts.tokens.create(admin(), { minutes: 5 });
  const made = { id, host: "", user: "administrator", expires };
  expect(await world.hosts.tokens.list(admin())).toContainEqual({ ...made, used: 0, usedBy: "" });
  await enrol(token, "joined");
  expect(await world.hosts.tokens.list(admin())).toContainEqual({
    ...made,
    used: expect.any(Number),
    usedBy: "joined",
  });
  aheadMs = 300_001;
  expect(await ids()).not.toContain(id);
  aheadMs = 0;
});

test("a used token is not revoked, because its agent is enrolled", async () => {
  const { id, token } = await world.hosts.tokens.create(admin(), { host: "kept" });
  await enrol(token, "kept");
  await expect(world.hosts.tokens.revoke(admin(), id)).rejects.toMatchObject({
    code: "conflict",
    message: "The agent of kept has used this join token. To end its enrolment, remove the host.",
  });
});

test("a token that is used while it is revoked stays used, and one that is revoked while it is used does not enrol", async () => {
  const { kv } = await world.engine.system();
  const used = await world.hosts.tokens.create(admin(), { host: "first" });
  const records = { find: () => Promise.resolve(undefined) };
  const around = { secrets: TEST_SECRETS, runtime: world.runtime, records, actAs: () => Promise.resolve(admin()) };
  const tokens = new HostTokens({
    ...around,
    kv: afterFirstGet(kv, () => enrol(used.token, "first")),
    isOnline: () => Promise.resolve(false),
  });
  await expect(tokens.revoke(admin(), used.id)).rejects.toMatchObject({ code: "conflict" });
  expect(await ids()).toContain(used.id);

  const revoked = await world.hosts.tokens.create(admin(), { host: "second" });
  const [enrolled] = await Promise.allSettled([
    enrol(revoked.token, "second"),
    world.hosts.tokens.revoke(admin(), revoked.id),
  ]);
  expect(enrolled).toMatchObject({ status: "rejected", reason: { message: expect.stringContaining("was revoked") } });
});

test("hosts that one may not see are not told by their tokens, and nobody makes one for them", async () => {
  for (const host of ["seen", "unseen"]) await world.hosts.save(admin(), { host });
  const hidden = await world.hosts.tokens.create(admin(), { host: "unseen" });
  const shown = await world.hosts.tokens.create(admin(), { host: "seen" });
  expect(await ids(limited())).toContain(shown.id);
  expect(await ids(limited())).not.toContain(hidden.id);
  await expect(world.hosts.tokens.revoke(limited(), hidden.id)).rejects.toMatchObject({ code: "not_found" });
  await expect(world.hosts.tokens.create(limited(), { host: "unseen" })).rejects.toMatchObject({ code: "denied" });
  await world.hosts.tokens.create(limited(), { host: "new-one" });
});

test("another tenant has no such token, and a viewer may do nothing with tokens", async () => {
  const { id } = await world.hosts.tokens.create(admin(), { host: "ours" });
  const other = world.principal("second");
  expect(await ids(other)).toEqual([]);
  await expect(world.hosts.tokens.revoke(other, id)).rejects.toMatchObject({ code: "not_found" });
  const viewer = world.principal("matrix", "viewer");
  await expect(world.hosts.tokens.list(viewer)).rejects.toMatchObject({ code: "denied" });
  await expect(world.hosts.tokens.revoke(viewer, id)).rejects.toMatchObject({ code: "denied" });
  expect(await ids()).toContain(id);
});

/** Calls `act` once, between the first read of a key and its answer. */
function afterFirstGet(kv: KvStore, act: () => Promise<unknown>): KvStore {
  let isFirst = true;
  return new Proxy(kv, {
    get(target, name) {
      if (name !== "get") return (Reflect.get(target, name) as (...given: unknown[]) => unknown).bind(target);
      return async (key: string) => {
        const entry = await target.get(key);
        if (isFirst) await act();
        isFirst = false;
        return entry;
      };
    },
  });
}
