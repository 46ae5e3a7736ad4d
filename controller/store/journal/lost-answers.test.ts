import { describe, expect, test } from "vitest";
import { AppError, type ErrorCode } from "../../../common/errors.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores } from "../engine.ts";
import {
  useJournal,
  journalOf,
  countOf,
  fresh,
  openIn,
  abandonedIn,
  sure,
  storesOf,
} from "../../../test/helpers/engines/journal-world.ts";

useJournal();

/** Result of a write: an error code is thrown before it is made, `lost` loses its answer. */
type Fate = "lost" | ErrorCode;

/** Stores whose next writes have these results. */
function unlucky(over?: Stores) {
  let fates: Fate[] = [];
  const write = async <T>(make: () => Promise<T>): Promise<T> => {
    const fate = fates.shift();
    if (fate !== undefined && fate !== "lost") throw new AppError(fate, "not done");
    const answer = await make();
    if (fate === "lost") throw new AppError("unknown_outcome", "done, not told");
    return answer;
  };
  const stores = storesOf(
    (kv) =>
      wrappedKv(kv, {
        put: (...put) => write(() => kv.put(...put)),
        txn: (request) => write(() => kv.txn(request)),
        delete: (...gone) => write(() => kv.delete(...gone)),
      }),
    over,
  );
  return { stores, next: (...now: readonly Fate[]) => void (fates = [...now]) };
}

test.each<readonly Fate[]>([["lost"], ["unknown_outcome"], ["unavailable", "lost", "unavailable"], ["lost", "lost"]])(
  "every change is certain though it fares %s, %s, %s",
  async (...fates) => {
    fresh();
    const { stores, next } = unlucky();
    const [a, b] = [journalOf("a", { stores }), journalOf("b", { stores })];
    const begun = await a.begin(countOf("one"));
    next(...fates);
    const stepped = sure(await a.step(begun, { steps: ["a"] }));
    next(...fates);
    const taken = sure(await b.take(stepped));
    expect(await openIn(b)).toEqual([taken]);
    next(...fates);
    expect(await a.decide(stepped, { by: "a", steps: [] })).toBeUndefined();
    next(...fates);
    const decided = sure(await b.decide(taken, { by: "b", steps: ["a"] }));
    next(...fates);
    await b.end(decided.open);
    expect(await openIn(b)).toEqual([]);
  },
);

describe("a beginning", () => {
  const away = Array.from({ length: 20 }, (): Fate => "unavailable");

  test("whose answer is lost is looked for, also after the store was away", async () => {
    fresh();
    const { stores, next } = unlucky();
    const a = journalOf("a", { stores });
    next("unavailable", "lost");
    const begun = await a.begin(countOf("one"));
    expect(await openIn(a)).toEqual([begun]);
  });

  test("that is not there, or not to be looked for, is not made again: it is told as unknown", async () => {
    fresh();
    const { stores, next } = unlucky();
    const a = journalOf("a", { stores });
    next("unknown_outcome");
    await expect(a.begin(countOf("none"))).rejects.toMatchObject({ code: "unknown_outcome" });
    expect(await openIn(a)).toEqual([]);
    const blind = storesOf((kv) => wrappedKv(kv, { get: () => Promise.reject(new AppError("unavailable", "away")) }));
    const lost = unlucky(blind);
    lost.next("lost");
    await expect(journalOf("a", { stores: lost.stores }).begin(countOf("one"))).rejects.toMatchObject({
      code: "unknown_outcome",
    });
    const [found] = await abandonedIn(a);
    expect((await a.take(sure(found)))?.open).toMatchObject({ id: "one", attempt: 1 });
  });

  test.each<readonly Fate[]>([
    ["unknown_outcome"],
    ["lost"],
    ["unknown_outcome", "lost"],
    ["lost", "unavailable"],
    ["unavailable", "unknown_outcome", "unavailable"],
  ])("of work that may be done twice is certain though it fares %s, %s, %s", async (...fates) => {
    fresh();
    const { stores, next } = unlucky();
    const a = journalOf("a", { stores, isRepeatable: true });
    next(...fates);
    const begun = await a.begin(countOf("one"));
    const repeated = fates.includes("unknown_outcome") && !fates.includes("lost");
    expect(begun.isRepeated).toBe(repeated ? true : undefined);
    expect(await openIn(a)).toEqual([{ open: begun.open, revision: begun.revision }]);
    expect((await a.step(begun, { steps: ["a"] }))?.open.steps).toEqual(["a"]);
  });

  test("of such work that another controller has meanwhile is left to it", async () => {
    fresh();
    const b = journalOf("b");
    const stores = storesOf((kv) =>
      wrappedKv(kv, {
        async txn(request) {
          const answer = await kv.txn(request);
          if (!answer.ok) return answer;
          for (const found of await abandonedIn(b)) await b.take(found);
          throw new AppError("unknown_outcome", "done, not told");
        },
      }),
    );
    const begun = journalOf("a", { stores, isRepeatable: true }).begin(countOf("one"));
    await expect(begun).rejects.toMatchObject({ code: "unknown_outcome" });
    expect(await openIn(b)).toMatchObject([{ open: { owner: "b", attempt: 1 } }]);
  });

  test("that the store is away for is not made, and told so", async () => {
    fresh();
    const { stores, next } = unlucky();
    const a = journalOf("a", { stores });
    next(...away);
    await expect(a.begin(countOf("none"))).rejects.toMatchObject({ code: "unavailable" });
    next();
    expect(await openIn(a)).toEqual([]);
  });

  test("that another controller took and ended before this one could look is not begun again", async () => {
    fresh();
    const b = journalOf("b");
    const stores = storesOf((kv) =>
      wrappedKv(kv, {
        async txn(request) {
          await kv.txn(request);
          for (const found of await abandonedIn(b)) await b.end(sure(await b.take(found)).open);
          throw new AppError("unknown_outcome", "done, not told");
        },
      }),
    );
    await expect(journalOf("a", { stores }).begin(countOf("one"))).rejects.toMatchObject({ code: "unknown_outcome" });
    expect(await openIn(b)).toEqual([]);
  });
});
