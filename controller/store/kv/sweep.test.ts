import { expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { KV_SWEEP_EVERY_MS, KV_SWEEP_MAX_ENTRIES } from "../../../common/limits.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import { KvSweep } from "./sweep.ts";
import type { KvListOptions, KvPage } from "../kv.ts";

/** A store that records each call for a page and answers on command. */
class Pages {
  readonly asked: KvListOptions[] = [];
  #answer: ((next: string | undefined) => void) | undefined;
  #fail: ((error: Error) => void) | undefined;

  list(prefix: string, options: KvListOptions = {}): Promise<KvPage> {
    expect(prefix).toBe("");
    this.asked.push(options);
    return new Promise((resolve, reject) => {
      this.#answer = (next) => resolve({ entries: [], revision: 1, ...(next !== undefined && { next }) });
      this.#fail = reject;
    });
  }

  async answer(next?: string): Promise<void> {
    this.#answer?.(next);
    await settled();
  }

  async fail(): Promise<void> {
    this.#fail?.(new AppError("unavailable", "away"));
    await settled();
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));
const first = { limit: KV_SWEEP_MAX_ENTRIES };

test("a store is looked through page by page, then from the start; one that failed is asked for again", async () => {
  const [clock, pages] = [new TestClock(), new Pages()];
  const sweep = new KvSweep({ kv: pages, runtime: { clock } });
  clock.advance(KV_SWEEP_EVERY_MS - 1);
  expect(pages.asked).toEqual([]);
  clock.advance(1);
  expect(pages.asked).toStrictEqual([first]);
  await pages.answer("b");
  clock.advance(KV_SWEEP_EVERY_MS);
  await pages.fail();
  clock.advance(KV_SWEEP_EVERY_MS);
  await pages.answer();
  clock.advance(KV_SWEEP_EVERY_MS);
  expect(pages.asked).toStrictEqual([first, { ...first, after: "b" }, { ...first, after: "b" }, first]);
  await pages.answer();
  await sweep.close();
});

test("a page that is slow to come is not asked for twice", async () => {
  const [clock, pages] = [new TestClock(), new Pages()];
  const sweep = new KvSweep({ kv: pages, runtime: { clock } });
  clock.advance(KV_SWEEP_EVERY_MS);
  clock.advance(10 * KV_SWEEP_EVERY_MS);
  expect(pages.asked).toHaveLength(1);
  await pages.answer();
  await sweep.close();
});

test("closed it asks no more, and has ended when it says so", async () => {
  const [clock, pages] = [new TestClock(), new Pages()];
  const sweep = new KvSweep({ kv: pages, runtime: { clock } });
  clock.advance(KV_SWEEP_EVERY_MS);
  let closed = false;
  const closing = sweep.close().then(() => (closed = true));
  await settled();
  expect(closed).toBe(false);
  await pages.answer("b");
  await closing;
  expect(clock.waiting).toBe(0);

  const idle = new KvSweep({ kv: pages, runtime: { clock } });
  expect(clock.waiting).toBe(1);
  await idle.close();
  expect(clock.waiting).toBe(0);
});
