import { beforeEach, describe, expect, test } from "vitest";
import {
  INGEST_RULES_PER_BATCH_MAX,
  LOG_HEADING_MAX_BYTES,
  PIN_AHEAD_MAX_US,
  PIN_TOLD_FRESH_MS,
  SESSION_BATCH_MAX_BYTES,
} from "../../common/limits.ts";
import type { Ask, Batch, Told } from "../../proto/gen/agent/v1/agent.ts";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { ForgetfulFiles } from "../../test/helpers/engines/forgetful-files.ts";
import { TestClock } from "../../test/helpers/time/runtime.ts";
import { Batches } from "./batches.ts";
import { Outbox, type Emission } from "./outbox.ts";

const WINDOW = 64;

let disk: ForgetfulFiles;
let clock: TestClock;
let asked: Ask[];
/** Time that the controllers report. */
let nowUs: number;
let digest: string;

beforeEach(() => {
  disk = new ForgetfulFiles(1);
  clock = new TestClock();
  asked = [];
  nowUs = 1_000_000_000;
  digest = "d1";
});

function openOutbox(): Promise<Outbox> {
  return Outbox.open({ folder: "/outbox", clock, random: seededRandom(2), maxBytes: 1 << 20, files: disk.boot() });
}

function batchesOf(outbox: Outbox, ask: (ask: Ask) => Promise<Told> = tell): Batches {
  return new Batches({ outbox, clock, ask }, outbox.acknowledged);
}

function tell(ask: Ask): Promise<Told> {
  asked.push(ask);
  const time = { us: Math.max(nowUs, ask.last?.us ?? 0), proof: "t" };
  return Promise.resolve({ time, rules: ask.rules.map((rule) => ({ rule, digest, error: "", proof: "p" })) });
}

function records(rule: string, count = 1): Emission {
  const value = {
    policy: "p",
    policyRevision: 1,
    source: "s",
    generation: "g",
    offset: 0,
    records: Array.from({ length: count }, () => Buffer.from("line")),
    groups: {},
    rule,
    cut: [],
    malformed: [],
    raw: Buffer.alloc(0),
    rawLengths: [],
  };
  return { body: { $case: "records", value } };
}

function output(): Emission {
  const value = { commandId: "c", stderr: false, offset: 0, data: Buffer.from("x") };
  return { body: { $case: "output", value } };
}

test("a batch is no larger than its bound, with the heading lines and raw bytes of its records", async () => {
  const outbox = await Outbox.open({ folder: "/outbox", clock, random: seededRandom(2), files: disk.boot() });
  const heading = "h".repeat(LOG_HEADING_MAX_BYTES);
  for (let at = 0; at < 64; at++) {
    const { body } = records("/r/a");
    if (body.$case !== "records") continue;
    const raw = Buffer.alloc(3 * LOG_HEADING_MAX_BYTES);
    await outbox.append([
      { body: { $case: "records", value: { ...body.value, heading, raw, rawLengths: [raw.length] } } },
    ]);
  }
  const found = await all(batchesOf(outbox));
  const bytes = found.map(({ entries }) => entries.length * 4 * LOG_HEADING_MAX_BYTES);
  expect(Math.max(...bytes)).toBeLessThanOrEqual(SESSION_BATCH_MAX_BYTES);
});

const sequences = (batch: Batch | undefined) => batch?.entries.map(({ sequence }) => sequence);

async function all(batches: Batches): Promise<Batch[]> {
  const found: Batch[] = [];
  for (let batch = await batches.next(WINDOW); batch; batch = await batches.next(WINDOW)) found.push(batch);
  return found;
}

