import type { Records } from "../../../proto/gen/agent/v1/agent.ts";

/** Records in which every member has a value. */
export const WHOLE_RECORDS: Records = {
  policy: "access",
  policyRevision: 7,
  source: "/var/log/access.log",
  generation: "g",
  offset: 5_000_000_000,
  records: ["a", "", "ü".repeat(100), "x".repeat(20_000)].map((text) => Buffer.from(text)),
  groups: { site: "north" },
  rule: "/matrix/rules/access",
  cut: [3],
  malformed: [1, 2],
  raw: Buffer.from([0xff, 0xfe]),
  rawLengths: [1, 1],
  heading: "#Fields: a",
};
