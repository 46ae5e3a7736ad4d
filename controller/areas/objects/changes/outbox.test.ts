import { afterAll, beforeAll, expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { CELL_MAX_BYTES, CHANGE_PAGE_INTENTS, OBJECT_MAX_BYTES } from "../../../../common/limits.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { Retry } from "../../../store/calls/retry.ts";
import type { KvStore } from "../../../store/kv.ts";
import { Outbox, type Intent, type IntentEvent } from "./outbox.ts";

let engine: TestEngine;
let made = 0;
beforeAll(async () => {
  engine = await openTestEngine();
});
afterAll(() => engine[Symbol.asyncDispose]());

async function openOutbox(change: (kv: KvStore) => Partial<KvStore> = () => ({})): Promise<Outbox> {
  const store = await engine.tenant("matrix");
  const runtime = { ...testRuntime(realClock), random: seededRandom(++made) };
  return new Outbox({
    store: { ...store, kv: wrappedKv(store.kv, change(store.kv)) },
    runtime,
    retry: new Retry(runtime),
  });
}

function event(id: string, more: Partial<IntentEvent> = {}): IntentEvent {
  return { class: "/matrix/box", id, timeMs: 1, action: "INSERT", fields: { name: id }, ...more } as IntentEvent;
}

async function left(outbox: Outbox, { box }: Intent): Promise<readonly (readonly IntentEvent[])[]> {
  const found: (readonly IntentEvent[])[] = [];
  for await (const page of outbox.intents(box)) found.push(...page.map(({ events }) => events));
  return found;
}

test("all intents of an outbox are found, in pages, each once", async () => {
  const outbox = await openOutbox();
  const ids = Array.from({ length: CHANGE_PAGE_INTENTS + 20 }, (_, at) => `box:${at}`);
  const intents = (await Promise.all(ids.map((id) => outbox.put([event(id)])))).flat();
  const found = (await left(outbox, intents[0]!)).flat();
  expect(found.map(({ id }) => id).sort()).toEqual([...ids].sort());
  await outbox.remove(intents);
  expect(await left(outbox, intents[0]!)).toEqual([]);
  await outbox.close(true);
});

test("events that are too much for one intent are several, in their order", async () => {
  const outbox = await openOutbox();
  const text = "x".repeat(CELL_MAX_BYTES / 2);
  const events = Array.from({ length: (2 * OBJECT_MAX_BYTES) / text.length }, (_, at) =>
    event(`box:${at}`, { fields: { text } }),
  );
  const intents = await outbox.put(events);
  expect(intents.length).toBeGreaterThan(1);
  expect(intents.flatMap((intent) => intent.events)).toEqual(events);
  expect((await left(outbox, intents[0]!)).flat()).toHaveLength(events.length);
  await outbox.remove(intents);
  await outbox.close(true);
});

test("an event that is too large is kept without the whole object, and at last without its fields", async () => {
  const outbox = await openOutbox();
  const large = "x".repeat(CELL_MAX_BYTES);
  const whole = (text: string) => ({ values: { text }, vtimeMs: 1, ctimeMs: 1 }) as unknown as IntentEvent["whole"];
  const intents = await outbox.put([
    event("small", { whole: whole("x") }),
    event("whole", { whole: whole(large) }),
    event("fields", { whole: whole(large), fields: { text: large } }),
  ]);
  const [small, withoutWhole, bare] = (await left(outbox, intents[0]!)).flat();
  expect(small).toEqual(event("small", { whole: whole("x") }));
  expect(withoutWhole).toEqual(event("whole"));
  expect(bare).toEqual(event("fields", { fields: {} }));
  await outbox.remove(intents);
  await outbox.close(true);
});

test("after an outbox could not be opened, another one is", async () => {
  let isAway = true;
  const outbox = await openOutbox((kv) => ({
    lease: (...given) => {
      if (!isAway) return kv.lease(...given);
      isAway = false;
      return Promise.reject(new AppError("internal", "no lease"));
    },
  }));
  await expect(outbox.put([event("box:1")])).rejects.toMatchObject({ message: "no lease" });
  const intents = await outbox.put([event("box:1")]);
  expect(await left(outbox, intents[0]!)).toHaveLength(1);
  await outbox.remove(intents);
  await outbox.close(true);
});