describe("a batch with records", () => {
  test("is pinned to what a controller tells, and is the same after a kill, whatever the controllers tell then", async () => {
    const outbox = await openOutbox();
    await outbox.append([records("/r/a", 3), output(), records("/r/b")]);
    const [first] = await all(batchesOf(outbox));
    expect(first).toMatchObject({
      missing: 0,
      pin: {
        writeUs: nowUs,
        told: { us: nowUs },
        rules: [
          { rule: "/r/a", digest },
          { rule: "/r/b", digest },
        ],
      },
    });
    disk.kill();
    digest = "d2";
    nowUs += 60_000_000;
    const again = await openOutbox();
    await again.append([records("/r/a")]);
    const [same, next] = await all(batchesOf(again));
    expect(same).toEqual(first);
    expect(next).toMatchObject({ pin: { writeUs: nowUs, rules: [{ digest: "d2" }] } });
    expect(sequences(next)).toEqual([4]);
  });

  test("is pinned anew when the agent was killed before it was on disk", async () => {
    const outbox = await openOutbox();
    await outbox.append([records("/r/a")]);
    const batches = batchesOf(outbox, () => {
      disk.kill();
      return tell({ rules: ["/r/a"], last: undefined });
    });
    void batches.next(WINDOW);
    while (asked.length === 0) await new Promise((resolve) => setImmediate(resolve));
    digest = "d2";
    const again = await openOutbox();
    expect(await all(batchesOf(again))).toMatchObject([{ pin: { rules: [{ digest: "d2" }] } }]);
  });

  test("is asked for again when what was told is not fresh; otherwise only of rules that were not", async () => {
    const outbox = await openOutbox();
    const batches = batchesOf(outbox);
    for (const rule of ["/r/a", "/r/a", "/r/b"]) {
      await outbox.append([records(rule)]);
      await batches.next(WINDOW);
    }
    expect(asked.map(({ rules }) => rules)).toEqual([["/r/a"], ["/r/b"]]);
    clock.advance(PIN_TOLD_FRESH_MS);
    await outbox.append([records("/r/b")]);
    await batches.next(WINDOW);
    expect(asked.at(-1)).toEqual({ rules: ["/r/b"], last: { us: nowUs, proof: "t" } });
  });

  test("is written above all before it, also when a controller's clock is behind, and never too far ahead", async () => {
    const outbox = await openOutbox();
    const batches = batchesOf(outbox);
    await outbox.append([records("/r/a", 50)]);
    const first = await batches.next(WINDOW);
    nowUs -= 600_000_000;
    clock.advance(PIN_TOLD_FRESH_MS);
    await outbox.append([records("/r/a")]);
    const second = await batches.next(WINDOW);
    expect(second?.pin).toMatchObject({ writeUs: (first?.pin?.writeUs ?? 0) + 50, told: first?.pin?.told });
    await outbox.pins.add({ first: 3, last: 3, missing: 0, pin: second?.pin ?? fail() }, nowUs + 1e12);
    outbox.pins.leaveOut(outbox.pins.after(2) ?? fail());
    await outbox.append([records("/r/a", 7)]);
    const far = await batches.next(WINDOW);
    expect(far?.pin?.writeUs).toBe((far?.pin?.told?.us ?? 0) + PIN_AHEAD_MAX_US - 7);
  });

  test("names no more rules than fit, and what no rule can be called is in no pin", async () => {
    const outbox = await openOutbox();
    const many = Array.from({ length: INGEST_RULES_PER_BATCH_MAX + 1 }, (_, at) => records(`/r/${at}`));
    await outbox.append([...many, records(""), records("x".repeat(5_000))]);
    const found = await all(batchesOf(outbox));
    expect(found.map(({ entries, pin }) => [entries.length, pin?.rules.length])).toEqual([
      [INGEST_RULES_PER_BATCH_MAX, INGEST_RULES_PER_BATCH_MAX],
      [3, 1],
    ]);
  });

  test("is asked for anew when a controller refused what was pinned", async () => {
    const outbox = await openOutbox();
    await outbox.append([records("/r/a")]);
    await all(batchesOf(outbox));
    await outbox.pins.forget();
    digest = "d2";
    expect(await all(batchesOf(outbox))).toMatchObject([{ pin: { rules: [{ digest: "d2" }] } }]);
  });
});

describe("what needs no pin", () => {
  test("is sent without one, and asks nothing", async () => {
    const outbox = await openOutbox();
    await outbox.append([output(), output()]);
    expect(await all(batchesOf(outbox))).toMatchObject([{ pin: undefined, missing: 0 }]);
    expect(asked).toEqual([]);
  });
});

describe("a hole that damage left", () => {
  test("ends a batch, and the next one tells how much is missing, again and again the same", async () => {
    const outbox = await openOutbox();
    for (const rules of [["/r/a"], ["/r/damaged", "/r/other"], ["/r/b"]])
      await outbox.append(rules.map((rule) => records(rule)));
    await outbox.close();
    await damage();
    for (let life = 0; life < 2; life++) {
      const again = await openOutbox();
      const found = await all(batchesOf(again));
      expect(found.map((batch) => [sequences(batch), batch.missing])).toEqual([
        [[1], 0],
        [[4], 2],
      ]);
      disk.kill();
    }
  });

  test("in a batch that was pinned before is told with it; one of which nothing is left, with the next", async () => {
    const outbox = await openOutbox();
    const batches = batchesOf(outbox);
    for (const rules of [["/r/a"], ["/r/damaged"], ["/r/b"]]) {
      for (const rule of rules) await outbox.append([records(rule)]);
      await batches.next(WINDOW);
    }
    for (const rule of ["/r/c", "/r/damaged", "/r/d"]) await outbox.append([records(rule)]);
    expect(sequences(await batches.next(WINDOW))).toEqual([4, 5, 6]);
    await outbox.close();
    await damage();
    const again = await openOutbox();
    const found = await all(batchesOf(again));
    expect(found.map((batch) => [sequences(batch), batch.missing])).toEqual([
      [[1], 0],
      [[3], 1],
      [[4, 6], 1],
    ]);
  });

  test("is told when a file of the outbox was taken away, and not when it was let go of", async () => {
    const outbox = await openOutbox();
    const large = () =>
      outbox.append([
        {
          body: {
            ...output().body,
            $case: "output",
            value: { commandId: "c", stderr: false, offset: 0, data: Buffer.alloc(70_000) },
          },
        },
      ]);
    for (let count = 0; count < 4; count++) await large();
    await outbox.acknowledge(1);
    await outbox.close();
    const kept = await openOutbox();
    expect((await all(batchesOf(kept)))[0]).toMatchObject({ missing: 0 });
    const first = kept.firstSequence;
    await kept.close();
    const files = disk.boot();
    const oldest = kept.segments[0]?.path ?? "";
    const lost = (kept.segments[1]?.base ?? 0) - first;
    await files.rm(oldest);
    const again = await openOutbox();
    expect((await all(batchesOf(again)))[0]).toMatchObject({ missing: lost });
    expect(lost).toBeGreaterThan(0);
  });
});

/** Changes a byte of every frame that names the rule `/r/damaged`. */
async function damage(): Promise<void> {
  const files = disk.boot();
  for (const [path, content] of disk.contents()) {
    if (!path.endsWith(".seg")) continue;
    const file = await files.open(path, "r+");
    for (let at = content.indexOf("/r/damaged"); at >= 0; at = content.indexOf("/r/damaged", at + 1))
      await file.write(Buffer.from("!"), 0, 1, at);
    await file.close();
  }
}

function fail(): never {
  throw new Error("It is not there.");
}
