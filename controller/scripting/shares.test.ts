import { afterEach, expect, test } from "vitest";
import { AppError } from "../../common/errors.ts";
import {
  SCRIPT_STANDING_AFTER_MS,
  SCRIPT_STANDING_BRIEFLY_AFTER_MS,
  SCRIPT_USER_STANDING_BRIEFLY_THREADS,
  SCRIPT_USER_THREADS,
} from "../../common/limits.ts";
import type { Value } from "../../common/value.ts";
import { TestClock } from "../../test/helpers/time/runtime.ts";
import { threadScripts } from "./contract/threads.ts";
import { SCRIPT_POOL_LIMITS } from "./shares.ts";
import type { ScriptCall, ScriptHost, ScriptKind } from "./types.ts";

const open = await threadScripts("javascript");
const ANNA = { tenant: "mine", kind: "serverjs", user: "anna" } as const;
const BEN = { ...ANNA, user: "ben" };
const KINDS: readonly ScriptKind[] = ["serverjs", "trigger", "rule"];

const engines: ReturnType<typeof open>[] = [];
const ends: AbortController[] = [];

afterEach(async () => {
  for (const end of ends.splice(0)) end.abort();
  for (const engine of engines.splice(0)) await engine.close();
});

function opened(): ReturnType<typeof open> {
  const engine = open({ clock: new TestClock(), limits: SCRIPT_POOL_LIMITS });
  engines.push(engine);
  return engine;
}

function callOf(by: Pick<ScriptCall, "tenant" | "kind" | "user">, source: string): ScriptCall {
  const about = { language: "javascript", name: "/a.js", globals: {}, results: ["OUT"] } as const;
  return { ...by, ...about, source, timeoutMs: 3_600_000 };
}

/** Starts `scripts` scripts that never end. Resolves when `underWay` of them run. */
async function endless(
  engine: ReturnType<typeof open>,
  by: Pick<ScriptCall, "tenant" | "kind" | "user">,
  { scripts, underWay }: { readonly scripts: number; readonly underWay: number },
): Promise<void> {
  await new Promise<void>((resolve) => {
    let begun = 0;
    const host: ScriptHost = {
      call: async () => {
        if ((begun += 1) === underWay) resolve();
        return null;
      },
    };
    for (let at = 0; at < scripts; at += 1) {
      const end = new AbortController();
      ends.push(end);
      const call = { ...callOf(by, "host.wait(); for (;;);"), signal: end.signal };
      engine.run(call, host).catch((error: unknown) => {
        if (!(error instanceof AppError)) throw error;
      });
    }
  });
}

const NO_HOST: ScriptHost = { call: () => Promise.resolve(null) };

async function answerOf(engine: ReturnType<typeof open>, by: Pick<ScriptCall, "tenant" | "kind" | "user">) {
  return (await engine.run(callOf(by, "OUT = 'done'"), NO_HOST)).results["OUT"] as Value;
}

test("endless scripts of a user hold up no trigger, no rule body, no other user and no other tenant", async () => {
  const engine = opened();
  await endless(engine, ANNA, { scripts: 20, underWay: 2 });
  const others = [
    { ...ANNA, kind: "trigger" },
    { ...ANNA, kind: "rule" },
    BEN,
    { ...ANNA, user: "cleo" },
    { ...ANNA, tenant: "other" },
  ] as const;
  for (const other of others) expect(await answerOf(engine, other)).toBe("done");
  expect([engine.running, engine.waiting]).toEqual([2, 18]);
});

test("endless texts of a user of each kind hold up no text of another user", async () => {
  const engine = opened();
  for (const kind of KINDS) await endless(engine, { ...ANNA, kind }, { scripts: 5, underWay: 2 });
  for (const kind of KINDS) expect(await answerOf(engine, { ...BEN, kind })).toBe("done");
});

test("a user whose scripts wait for a thread up to the bound is refused by its name, and nobody else is", async () => {
  const engine = opened();
  const [, , { tasks }] = SCRIPT_POOL_LIMITS.shares;
  await endless(engine, ANNA, { scripts: tasks + 2, underWay: 2 });
  await expect(answerOf(engine, ANNA)).rejects.toMatchObject({
    code: "limited",
    details: { limit: "SCRIPT_QUEUE_USER_MAX_TASKS" },
  });
  expect(await answerOf(engine, BEN)).toBe("done");
});

/** A host whose calls are answered by `answer`. `made` resolves after the given number of calls. */
class HeldHost implements ScriptHost {
  calls = 0;
  answer = (): void => undefined;
  readonly #answered = new Promise<null>((resolve) => (this.answer = () => resolve(null)));
  readonly #waiting: { readonly calls: number; readonly resolve: () => void }[] = [];

  call(): Promise<null> {
    this.calls += 1;
    for (const { calls, resolve } of this.#waiting) if (this.calls >= calls) resolve();
    return this.#answered;
  }

  async made(calls: number): Promise<void> {
    if (this.calls < calls) await new Promise<void>((resolve) => this.#waiting.push({ calls, resolve }));
  }
}

test("so many runs of a user wait briefly for host calls at once, and more when they wait longer", async () => {
  const clock = new TestClock();
  const engine = open({ clock, limits: SCRIPT_POOL_LIMITS });
  engines.push(engine);
  const host = new HeldHost();
  const briefly = SCRIPT_USER_THREADS + SCRIPT_USER_STANDING_BRIEFLY_THREADS;
  const runs = Array.from({ length: briefly + 2 }, () => engine.run(callOf(ANNA, "host.wait(); OUT = 'done'"), host));
  for (let calls = SCRIPT_USER_THREADS; calls < briefly; calls += SCRIPT_USER_THREADS) {
    await host.made(calls);
    expect([engine.running, engine.waiting]).toEqual([calls, runs.length - calls]);
    clock.advance(SCRIPT_STANDING_BRIEFLY_AFTER_MS);
  }
  await host.made(briefly);
  clock.advance(SCRIPT_STANDING_BRIEFLY_AFTER_MS);
  expect([engine.running, engine.waiting]).toEqual([briefly, 2]);
  clock.advance(SCRIPT_STANDING_AFTER_MS);
  await host.made(runs.length);
  expect([engine.running, engine.waiting]).toEqual([runs.length, 0]);
  host.answer();
  expect((await Promise.all(runs)).map(({ results }) => results["OUT"])).toEqual(runs.map(() => "done"));
});
