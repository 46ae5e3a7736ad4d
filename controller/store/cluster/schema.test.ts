import { expect, test } from "vitest";
import { keyspaceOf } from "./schema.ts";

test("a keyspace is named after its tenant, within Cassandra's limit, and no two tenants share one", () => {
  expect(keyspaceOf("odp", "matrix")).toBe("odp_matrix");
  const [one, two] = [keyspaceOf("odp", `${"a".repeat(47)}1`), keyspaceOf("odp", `${"a".repeat(47)}2`)];
  expect(one).not.toBe(two);
  expect([one.length, two.length]).toEqual([48, 48]);
  expect(one).toMatch(/^odp_a+_[0-9a-f]{16}$/);
});
