import { describe, expect, test } from "vitest";
import {
  SESSION_IDLE_MS,
  SESSION_MAX_MS,
  SESSION_REMEMBERED_MS,
  SESSION_SWEEP_MS,
  SIGN_IN_CACHE_MS,
} from "../../../../common/limits.ts";
import { PASSWORD } from "../../../../test/helpers/http/http-app.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { UserService } from "../service.ts";
import { http, clock, useSignIns, signIn, user } from "../../../../test/helpers/users/sign-in-world.ts";

useSignIns();

describe("sessions", () => {
  test("last while they are used, up to their last end", async () => {
    const { session } = await signIn({ company: "matrix" });
    const steps = Math.ceil(SESSION_MAX_MS / (SESSION_IDLE_MS / 2));
    for (let step = 1; step < steps; step++) {
      clock.advance(SESSION_IDLE_MS / 2);
      expect(await user(session)).toBe("admin");
    }
    clock.advance(SESSION_IDLE_MS / 2);
    expect(await user(session)).toBeUndefined();
  });

  test("end when they are not used; remembered ones later", async () => {
    const short = await signIn({ company: "matrix" });
    const long = await signIn({ company: "matrix", remember: true });
    expect([short.lastingMs, long.lastingMs]).toEqual([undefined, SESSION_REMEMBERED_MS]);
    clock.advance(SESSION_IDLE_MS);
    expect([await user(short.session), await user(long.session)]).toEqual([undefined, "admin"]);
  });

  test("end when the user's password, rights or activity change, and only that user's", async () => {
    const changes = [
      () => http.users.setPassword(testPrincipal(), "viewer", PASSWORD),
      () => http.users.update(testPrincipal(), "viewer", { rights: { role: "administrator" } }),
      () => http.users.update(testPrincipal(), "viewer", { active: false }),
    ];
    const { session: admin } = await signIn({ company: "matrix" });
    const { session: namesake } = await signIn({ company: "second", username: "viewer" });
    for (const change of changes) {
      const { session } = await signIn({ company: "matrix", username: "viewer" });
      expect(await user(session)).toBe("viewer");
      await change();
      expect(await user(session)).toBeUndefined();
    }
    expect([await user(admin), await user(namesake)]).toEqual(["admin", "viewer"]);
  });

  test("end at another controller, too, as soon as it reads again", async () => {
    const other = new UserService({
      runtime: testRuntime(clock),
      stores: http.engine,
      tenants: http.tenants,
      audit: http.audit,
    });
    const there = async (session: string) => (await other.bySession(session, ""))?.user;
    const ends = [
      (session: string) => http.users.signOut(testPrincipal(), session),
      () => http.users.setPassword(testPrincipal(), "viewer", PASSWORD),
    ];
    for (const end of ends) {
      const { session } = await signIn({ company: "matrix", username: "viewer" });
      expect(await there(session)).toBe("viewer");
      await end(session);
      expect(await user(session)).toBeUndefined();
      clock.advance(SIGN_IN_CACHE_MS);
      expect(await there(session)).toBeUndefined();
    }
  });

  test("cannot be used by who reads the store, and are swept away when they are over", async () => {
    const { session } = await signIn({ company: "matrix" });
    const { kv } = await http.engine.system();
    const sessions = async () => [...(await kv.list("usersessions/")).entries, ...(await kv.list("signins/")).entries];
    expect(JSON.stringify(await sessions())).not.toContain(session);
    http.users.start();
    clock.advance(SESSION_IDLE_MS + SESSION_SWEEP_MS);
    await expect.poll(async () => (await sessions()).length).toBe(0);
    await http.users.stop();
  });
});
