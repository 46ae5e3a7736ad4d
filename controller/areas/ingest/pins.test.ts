import { expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { INGEST_FAULT_MAX_CHARACTERS, PIN_AHEAD_MAX_US } from "../../../common/limits.ts";
import type { Batch, Entry, Pin } from "../../../proto/gen/agent/v1/agent.ts";
import { BASE_MS, recordsEntry, TEST_KEYS } from "../../../test/helpers/areas/ingest.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import { secretBox } from "../../secrets/index.ts";
import { PIN_REFUSED } from "../hosts/index.ts";
import { Pins } from "./pins.ts";

const SOURCE = { tenant: "matrix", host: "web-1", streamId: "stream-1" };
const KEY = "/matrix/rules/line";
const RULE = { digest: "digest of its text" };
const LINES = ["a,1", "b,2", "c,3"];

const clock = new TestClock();
const pins = new Pins({ clock, keys: TEST_KEYS });

/** As an agent pins it by what it was told. */
function pinned(over: Partial<Pin> = {}, entries: Entry[] = [recordsEntry(1, LINES, KEY)]): Batch {
  const told = pins.time(SOURCE, undefined);
  const pin = { writeUs: told.us, told, rules: [pins.rule(SOURCE, KEY, RULE)], ...over };
  return { streamId: SOURCE.streamId, entries, pin, missing: 0 };
}

const isTaken = (batch: Batch, source = SOURCE): void => pins.check(source, batch);
const REFUSED = expect.objectContaining({ code: "invalid", details: { reason: PIN_REFUSED } }) as Error;

test("what a controller told is taken, for this host of this tenant alone", () => {
  isTaken(pinned());
  for (const other of [{ tenant: "zion" }, { host: "web-2" }])
    expect(() => isTaken(pinned(), { ...SOURCE, ...other })).toThrow(REFUSED);
});

test("what nobody told is refused: a time, a rule, another text of it, or nothing at all", () => {
  const told = pins.time(SOURCE, undefined);
  const rule = pins.rule(SOURCE, KEY, RULE);
  const refused: readonly Batch[] = [
    { ...pinned(), pin: undefined },
    pinned({ told: undefined }),
    pinned({ told: { ...told, us: told.us + 1 } }),
    pinned({ told: { ...told, proof: "" } }),
    pinned({ rules: [] }),
    pinned({ rules: [{ ...rule, digest: "other" }] }),
    pinned({ rules: [{ ...rule, proof: `${rule.proof.slice(0, -1)}_` }] }),
    pinned({ rules: [rule, pins.rule({ ...SOURCE, host: "web-2" }, "/matrix/rules/other", RULE)] }),
    pinned({}, [recordsEntry(1, LINES, "/matrix/rules/other")]),
  ];
  for (const batch of refused) expect(() => isTaken(batch)).toThrow(REFUSED);
});

test("what holds no records needs no pin", () => {
  const entry: Entry = { sequence: 1, timeMs: BASE_MS, traceparent: "", body: undefined };
  isTaken({ ...pinned({}, [entry]), pin: undefined });
});

test("writes lie between the time that was told and the bound above it, the last record too", () => {
  const { us } = pins.time(SOURCE, undefined);
  for (const writeUs of [us, us + PIN_AHEAD_MAX_US - LINES.length]) isTaken(pinned({ writeUs }));
  for (const writeUs of [us - 1, us + PIN_AHEAD_MAX_US - LINES.length + 1, Number.NaN])
    expect(() => isTaken(pinned({ writeUs }))).toThrow(REFUSED);
});

test("a time is above all of this millisecond, and not below what another controller told", () => {
  const nowUs = clock.nowMs() * 1_000;
  expect(pins.time(SOURCE, undefined).us).toBe(nowUs + 1_000);
  const ahead = new Pins({ clock: new TestClock(clock.nowMs() + 60_000), keys: TEST_KEYS });
  const last = ahead.time(SOURCE, undefined);
  expect(pins.time(SOURCE, last).us).toBe(last.us);
  expect(ahead.time(SOURCE, pins.time(SOURCE, undefined)).us).toBe(last.us);
  // Not told by any controller.
  expect(pins.time(SOURCE, { us: last.us, proof: "made.up" }).us).toBe(nowUs + 1_000);
});

test("what was told stays true when the key changes, until the former one is taken away", () => {
  const [former, present] = [1, 2].map((fill) => new Uint8Array(32).fill(fill));
  const batch = pinned();
  if (!former || !present) throw new Error("two keys");
  new Pins({ clock, keys: secretBox([present, former]) }).check(SOURCE, batch);
  expect(() => new Pins({ clock, keys: secretBox([present]) }).check(SOURCE, batch)).toThrow(REFUSED);
});

test("a rule that cannot be used is told by why, in no more than so many characters", () => {
  const told = (text: string) => pins.rule(SOURCE, KEY, new AppError("not_found", text));
  expect(told("x".repeat(2 * INGEST_FAULT_MAX_CHARACTERS)).error).toHaveLength(INGEST_FAULT_MAX_CHARACTERS);
  expect([told("gone"), told("")]).toMatchObject([
    { error: "gone", digest: "" },
    { error: "not_found", digest: "" },
  ]);
  isTaken(pinned({ rules: [told("gone")] }));
});
