import { describe, expect, it, vi } from "vitest";
import { AgentFrame, Batch, Records, type Entry } from "../../proto/gen/agent/v1/agent.ts";
import { WHOLE_RECORDS } from "../../test/helpers/hosts/whole-records.ts";
import { encodeFrame } from "../session/grpc-transport.ts";
import { encodeEntry, entryWeight, recordsFacts, storedEntries } from "./entries.ts";

const NOTHING = Buffer.alloc(0);

function recordsEntry(sequence: number, value: Partial<Records> = {}): Entry {
  const records: Records = { ...WHOLE_RECORDS, ...value };
  return { sequence, timeMs: 1_700_000_000_000, traceparent: "00-a", body: { $case: "records", value: records } };
}

const OUTPUT: Entry = {
  sequence: 3,
  timeMs: 5,
  traceparent: "",
  body: { $case: "output", value: { commandId: "c", stderr: true, offset: 1, data: Buffer.from("out") } },
};
const EMPTY = { records: [], groups: {}, cut: [], malformed: [], raw: NOTHING, rawLengths: [], heading: undefined };
const ENTRIES = [recordsEntry(1), recordsEntry(2, EMPTY), OUTPUT, { ...OUTPUT, sequence: 4, body: undefined }];

/** A name whose bytes look like an entry. */
const STREAM = "\u0012\u0002\b\u0001";
/** The entries as earlier versions of the agent wrote them: the records are among the other members. */
const OLDER = Buffer.from(Batch.encode({ streamId: STREAM, entries: ENTRIES, pin: undefined, missing: 0 }).finish());
const OURS = Buffer.concat(ENTRIES.map(encodeEntry));

describe.each([
  ["entries of this version", OURS],
  ["entries of earlier versions", OLDER],
])("%s", (_, bytes) => {
  it("are read as they were written", () => {
    expect(storedEntries(bytes)).toEqual(ENTRIES);
  });

  it("have the same facts as before they were written", () => {
    const stored = storedEntries(bytes);
    expect(stored.map((entry) => recordsFacts(entry))).toEqual(ENTRIES.map((entry) => recordsFacts(entry)));
    expect(stored.map((entry) => entryWeight(entry))).toEqual(ENTRIES.map((entry) => entryWeight(entry)));
  });

  it("are sent as they were written, without objects for their records", () => {
    const decode = vi.spyOn(Records, "decode");
    const pin = { writeUs: 9, told: { us: 8, proof: "p" }, rules: [] };
    const batch = { streamId: "stream", entries: storedEntries(bytes), pin, missing: 2 };
    const frame = encodeFrame({ frame: { $case: "batch", value: batch } });
    expect(decode).not.toHaveBeenCalled();
    decode.mockRestore();
    expect(AgentFrame.decode(frame)).toEqual({ frame: { $case: "batch", value: { ...batch, entries: ENTRIES } } });
  });
});

it("a controller reads what this version writes as what earlier versions wrote", () => {
  expect(Batch.decode(OURS).entries).toEqual(ENTRIES);
});

it("a rule that cannot be a key is no rule of a stored entry", () => {
  const [stored] = storedEntries(Buffer.from(encodeEntry(recordsEntry(1, { rule: "" }))));
  expect(stored && recordsFacts(stored)?.rule).toBeUndefined();
});

it("a frame that is no batch is sent as before", () => {
  const frame: AgentFrame = { frame: { $case: "heartbeat", value: { timeMs: 5, values: { a: "b" } } } };
  expect(AgentFrame.decode(encodeFrame(frame))).toEqual(frame);
});
