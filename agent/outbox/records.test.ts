import { describe, expect, it } from "vitest";
import { UTF8 } from "../../common/text/encodings.ts";
import { RECORDS_ENTRY_MAX_BYTES, RECORDS_PER_ENTRY_MAX } from "../../common/limits.ts";
import type { Records } from "../../proto/gen/agent/v1/agent.ts";
import { decodedRecord, type RawRecord } from "../../common/agent/raw-records.ts";
import { packRecords, type RecordsHead } from "./records.ts";

const HEAD: RecordsHead = {
  ...{ policy: "access", policyRevision: 7, source: "/var/log/access.log", generation: "g", groups: {} },
  rule: "/matrix/rules/access",
};

function record(text: string, more: Partial<RawRecord> = {}): RawRecord {
  return { bytes: Buffer.from(text), offset: 0, cut: false, ...more };
}

function packed(records: readonly RawRecord[]): readonly Records[] {
  return packRecords(HEAD, records).map(({ body }) => {
    if (body?.$case !== "records") throw new Error("no records");
    return body.value;
  });
}

it("a mark of the encoding is no text at the begin of a file, and is one within it", () => {
  const bytes = Buffer.from("\uFEFFa");
  const text = (offset: number) => decodedRecord({ bytes, offset, cut: false }, { encoding: UTF8 }).bytes;
  expect(Buffer.from(text(0)).toString()).toBe("a");
  expect(Buffer.from(text(5)).toString()).toBe("\uFEFFa");
});

describe("records in entries", () => {
  it("are as many as fit, by their number and by their bytes, and one that is larger is alone", () => {
    const counts = (records: readonly RawRecord[]) => packed(records).map(({ records: each }) => each.length);
    const many = Array.from({ length: RECORDS_PER_ENTRY_MAX + 1 }, () => record("a"));
    expect(counts(many)).toEqual([RECORDS_PER_ENTRY_MAX, 1]);
    const half = record("x".repeat(RECORDS_ENTRY_MAX_BYTES / 2));
    expect(counts([half, half, record("a")])).toEqual([2, 1]);
    expect(counts([record("x".repeat(RECORDS_ENTRY_MAX_BYTES + 1)), record("a")])).toEqual([1, 1]);
  });

  it("have the same heading line, and the offset of the first", () => {
    const entries = packed([
      record("a", { offset: 5, heading: "x" }),
      record("b", { offset: 7, heading: "x" }),
      record("c", { offset: 9 }),
    ]);
    expect(entries.map(({ offset, heading, records }) => [offset, heading, records.map(String)])).toEqual([
      [5, "x", ["a", "b"]],
      [9, undefined, ["c"]],
    ]);
  });

  it("say which are cut and malformed, with the bytes that these had, in their order", () => {
    const [first, second] = packed([
      record("a", { cut: true }),
      record("b", { malformed: true, raw: Buffer.from("B") }),
      record("c", { malformed: true }),
      record("d", { malformed: true, raw: Buffer.from("DD") }),
      record("e", { heading: "x" }),
    ]);
    expect(first).toMatchObject({ cut: [0], malformed: [1, 2, 3], rawLengths: [1, 0, 2] });
    expect(String(first?.raw)).toBe("BDD");
    expect(second).toMatchObject({ cut: [], malformed: [], rawLengths: [] });
    expect(second?.raw).toHaveLength(0);
  });

  it("are buffers of the same bytes, whatever they were read into", () => {
    const [entry] = packed([record(""), { ...record(""), bytes: new Uint8Array(Buffer.from("abc")).subarray(1) }]);
    expect(entry?.records.map((bytes) => Buffer.isBuffer(bytes) && bytes.toString())).toEqual(["", "bc"]);
  });

  it("are no entries when there are none", () => {
    expect(packed([])).toEqual([]);
  });
});
