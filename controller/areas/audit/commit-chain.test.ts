import { expect, test } from "vitest";
import { entry } from "../../../test/helpers/areas/audit-entries.ts";
import { TEST_SECRETS } from "../../../test/helpers/time/runtime.ts";
import type { StoredRecord } from "../../store/objects.ts";
import { Chain } from "./chain.ts";
import { CommitChain } from "./commit-chain.ts";
import type { EntryInCommit } from "./types.ts";

/** A chain, the entries that it reported as stored, and one commit for each turn of the event loop. */
function chainWorld() {
  const stored: string[] = [];
  let runs = 0;
  const chain = new CommitChain({
    newChain: () => new Chain(`run-${++runs}`, TEST_SECRETS),
    nowMs: () => 1_000,
    stored: (records) => stored.push(...records.map(({ run, sequence }) => `${run} ${sequence}`)),
  });
  const given = (isAllowed = true): EntryInCommit =>
    chain.inCommit([entry()], { class: "/matrix/system/audit", isAllowed: () => isAllowed });
  return { chain, given, stored };
}

/** Asks for the entry inside a commit. Returns its run and number; `undefined` if it is not given. */
function asked(given: EntryInCommit): string | undefined {
  const rows = given.records((records) =>
    records.map(({ values }) => ({ id: `${String(values.run)} ${String(values.sequence)}` }) as StoredRecord),
  );
  return rows[0]?.id;
}

/** Ends the turn of the event loop. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test("entries of one commit follow one another, and are reported in their order whoever ends first", () => {
  const { given, stored } = chainWorld();
  const [one, two] = [given(), given()];
  expect([asked(one), asked(two)]).toEqual(["run-1 1", "run-1 2"]);
  two.ended();
  expect({ stored: [...stored], isDurable: two.isDurable() }).toEqual({ stored: [], isDurable: true });
  one.ended();
  expect(stored).toEqual(["run-1 1", "run-1 2"]);
});

test("no entry is chained to one of an earlier commit whose outcome is not known", async () => {
  const { given } = chainWorld();
  const [one, two, three] = [given(), given(), given()];
  asked(one);
  await turn();
  expect(asked(two)).toBeUndefined();
  two.ended();
  expect(two.isDurable()).toBe(false);
  one.ended();
  expect(asked(three)).toBe("run-1 2");
});

test("after a commit that failed, a new run begins", async () => {
  const { given, stored } = chainWorld();
  const [one, two] = [given(), given()];
  asked(one);
  one.ended(new Error("no disk"));
  await turn();
  expect(one.isDurable()).toBe(false);
  expect(asked(two)).toBe("run-2 1");
  two.ended();
  // A write that was repeated without its entry ends well, and the entry is still not known to be stored.
  one.ended();
  expect(one.isDurable()).toBe(false);
  expect(stored).toEqual(["run-2 1"]);
});

test("a write of its own waits for the commits, and no commit chains an entry meanwhile", async () => {
  const { chain, given, stored } = chainWorld();
  const [one, two] = [given(), given()];
  asked(one);
  const written: string[] = [];
  const alone = chain.alone([entry(), entry()], async (records) => {
    written.push(...records.map(({ sequence }) => String(sequence)));
    expect(asked(two)).toBeUndefined();
    await turn();
  });
  await turn();
  expect(written).toEqual([]);
  one.ended();
  await alone;
  expect(written).toEqual(["2", "3"]);
  expect(stored).toEqual(["run-1 1", "run-1 2", "run-1 3"]);
  expect(asked(two)).toBe("run-1 4");
});

test("after a write of its own that failed, a new run begins", async () => {
  const { chain, given, stored } = chainWorld();
  await expect(chain.alone([entry()], () => Promise.reject(new Error("no disk")))).rejects.toThrow("no disk");
  const one = given();
  expect(asked(one)).toBe("run-2 1");
  one.ended();
  expect(stored).toEqual(["run-2 1"]);
});

test("an attempt that failed is repeated with the entry, in a new run", () => {
  const { given, stored } = chainWorld();
  const one = given();
  asked(one);
  one.failed();
  one.failed();
  expect(one.isDurable()).toBe(false);
  expect(asked(one)).toBe("run-2 1");
  one.ended();
  expect({ stored, isDurable: one.isDurable() }).toEqual({ stored: ["run-2 1"], isDurable: true });
});

test("an entry is not given while it may not be, nor twice, nor if it cannot be stored", () => {
  const { given, stored } = chainWorld();
  expect(asked(given(false))).toBeUndefined();
  const unfit = given();
  expect(
    unfit.records(() => {
      throw new Error("no such column");
    }),
  ).toEqual([]);
  const once = given();
  expect([asked(once), asked(once)]).toEqual(["run-1 1", undefined]);
  once.ended();
  expect(stored).toEqual(["run-1 1"]);
});

test("an entry is not given after the end of its change, so no later entry waits for it", async () => {
  const { chain, given, stored } = chainWorld();
  const late = given();
  late.ended(new Error("The disk did not answer in time."));
  expect(asked(late)).toBeUndefined();
  expect(late.isDurable()).toBe(false);
  await chain.alone([entry()], () => Promise.resolve());
  expect(stored).toEqual(["run-1 1"]);
});
