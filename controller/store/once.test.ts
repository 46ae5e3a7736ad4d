import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AppError, isAppError, type ErrorCode } from "../../common/errors.ts";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../test/helpers/engines/engine.ts";
import { wrappedKv } from "../../test/helpers/engines/wrapped-kv.ts";
import { again, bytes, text, uniqueName } from "./contract/harness.ts";
import { faulty } from "./faulty.ts";
import type { KvEntry, KvStore } from "./kv.ts";
import { putOnce, txnOnce } from "./once.ts";

let engine: TestEngine;
let kv: KvStore;

beforeAll(async () => {
  engine = await openTestEngine();
  ({ kv } = await engine.tenant("matrix"));
});
afterAll(() => engine[Symbol.asyncDispose]());

/** Result of one write: an error code is thrown before it is made, `lost` loses its answer, `ok` does neither. */
type Fate = "ok" | "lost" | ErrorCode;

/** A store whose first writes have these results; all later ones succeed. `between` runs before the second write. */
function fated(fates: readonly Fate[], between: () => Promise<unknown> = () => Promise.resolve()): KvStore {
  let count = 0;
  const write = async <T>(make: () => Promise<T>): Promise<T> => {
    const at = count++;
    if (at === 1) await between();
    const fate = fates[at] ?? "ok";
    if (fate !== "ok" && fate !== "lost") throw new AppError(fate, "not done");
    const answer = await make();
    if (fate === "lost") throw new AppError("unknown_outcome", "done, not told");
    return answer;
  };
  return wrappedKv(kv, {
    put: (...put) => write(() => kv.put(...put)),
    txn: (request) => write(() => kv.txn(request)),
  });
}

const revisionOf = async (key: string) => (await kv.get(key))?.revision ?? 0;

describe("a put made once", () => {
  const put = (over: KvStore, key: string, ifRevision = 0) => putOnce(over, { key, value: bytes("mine"), ifRevision });

  test.each<Fate>(["ok", "lost", "unknown_outcome"])("whose first attempt is %s is there, once", async (fate) => {
    const key = uniqueName("once");
    const written = await put(fated([fate]), key);
    expect(written).toEqual({ ok: true, revision: await revisionOf(key) });
    const entry = await kv.get(key);
    expect([entry?.createRevision, text(entry?.value ?? bytes(""))]).toEqual([entry?.revision, "mine"]);
  });

  test.each<Fate>(["ok", "lost", "unknown_outcome"])("loses against who was first (%s)", async (fate) => {
    const key = uniqueName("once");
    await kv.put(key, bytes("theirs"));
    const written = await put(fated([fate]), key);
    expect(written).toMatchObject({ ok: false, current: { revision: await revisionOf(key) } });
    expect(text((await kv.get(key))!.value)).toBe("theirs");
  });

  test("whose answer was lost and that another one wrote over is told as lost, and that one stays", async () => {
    const key = uniqueName("once");
    const over = fated(["lost"], () => kv.put(key, bytes("theirs")));
    expect(await put(over, key)).toMatchObject({ ok: false });
    expect(text((await kv.get(key))!.value)).toBe("theirs");
  });

  test("does not take an equal value for its own that was there before its first attempt", async () => {
    const key = uniqueName("once");
    await kv.put(key, bytes("mine"));
    expect(await put(kv, key)).toMatchObject({ ok: false });
  });

  test("that comes to pass late, after its repetition, changes nothing any more", async () => {
    const key = uniqueName("once");
    const late: (() => Promise<unknown>)[] = [];
    const over = wrappedKv(kv, {
      put: (...call) => {
        if (late.length > 0) return kv.put(...call);
        late.push(() => kv.put(...call));
        return Promise.reject(new AppError("unknown_outcome", "on its way"));
      },
    });
    const written = await put(over, key);
    await late[0]?.();
    expect(written).toEqual({ ok: true, revision: await revisionOf(key) });
  });

  test.each<[readonly Fate[], ErrorCode]>([
    [["unavailable"], "unavailable"],
    [["unknown_outcome", "unavailable"], "unknown_outcome"],
    [["lost", "unavailable"], "unknown_outcome"],
    [["lost", "unknown_outcome"], "unknown_outcome"],
    [["too_large"], "too_large"],
  ])("that fares %j is refused as %s", async (fates, code) => {
    await expect(put(fated(fates), uniqueName("once"))).rejects.toMatchObject({ code });
  });

  test("is repeated as its caller says", async () => {
    const key = uniqueName("once");
    const over = fated(["unavailable", "lost", "unavailable", "unknown_outcome"]);
    expect(await putOnce(over, { key, value: bytes("mine"), ifRevision: 0 }, again)).toEqual({
      ok: true,
      revision: await revisionOf(key),
    });
  });

  test.each(onCluster ? [1, 2] : [1, 2, 3, 4, 5, 6])(
    "on a store that fails and loses answers what is told as written is there, and what is told as refused only where another write came right after it (seed %i)",
    async (seed) => {
      const over = (await faulty(engine, { random: seededRandom(seed), faultRate: 0.2 }).tenant("matrix")).kv;
      const key = uniqueName("writes");
      const writesIn = (entry: KvEntry | undefined): readonly string[] =>
        entry ? (JSON.parse(text(entry.value)) as string[]) : [];
      const told = { written: new Set<string>(), unknown: new Set<string>(), overtaken: new Set<string>() };
      const add = async (own: string): Promise<void> => {
        const entry = await again(() => over.get(key));
        const value = bytes(JSON.stringify([...writesIn(entry), own]));
        try {
          const answer = await putOnce(over, { key, value, ifRevision: entry?.revision ?? 0 });
          if (answer.ok) told.written.add(own);
          else if (writesIn(answer.current).includes(own)) told.overtaken.add(own);
        } catch (error) {
          if (isAppError(error, "unknown_outcome")) told.unknown.add(own);
          else if (!isAppError(error, "unavailable")) throw error;
        }
      };
      const writers = ["a", "b", "c"].map(async (writer) => {
        for (let turn = 0; turn < 40; turn++) await add(`${writer}${turn}`);
      });
      await Promise.all(writers);
      const there = writesIn(await kv.get(key));
      const certain = [...told.written, ...told.overtaken];
      expect(told.written.size).toBeGreaterThan(0);
      expect(certain.filter((own) => !there.includes(own))).toEqual([]);
      expect(there.filter((own) => !certain.includes(own) && !told.unknown.has(own))).toEqual([]);
      expect(new Set(there).size).toBe(there.length);
    },
  );
});

