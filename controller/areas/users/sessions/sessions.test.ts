import { beforeEach, expect, test } from "vitest";
import { SESSION_IDLE_MS, SESSION_MAX_MS, SESSION_REMEMBERED_MS, SESSION_TOUCH_MS } from "../../../../common/limits.ts";
import { TestClock, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { Sessions } from "./sessions.ts";
import type { SessionRecord, SessionStore, StoredSession, UserRecord } from "../store.ts";

const USER = { tenant: "matrix", username: "ann" } as UserRecord;
const OPENING = { epoch: "e", ospace: "/matrix", remember: false, remote: "r" };

let clock: TestClock;
let kept: Map<string, StoredSession>;
let writes: number;
let fails: boolean;
let sessions: Sessions;

beforeEach(() => {
  clock = new TestClock();
  kept = new Map();
  [writes, fails] = [0, false];
  const put = (id: string, record: SessionRecord) => void kept.set(id, { key: id, record, revision: 1 });
  const store: Partial<SessionStore> = {
    add: (id, record) => Promise.resolve(put(id, record)),
    recent: (id) => Promise.resolve(kept.get(id)),
    remove: (id) => Promise.resolve(void kept.delete(id)),
    removeIf: (session) => Promise.resolve(void kept.delete(session.key)),
    replace: (session, record) => {
      writes++;
      return fails ? Promise.reject(new Error("away")) : Promise.resolve(put(session.key, record));
    },
    async *all() {
      await Promise.resolve();
      yield* [...kept.values()];
    },
  };
  sessions = new Sessions({ runtime: testRuntime(clock), store: store as SessionStore });
});

const lasts = async (id: string): Promise<boolean> => (await sessions.use(id)) !== undefined;

test.each([
  [false, SESSION_IDLE_MS],
  [true, SESSION_REMEMBERED_MS],
])("a session ends when it was not used for long enough (remembered: %s)", async (remember, idleMs) => {
  const [used, unused] = [await sessions.open(USER, OPENING), await sessions.open(USER, { ...OPENING, remember })];
  expect(used).not.toBe(unused);
  clock.advance(idleMs - 1);
  expect(kept.get(unused)?.record).toMatchObject({ tenant: "matrix", username: "ann", epoch: "e", ospace: "/matrix" });
  expect(kept.get(unused)?.record.expiresMs).toBe(clock.nowMs() + 1);
  clock.advance(1);
  expect(await lasts(unused)).toBe(false);
});

test("use prolongs a session, but not each one writes, and none beyond the last end", async () => {
  const id = await sessions.open(USER, OPENING);
  clock.advance(SESSION_TOUCH_MS - 1);
  expect([await lasts(id), writes]).toEqual([true, 0]);
  clock.advance(1);
  expect([await lasts(id), writes]).toEqual([true, 1]);
  const stepMs = SESSION_IDLE_MS - SESSION_TOUCH_MS;
  const endMs = kept.get(id)!.record.createdMs + SESSION_MAX_MS;
  while (clock.nowMs() + stepMs < endMs) {
    clock.advance(stepMs);
    expect(await lasts(id)).toBe(true);
  }
  expect(kept.get(id)?.record.expiresMs).toBe(endMs);
  clock.advance(endMs - clock.nowMs());
  expect(await lasts(id)).toBe(false);
});

test("a session holds where its use cannot be written down, until its end", async () => {
  const id = await sessions.open(USER, OPENING);
  fails = true;
  clock.advance(SESSION_IDLE_MS - 1);
  expect([await lasts(id), writes]).toEqual([true, 1]);
  clock.advance(1);
  expect(await lasts(id)).toBe(false);
});

test("those that are over are swept, and no others; one that is closed is gone at once", async () => {
  const [first] = [await sessions.open(USER, OPENING), await sessions.open(USER, OPENING)];
  clock.advance(SESSION_IDLE_MS - 1);
  const later = await sessions.open(USER, OPENING);
  expect(await sessions.sweep()).toBe(0);
  clock.advance(1);
  expect([await sessions.sweep(), [...kept.keys()], await lasts(first)]).toEqual([2, [later], false]);
  await sessions.close(later);
  expect(await lasts(later)).toBe(false);
});
