import { describe, expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { ForgetfulFiles } from "../../test/helpers/engines/forgetful-files.ts";
import { TestClock } from "../../test/helpers/time/runtime.ts";
import { Outbox } from "./outbox.ts";
import { OutboxPins, type PinnedBatch } from "./pins.ts";

const SLOT_BYTES = 8_192;
const HISTORIES = 60;

function batch(first: number, last = first): PinnedBatch {
  const rules = [{ rule: "/matrix/rules/a", digest: `d${first}`, error: "", proof: "p" }];
  return { first, last, missing: 0, pin: { writeUs: first * 10, told: { us: first * 10, proof: "t" }, rules } };
}

function open(disk: ForgetfulFiles, slotBytes = SLOT_BYTES): Promise<OutboxPins> {
  return OutboxPins.open({ path: "/pins", files: disk.boot(), slotBytes });
}

describe("what batches are pinned by", () => {
  test("is known again after the end, but for what is safe", async () => {
    const disk = new ForgetfulFiles(1);
    const pins = await open(disk);
    await pins.begin("stream", 0);
    for (const first of [1, 3, 5]) expect(await pins.add(batch(first, first + 1), first * 10 + 2)).toBe(true);
    pins.acknowledge(2);
    await pins.save();
    await pins.close();
    const again = await open(disk);
    expect([again.stream, again.acknowledged, again.nextUs, again.told]).toEqual([
      "stream",
      2,
      52,
      { us: 50, proof: "t" },
    ]);
    expect([again.after(0), again.after(4), again.after(6)]).toEqual([batch(3, 4), batch(5, 6), undefined]);
    expect(again.knownThrough).toBe(6);
  });

  test("survives a power cut at any moment: what was told to be on disk is there, and nothing else but the last", async () => {
    for (let seed = 1; seed <= HISTORIES; seed++) {
      const disk = new ForgetfulFiles(seed);
      const random = seededRandom(seed);
      let done = 0;
      for (let life = 0; life < 3; life++) {
        const pins = await open(disk);
        const held = pins.knownThrough;
        expect([done, done + 1], `seed ${seed}`).toContain(held);
        done = held;
        if (pins.stream === "") await pins.begin("stream", 0);
        let operations = 2 + Math.floor(random.next() * 12);
        disk.faults.happened = () => {
          operations -= 1;
          if (operations === 0) disk.powerCut();
        };
        const writing = (async () => {
          for (let next = held + 1; ; next++) {
            await pins.add(batch(next), next);
            done = next;
          }
        })();
        await Promise.race([writing, until(() => operations <= 0)]);
        disk.faults.happened = () => undefined;
      }
    }
  });

  test("takes no more room on a full disk than it has from the beginning", async () => {
    const disk = new ForgetfulFiles(2);
    const pins = await open(disk);
    disk.faults.capacityBytes = 2 * SLOT_BYTES;
    for (let next = 1; next <= 100; next++) {
      expect(await pins.add(batch(next), next)).toBe(true);
      pins.acknowledge(next);
    }
  });

  test("waits for what is on the way when there is no room, and is refused when it never will be", async () => {
    const pins = await open(new ForgetfulFiles(3), 600);
    let next = 1;
    while (await pins.add(batch(next), next)) next += 1;
    expect(next).toBeGreaterThan(1);
    expect(pins.after(next - 1)).toBeUndefined();
    pins.acknowledge(next - 1);
    expect(await pins.add(batch(next), next)).toBe(true);
    pins.acknowledge(next);
    const rules = [{ rule: "x".repeat(1_000), digest: "", error: "", proof: "" }];
    const large = { ...batch(next + 1), pin: { writeUs: 1, told: undefined, rules } };
    await expect(pins.add(large, 1)).rejects.toMatchObject({ code: "too_large" });
  });
});

test("an outbox whose end was damaged after it was sent goes on under a new name", async () => {
  const disk = new ForgetfulFiles(4);
  const options = { folder: "/outbox", clock: new TestClock(), random: seededRandom(4), maxBytes: 1 << 20 };
  const outbox = await Outbox.open({ ...options, files: disk.boot() });
  const data = Buffer.from("x");
  const body = { $case: "output", value: { commandId: "c", stderr: false, offset: 0, data } } as const;
  await outbox.append([{ body }]);
  const before = disk.contents().get("/outbox/0000000001.seg") ?? Buffer.alloc(0);
  await outbox.append([{ body }]);
  await outbox.pins.add(batch(2), 1);
  await outbox.close();
  const files = disk.boot();
  const segment = await files.open("/outbox/0000000001.seg", "r+");
  await segment.truncate(before.length);
  await segment.close();
  const again = await Outbox.open({ ...options, files });
  expect(again.streamId).not.toBe(outbox.streamId);
  expect([again.nextSequence, again.firstSequence, again.pins.knownThrough]).toEqual([2, 1, 0]);
});

/** Turns of memory only. */
async function until(over: () => boolean): Promise<void> {
  while (!over()) await new Promise((resolve) => setImmediate(resolve));
}
