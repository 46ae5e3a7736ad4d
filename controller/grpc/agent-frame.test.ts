import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { AgentFrame, type Batch, Entry } from "../../proto/gen/agent/v1/agent.ts";
import { WHOLE_RECORDS } from "../../test/helpers/hosts/whole-records.ts";
import { readAgentFrame } from "./agent-frame.ts";

const ENTRIES: readonly Entry[] = [
  { sequence: 8, timeMs: 5, traceparent: "00-a", body: { $case: "records", value: WHOLE_RECORDS } },
  { sequence: 9, timeMs: 6, traceparent: "", body: { $case: "records", value: { ...WHOLE_RECORDS, records: [] } } },
  {
    sequence: 10,
    timeMs: 7,
    traceparent: "",
    body: { $case: "output", value: { commandId: "c", stderr: true, offset: 1, data: Buffer.from("out") } },
  },
  { sequence: 11, timeMs: 8, traceparent: "", body: undefined },
];
const PIN = {
  writeUs: 9,
  told: { us: 8, proof: "p" },
  rules: [{ rule: WHOLE_RECORDS.rule, digest: "d", error: "", proof: "q" }],
};
const BATCH: Batch = { streamId: "stream", entries: [...ENTRIES], pin: PIN, missing: 2 };
const FRAME: AgentFrame = { frame: { $case: "batch", value: BATCH } };

const encoded = (frame: AgentFrame): Buffer => Buffer.from(AgentFrame.encode(frame).finish());

test("the records of a batch are parts of its frame, and not copies", () => {
  const bytes = encoded(FRAME);
  const { frame } = readAgentFrame(bytes);
  const read = frame?.$case === "batch" ? frame.value.entries : [];
  const records = read.flatMap(({ body }) => (body?.$case === "records" ? body.value.records : []));
  expect(records).toHaveLength(WHOLE_RECORDS.records.length);
  for (const record of records) expect(record.buffer).toBe(bytes.buffer);
});

const entry = (...parts: readonly Partial<Entry>[]): Uint8Array => {
  const writer = new BinaryWriter();
  for (const part of parts) Entry.encode({ sequence: 0, timeMs: 0, traceparent: "", body: undefined, ...part }, writer);
  return writer.finish();
};
const batchOf = (bytes: Uint8Array): Buffer =>
  Buffer.from(new BinaryWriter().uint32(18).bytes(new BinaryWriter().uint32(18).bytes(bytes).finish()).finish());
const [{ body }, , { body: output }] = ENTRIES as [Entry, Entry, Entry];

test.each([
  ["a batch", encoded(FRAME)],
  ["no frame", Buffer.alloc(0)],
  ["a heartbeat", encoded({ frame: { $case: "heartbeat", value: { timeMs: 1, values: { a: "b" } } } })],
  ["two batches, of which the last counts", Buffer.concat([encoded(FRAME), encoded(FRAME)])],
  [
    "a batch before a frame of another kind",
    Buffer.concat([encoded(FRAME), encoded({ frame: { $case: "renew", value: { csr: Buffer.of(1) } } })]),
  ],
  ["a field that is not known", Buffer.concat([encoded(FRAME), Buffer.of(0xf8, 0x07, 1)])],
  ["an entry of two records", batchOf(entry({ sequence: 1, body }, { body }))],
  ["records before output", batchOf(entry({ sequence: 1, body }, { body: output }))],
  ["output before records", batchOf(entry({ sequence: 1, body: output }, { body }))],
  ["a sequence after records", batchOf(entry({ body }, { sequence: 3 }))],
])("a frame is read as its message: %s", (_, bytes) => {
  expect(readAgentFrame(bytes)).toEqual(AgentFrame.decode(bytes));
});

test("a frame with a damaged byte is refused or read, and no error reaches gRPC", () => {
  const random = seededRandom(1);
  const sound = encoded({ frame: { $case: "batch", value: { ...BATCH, entries: ENTRIES.slice(1) } } });
  const frames = Array.from({ length: 10_000 }, () => {
    const bytes = Buffer.from(sound);
    bytes[Math.floor(random.next() * bytes.length)] = Math.floor(random.next() * 256);
    return readAgentFrame(bytes);
  });
  expect(frames.some(({ refused }) => refused?.code === "invalid")).toBe(true);
  expect(frames.some(({ refused }) => refused === undefined)).toBe(true);
});
