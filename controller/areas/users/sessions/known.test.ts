import { expect, test } from "vitest";
import {
  SESSION_IDLE_MS,
  SESSION_TOUCH_MS,
  SIGN_IN_CACHE_MAX_ENTRIES,
  SIGN_IN_CACHE_MS,
} from "../../../../common/limits.ts";
import { PASSWORD } from "../../../../test/helpers/http/http-app.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { clock, http, signIn, useSignIns } from "../../../../test/helpers/users/sign-in-world.ts";
import { UserService } from "../service.ts";
import { KnownSessions } from "./known.ts";

useSignIns();

const admin = testPrincipal();
const known = (session: string) => http.users.byKnownSession(session, { traceparent: "t", remote: "r" });

/** Signs in a user below the organisation `/plant`, so that rights come from everywhere. */
async function opened(): Promise<{ readonly session: string; readonly plant: string }> {
  const { id: plant } = await http.users.directory.createOrganization(admin, { username: "plant", parent: "/" });
  await http.users.create(admin, {
    username: "ann",
    password: PASSWORD,
    rights: { grants: ["hosts:read"], data: [] },
    parent: "/plant",
  });
  const { session } = await signIn({ company: "matrix", username: "ann" });
  return { session, plant };
}

test("a session that was read is known, with the trace and the address of each call, and as if it were read", async () => {
  const { session } = await opened();
  expect(known(session)).toBeUndefined();
  const read = await http.users.bySession(session, "t");
  expect(known(session)).toEqual({ ...read, remote: "r" });
  expect(known(`${session}x`)).toBeUndefined();
});

const CHANGES: Readonly<Record<string, (at: Awaited<ReturnType<typeof opened>>) => Promise<unknown>>> = {
  "the user's rights": () => http.users.update(admin, "ann", { rights: { role: "viewer" } }),
  "the user's details": () => http.users.update(admin, "ann", { details: { remark: "late" } }),
  "the user's password": () => http.users.setPassword(admin, "ann", PASSWORD),
  "the end of the session": ({ session }) => http.users.signOut(admin, session),
  "an organisation above the user": ({ plant }) => http.users.directory.change(admin, plant, { active: false }),
  "a group": () => http.groups.create(admin, { name: "crew", member: ["U/plant/ann"] }),
  "the policy of signing in": () => http.users.signInPolicy.set(admin, { secondFactor: "everybody" }),
  "a refresh": () => http.groups.refresh(admin),
  "the end of the tenant": () => http.groups.leave("matrix"),
  "the age of what was read": () => Promise.resolve(clock.advance(SIGN_IN_CACHE_MS)),
};

test.each(Object.entries(CHANGES))("it is read again after a change: %s", async (_what, change) => {
  const at = await opened();
  await http.users.bySession(at.session, "");
  expect(known(at.session)).toMatchObject({ user: "ann" });
  await change(at);
  expect(known(at.session)).toBeUndefined();
});

test("what was read before a change ended is not known after it", async () => {
  const { session } = await opened();
  const reading = http.users.bySession(session, "");
  await http.users.update(admin, "ann", { rights: { role: "viewer" } });
  await reading;
  expect(known(session)).toBeUndefined();
});

test("it is read again when its use prolongs it, and when it has ended", async () => {
  let aheadMs = 0;
  // The time of day jumps, and what was read stays young.
  const jumping = { ...testRuntime(clock), clock: { ...steady(), nowMs: () => clock.nowMs() + aheadMs } };
  const { engine: stores, tenants, audit } = http;
  const users = new UserService({ runtime: jumping, stores, tenants, audit });
  const { session } = await opened();
  const isKnown = () => users.byKnownSession(session, { traceparent: "", remote: "" }) !== undefined;
  const seen: boolean[] = [];
  for (const jumpMs of [0, SESSION_TOUCH_MS - 1, 1, 0, SESSION_IDLE_MS]) {
    aheadMs += jumpMs;
    seen.push(isKnown());
    await users.bySession(session, "");
    seen.push(isKnown());
  }
  // Prolonging is a write, so what was read before it is not known after it.
  expect(seen).toEqual([...[false, true, true, true], ...[false, false, false, true], ...[false, false]]);
});

function steady() {
  return { monotonicMs: () => clock.monotonicMs(), after: () => () => undefined };
}

test("as many are known as there is room for", () => {
  const sessions = new KnownSessions();
  const one = { principal: admin, record: {} as never, evidence: [] };
  for (let n = 0; n <= SIGN_IN_CACHE_MAX_ENTRIES; n++) sessions.keep(`s${n}`, one, 0);
  expect([sessions.find("s0", 0), sessions.find("s1", 0)]).toEqual([undefined, one]);
});

test("sessions that nobody uses any more do not stay in memory", () => {
  const sessions = new KnownSessions();
  const until = (untilMs: number) => ({
    principal: admin,
    record: {} as never,
    evidence: [{ isCurrent: () => true }, { isCurrent: (nowMs: number) => nowMs < untilMs }],
  });
  for (let n = 0; n < 100; n++) sessions.keep(`s${n}`, until(n + 10), n);
  expect(sessions.size).toBe(10);
  expect(sessions.find("s99", 109)).toBeUndefined();
  expect(sessions.size, "asked for when it was outdated").toBe(9);
  sessions.keep("last", until(200), 150);
  expect([sessions.size, sessions.find("last", 150)]).toMatchObject([1, { principal: admin }]);
});
