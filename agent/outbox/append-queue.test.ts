import { beforeEach, describe, expect, it } from "vitest";
import { AppError } from "../../common/errors.ts";
import { text, textOf } from "../../test/helpers/hosts/outbox-world.ts";
import { AppendQueue, type Append } from "./append-queue.ts";

/** Commits so far: the texts of each, in the order in which they began. */
let commits: string[][];
/** Ends the commits in progress. */
let release: () => void;
let released: Promise<void>;
/** Number of the appends that were taken, which is the sequence of the last one. */
let last: number;
/** Reports after commits. */
let reports: number;
let queue: AppendQueue;

beforeEach(() => {
  commits = [];
  last = 0;
  reports = 0;
  released = new Promise((resolve) => (release = resolve));
  queue = new AppendQueue(commit, () => reports++);
});

describe("appends", () => {
  it("that come together share a commit, and those that come during it share the next one", async () => {
    const first = [queue.add(append("a")), queue.add(append("b"))];
    await Promise.resolve();
    const second = [queue.add(append("c")), queue.add(append("d"))];
    release();
    expect(await Promise.all([...first, ...second])).toEqual([1, 2, 3, 4]);
    expect(commits).toEqual([
      ["a", "b"],
      ["c", "d"],
    ]);
    await queue.between(() => Promise.resolve());
    expect(reports).toBe(2);
  });

  it("of which one is too large for all are committed one by one, and only that one is refused", async () => {
    const all = ["a", "huge", "b"].map((name) => queue.add(append(name)));
    release();
    const settled = await Promise.allSettled(all);
    expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(commits).toEqual([["a", "huge", "b"], ["a"], ["huge"], ["b"]]);
  });

  it("are all refused when a commit fails for another reason, and the next ones are committed", async () => {
    const all = [queue.add(append("a")), queue.add(append("broken"))];
    release();
    await expect(all[0]).rejects.toMatchObject({ code: "unavailable" });
    await expect(all[1]).rejects.toMatchObject({ code: "unavailable" });
    await queue.add(append("b"));
    expect(commits).toEqual([["a", "broken"], ["b"]]);
  });
});

describe("work between commits", () => {
  it("begins after the commits before it and ends before those after it", async () => {
    const before = queue.add(append("a"));
    let end: () => void = () => undefined;
    const work = queue.between(() => {
      commits.push(["work"]);
      return new Promise((resolve) => (end = resolve));
    });
    release();
    await before;
    await new Promise(setImmediate);
    const after = queue.add(append("b"));
    await new Promise(setImmediate);
    expect(commits).toEqual([["a"], ["work"]]);
    end();
    await Promise.all([work, after]);
    expect(commits).toEqual([["a"], ["work"], ["b"]]);
  });

  it("that fails holds up no append", async () => {
    release();
    const work = queue.between(() => Promise.reject(new Error("no room")));
    const after = queue.add(append("a"));
    await expect(work).rejects.toThrow("no room");
    expect(await after).toBe(1);
  });
});

function append(name: string): Append {
  return { emissions: [text(name)], marks: [] };
}

async function commit(appends: readonly Append[]): Promise<readonly number[]> {
  const names = appends.map(({ emissions }) => textOf(emissions[0]?.body));
  commits.push(names);
  await released;
  if (names.includes("broken")) throw new AppError("unavailable", "The disk does not answer.");
  if (names.includes("huge")) throw new AppError("too_large", "It does not fit.");
  return appends.map(() => ++last);
}
