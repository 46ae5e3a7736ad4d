import { expect, test } from "vitest";
import { testPrincipal } from "../../test/helpers/time/runtime.ts";
import { signInOf } from "./signin.ts";

test("a known session of a tenant that is deleted, or of which nothing is known, is not let in", () => {
  const open = new Set(["matrix"]);
  const users = { byKnownSession: () => testPrincipal() };
  const gate = { isKnownOpen: (name: string) => open.has(name) };
  const signIn = signInOf({ users, gate, groups: {}, access: {} } as never);
  const known = () => signIn.byKnownSession?.("a session", { traceparent: "", remote: "" });
  expect(known()).toEqual(testPrincipal());
  open.delete("matrix");
  expect(known()).toBeUndefined();
});
