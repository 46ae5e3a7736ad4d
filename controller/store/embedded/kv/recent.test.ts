import { expect, test } from "vitest";
import { KV_RECENT_MAX_BYTES, KV_RECENT_MAX_ENTRIES } from "../../../../common/limits.ts";
import type { KvEvent } from "../../kv.ts";
import { RecentChanges } from "./recent.ts";

const put = (revision: number, key: string, bytes = 1): KvEvent => {
  return { kind: "put", entry: { key, value: new Uint8Array(bytes), createRevision: revision, revision } };
};
const keys = (changes: RecentChanges, since: number) =>
  changes.read(since)?.events.map((event) => (event.kind === "put" ? event.entry.key : `-${event.key}`));

test("what is committed is there from the first revision that was seen, and nothing before it is committed", () => {
  const changes = new RecentChanges();
  expect(changes.read(0)).toBeUndefined();
  changes.write(8, [put(8, "a"), { kind: "delete", key: "b", revision: 8 }]);
  changes.write(9, [put(9, "c")]);
  expect(changes.read(7)).toEqual({ events: [], revision: 7 });
  changes.commit(8);
  expect([changes.read(6), keys(changes, 7), changes.read(7)?.revision]).toEqual([undefined, ["a", "-b"], 8]);
  changes.commit(9);
  expect([keys(changes, 7), keys(changes, 8), keys(changes, 9), keys(changes, 12)]).toEqual([
    ["a", "-b", "c"],
    ["c"],
    [],
    [],
  ]);
});

test("a transaction that was not committed is told by nobody, and its revision is that of the next", () => {
  const changes = new RecentChanges();
  changes.write(1, [put(1, "a")]);
  changes.commit(1);
  changes.write(2, [put(2, "lost")]);
  changes.write(3, [put(3, "lost too")]);
  changes.commit(1);
  changes.write(2, [put(2, "b")]);
  changes.commit(2);
  expect(keys(changes, 0)).toEqual(["a", "b"]);
});

test("older changes are forgotten, in whole revisions", () => {
  const changes = new RecentChanges();
  for (let revision = 1; revision <= KV_RECENT_MAX_ENTRIES; revision++) {
    changes.write(revision, [put(revision, `a${revision}`), put(revision, `b${revision}`)]);
    changes.commit(revision);
  }
  expect(changes.read(0)).toBeUndefined();
  const since = KV_RECENT_MAX_ENTRIES - 2;
  expect(keys(changes, since)).toEqual([since + 1, since + 2].flatMap((n) => [`a${n}`, `b${n}`]));
  const large = KV_RECENT_MAX_ENTRIES + 1;
  changes.write(large, [put(large, "large", KV_RECENT_MAX_BYTES + 1)]);
  changes.commit(large);
  expect([changes.read(since), keys(changes, large)]).toEqual([undefined, []]);
});
