import type { InjectOptions } from "fastify";
import { afterEach, beforeEach } from "vitest";
import { openTestHttp, type TestHttp } from "../http/http-app.ts";

/** Calls about users by HTTP, in a session of an administrator. */

export const FORM = { "content-type": "application/x-www-form-urlencoded" };

export let http: TestHttp;
export let session: string;

/** Opens the interface and a session of `admin` for each test of the calling file. */
export function useUserInterface(): void {
  beforeEach(async () => {
    http = await openTestHttp();
    session = await http.signIn("admin");
  });
  afterEach(() => http[Symbol.asyncDispose]());
}

/** Makes a call in the session of `admin`. */
export const call = (options: InjectOptions & { readonly url: string }) => http.call(session, options);

/** Principal of `admin`. */
export function adminPrincipal() {
  return {
    tenant: "matrix",
    ospace: "/matrix",
    user: "admin",
    groups: [],
    grants: ["*:read", "*:write", "*:run"],
    data: [],
    traceparent: "",
  };
}
