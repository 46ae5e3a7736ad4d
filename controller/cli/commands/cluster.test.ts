import { expect, test } from "vitest";
import { codeOf } from "./cluster.ts";

const node = { datacenter: "dc1", hostid: "id", isup: true, peer: "10.0.0.1", port: 9042, rack: "r1" };

test("odp cluster ends with 2 if a node is away or a tenant has lost its data", () => {
  expect(codeOf({ datastore: [] })).toBe(0);
  expect(codeOf({ datastore: [node], lost: [] })).toBe(0);
  expect(codeOf({ datastore: [node, { ...node, isup: false }] })).toBe(2);
  expect(codeOf({ datastore: [node], lost: [{ tenant: "acme", keyspace: "odp_acme" }] })).toBe(2);
});
