import { afterEach, beforeEach } from "vitest";
import { openTestHttp, PASSWORD, type TestHttp } from "../http/http-app.ts";
import { TestClock, testRuntime } from "../time/runtime.ts";

/** Users of two tenants, and sign-ins on a clock that the test moves. */

export let http: TestHttp;
export let clock: TestClock;

/** Opens the interface for each test of the calling file. */
export function useSignIns(): void {
  beforeEach(async () => {
    clock = new TestClock();
    http = await openTestHttp({ runtime: testRuntime(clock) });
  });
  afterEach(() => http[Symbol.asyncDispose]());
}

/** Signs in `admin` by its password, unless the members say otherwise. */
export const signIn = (members: Record<string, unknown>) =>
  http.users.signIn({ username: "admin", password: PASSWORD, remote: "r", traceparent: "", ...members });
/** Principal by Basic credentials; `undefined` if they are wrong. */
export const basic = (login: string, password = PASSWORD) =>
  http.users.byPassword({ login, password, remote: "r" }, "");
/** Name of the user of a session; `undefined` if it has ended. */
export const user = async (session: string) => (await http.users.bySession(session, ""))?.user;