describe("a transaction made once", () => {
  /** Puts `a` and `b` and deletes `c` if `a` and `c` are unchanged. */
  async function world() {
    const [a, b, c] = [uniqueName("a"), uniqueName("b"), uniqueName("c")];
    await kv.put(c, bytes("old"));
    const old = await revisionOf(c);
    const make = (over: KvStore) =>
      txnOnce(over, {
        if: [
          { key: a, revision: 0 },
          { key: c, revision: old },
        ],
        then: [
          { kind: "put", key: a, value: bytes("A") },
          { kind: "put", key: b, value: bytes("B") },
          { kind: "delete", key: c },
        ],
      });
    const values = () => Promise.all([a, b, c].map(async (key) => text((await kv.get(key))?.value ?? bytes("-"))));
    return { a, b, c, make, values };
  }

  test.each<Fate>(["ok", "lost", "unknown_outcome"])("whose first attempt is %s is there, once", async (fate) => {
    const { a, b, make, values } = await world();
    const { ok, revision } = await make(fated([fate]));
    expect(ok).toBe(true);
    expect([await revisionOf(a), await revisionOf(b)]).toEqual([revision, revision]);
    expect(await values()).toEqual(["A", "B", "-"]);
  });

  test("of which another one wrote over a part meanwhile is told as lost", async () => {
    for (const [part, value] of [
      ["a", "theirs"],
      ["b", "B"],
      ["c", "new"],
    ] as const) {
      const { make, ...keys } = await world();
      const over = fated(["lost"], () => kv.put(keys[part], bytes(value)));
      expect(await make(over), part).toMatchObject({ ok: false });
    }
  });

  test("that loses against another one leaves nothing", async () => {
    const { a, make, values } = await world();
    await kv.put(a, bytes("theirs"));
    expect(await make(fated(["unknown_outcome"]))).toMatchObject({ ok: false });
    expect(await values()).toEqual(["theirs", "-", "old"]);
  });

  test.each<Fate>(["ok", "lost", "unknown_outcome"])("that only deletes is done (%s)", async (fate) => {
    const key = uniqueName("gone");
    await kv.put(key, bytes("x"));
    const revision = await revisionOf(key);
    const request = { if: [{ key, revision }], then: [{ kind: "delete", key } as const] };
    expect(await txnOnce(fated([fate]), request)).toMatchObject({ ok: true });
    expect(await kv.get(key)).toBeUndefined();
    expect(await txnOnce(kv, request), "again").toMatchObject({ ok: false });
  });

  test("whose look at what stands fails is unknown", async () => {
    const { make } = await world();
    const over = wrappedKv(fated(["lost"]), {
      get: () => Promise.reject(new AppError("unavailable", "away")),
    });
    await expect(make(over)).rejects.toMatchObject({ code: "unknown_outcome" });
  });
});
