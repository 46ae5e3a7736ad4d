import { setImmediate as turn } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import {
  SCRIPT_CALLS_MAX,
  SCRIPT_DEPTH_MAX,
  SCRIPT_ERROR_MAX_CHARACTERS,
  SCRIPT_NATIVE_LOOKS,
  SCRIPT_NATIVE_MAX_MS,
  SCRIPT_SOURCE_MAX_BYTES,
  SCRIPT_STOP_GRACE_MS,
  SCRIPT_VALUE_MAX_DEPTH,
  SCRIPT_VALUE_MAX_MEMBERS,
} from "../../../common/limits.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import type { Value } from "../../../common/value.ts";
import type { ScriptCall, ScriptEngine, ScriptHost, ScriptLanguage } from "../types.ts";

/** The same small scripts in each language. `IN` and `OUT` are global variables. */
export interface LanguageTexts {
  readonly language: ScriptLanguage;
  /** `OUT = IN`. */
  readonly echo: string;
  /** Sets the global `leak`. Returns whether it, or a change of the library, existed before. */
  readonly leak: string;
  /** `OUT = host.add(IN[0], IN[1])`. */
  readonly add: string;
  /** Calls `host.refuse()` and does not catch its error, on line 2. */
  readonly refused: string;
  /** Calls `host.refuse()`, catches the error, returns its message. */
  readonly caught: string;
  /** `OUT = host.nested(IN)`. */
  readonly nested: string;
  /** Calls `host.wait()` and repeats it when it fails. */
  readonly waiting: string;
  /** Calls `host.wait()` and then, whether it fails or not, `host.add(1, 1)`; `OUT = "done"`. */
  readonly goesOn: string;
  /** Throw the same error as the engine at the deadline. */
  readonly pretending: readonly string[];
  /** Uses an undefined name, on line 3. */
  readonly mistake: string;
  /** Has a syntax error on line 2. */
  readonly unparsable: string;
  /** Scripts that never end. */
  readonly endless: readonly string[];
  /** Computes for minutes without a point at which it can be stopped. */
  readonly stuck: string;
  /** Scripts that exhaust the memory. */
  readonly greedy: readonly string[];
  /** Returns a text of `IN` characters. */
  readonly long: string;
  /** Returns `IN` nested lists. */
  readonly deep: string;
  /** Returns a list of `IN` entries. */
  readonly many: string;
  /** Calls `host.add` with such a list, catches its error and returns the message. */
  readonly handing: string;
  /** Throws a text of `IN` characters. */
  readonly shouting: string;
  /** Calls `host.add(1, 1)` `IN` times. */
  readonly calls: string;
  /**
   * By `IN`: throws for "throw", never ends for "endless", exhausts the memory for "greedy", calls `host.refuse()` for
   * "refused"; otherwise `OUT = IN`.
   */
  readonly asTold: string;
}

const FOR_EVER_MS = 3_600_000;
const DEADLINE_MS = 500;
const THREADS = 2;
/** More steps than a script that ends needs, and few enough for one that never ends. */
const SERIES_STEPS_MAX = 400;

export interface ContractEngine {
  (options: { readonly clock: TestClock; readonly threads: number }): ScriptEngine & { readonly ended: number };
}

/** Contract of the engine for every language. */
export function scriptEngineContract(open: ContractEngine, texts: LanguageTexts): void {
  describe(`scripts in ${texts.language}`, () => {
    const clock = new TestClock();
    let engine: ReturnType<ContractEngine>;
    beforeAll(() => (engine = open({ clock, threads: THREADS })));
    afterAll(() => engine.close());

    const callOf = (source: string, input: Value = null, options: Partial<ScriptCall> = {}): ScriptCall => ({
      tenant: "mine",
      kind: "serverjs",
      user: "anna",
      language: texts.language,
      name: "/ns/a.js",
      source,
      globals: { IN: input },
      results: ["OUT"],
      timeoutMs: FOR_EVER_MS,
      ...options,
    });
    const run = async (source: string, input?: Value, options?: Partial<ScriptCall>): Promise<Value | undefined> =>
      (await engine.run(callOf(source, input, options), HOST)).results["OUT"];
    const refused = (answer: Promise<unknown>): Promise<AppError> =>
      answer.then(
        (value) => expect.fail(`It answered ${JSON.stringify(value)}.`),
        (error: unknown) => error as AppError,
      );

    test("a script finds its globals and answers its results", async () => {
      const value = { text: "grün \u{1f600} \u0000", number: -1.5, yes: true, list: [1, "2", { three: [3] }] };
      expect(await run(texts.echo, value)).toEqual(value);
      expect(await run("", 1)).toBeUndefined();
    });

    test("a script finds nothing that another left", async () => {
      for (let round = 0; round < 2 * THREADS; round++) expect(await run(texts.leak)).toBe(false);
    });

    test("a host call answers at once, as the script sees it", async () => {
      expect(await run(texts.add, [2, 3])).toBe(5);
    });

    test("what a host call refuses is thrown in the script, and keeps its code", async () => {
      expect(await run(texts.caught)).toContain("Not for you.");
      const error = await refused(run(texts.refused));
      expect(error).toMatchObject({ code: "denied", details: { permission: "x:read", line: 2 } });
      expect(error.message).toContain("Not for you.");
    });

    test("a mistake is told with file and line", async () => {
      expect(await refused(run(texts.mistake))).toMatchObject({
        code: "invalid",
        message: expect.stringContaining("/ns/a.js:3"),
        details: { file: "/ns/a.js", line: 3 },
      });
      expect(await refused(run(texts.unparsable))).toMatchObject({ code: "syntax", details: { line: 2 } });
    });

    /** A run that reports when it has begun. */
    const begin = (
      source: string,
      timeoutMs = DEADLINE_MS,
    ): { readonly began: Promise<void>; readonly answer: Promise<AppError> } => {
      let answer!: Promise<AppError>;
      const began = new Promise<void>((resolve) => {
        const host: ScriptHost = { call: async () => (resolve(), null) };
        answer = refused(engine.run(callOf(`${texts.calls}\n${source}`, 1, { timeoutMs }), host));
      });
      return { began, answer };
    };

    test.each(texts.endless)("a script that never ends is stopped at its deadline: %s", async (source) => {
      const { began, answer } = begin(source);
      await began;
      clock.advance(DEADLINE_MS);
      expect(await answer).toMatchObject({ code: "deadline" });
      expect(engine.ended).toBe(0);
    });

    test("a script whose caller is gone before it begins is not begun", async () => {
      const [endless = ""] = texts.endless;
      const answer = await refused(engine.run(callOf(endless, null, { signal: AbortSignal.abort() }), HOST));
      expect(answer).toMatchObject({ code: "cancelled" });
    });

    test("a script that waits for a host call is stopped by its signal, and hears nothing of the answer", async () => {
      let answerLate!: (value: null) => void;
      const late = new Promise<null>((resolve) => (answerLate = resolve));
      const abort = new AbortController();
      let answer!: Promise<AppError>;
      const signal = await new Promise<AbortSignal>((resolve) => {
        const host: ScriptHost = { call: (call) => (resolve(call.signal), late) };
        answer = refused(engine.run(callOf(texts.waiting, null, { signal: abort.signal }), host));
      });
      abort.abort();
      expect(await answer).toMatchObject({ code: "cancelled" });
      expect(signal.aborted).toBe(true);
      answerLate(null);
      expect(await run(texts.add, [1, 1])).toBe(2);
    });

    test("a script that is stopped in a host call answers nothing and calls nothing more, though it ends", async () => {
      const abort = new AbortController();
      const called: string[] = [];
      const host: ScriptHost = {
        call: ({ name }) => {
          called.push(name);
          abort.abort();
          return Promise.resolve(null);
        },
      };
      const answer = await refused(engine.run(callOf(texts.goesOn, null, { signal: abort.signal }), host));
      expect(answer).toMatchObject({ code: "cancelled" });
      expect(called).toEqual(["host.wait"]);
    });

    test("a script that says itself that it was stopped failed, as any other", async () => {
      for (const source of texts.pretending) expect(await refused(run(source))).toMatchObject({ code: "invalid" });
    });

    test("a script that cannot be stopped is ended with its thread, and no other with it", async () => {
      const { began, answer } = begin(texts.stuck);
      await began;
      const others = Array.from({ length: THREADS }, (_, at) => run(texts.add, [at, 1], { tenant: "other" }));
      expect(await Promise.all(others)).toEqual(others.map((_, at) => at + 1));
      clock.advance(DEADLINE_MS);
      clock.advance(SCRIPT_STOP_GRACE_MS);
      expect(await answer).toMatchObject({ code: "deadline" });
      expect(await run(texts.add, [1, 1])).toBe(2);
      // The end of a thread is reported later than that of its script.
      while (engine.ended === 0) await turn();
      expect(engine.ended).toBe(1);
    });

    test("a script that cannot be stopped is ended at the bound of such times, and its place is free", async () => {
      const stuck = Array.from({ length: THREADS }, () => begin(texts.stuck, FOR_EVER_MS));
      await Promise.all(stuck.map(({ began }) => began));
      const waiting = run(texts.add, [1, 1], { user: "ben" });
      let left = stuck.length;
      const answers = stuck.map(async ({ answer }) => answer.finally(() => (left -= 1)));
      while (left > 0) {
        clock.advance(SCRIPT_NATIVE_MAX_MS[texts.language] / SCRIPT_NATIVE_LOOKS);
        await turn();
      }
      const ended = { code: "deadline", details: { limit: "SCRIPT_NATIVE_MAX_MS" } };
      expect(await Promise.all(answers)).toMatchObject(stuck.map(() => ended));
      expect(await waiting).toBe(2);
    });

    test.each(texts.greedy)("a script that wants all memory fails, and no other with it: %s", async (source) => {
      const [greedy, other] = await Promise.all([refused(run(source)), run(texts.add, [1, 2], { tenant: "other" })]);
      expect(greedy.code).toMatch(/^(too_large|invalid)$/);
      expect(other).toBe(3);
    });

    test("an answer of 16 MiB passes, one that is too large is refused", async () => {
      expect(await run(texts.long, 16 * 1_024 * 1_024)).toHaveLength(16 * 1_024 * 1_024);
      expect(await refused(run(texts.long, 25 * 1_024 * 1_024))).toMatchObject({ code: "too_large" });
    });

    test("an answer has so many members and levels, and what is beyond is refused by name", async () => {
      expect(await run(texts.many, SCRIPT_VALUE_MAX_MEMBERS)).toHaveLength(SCRIPT_VALUE_MAX_MEMBERS);
      const tooLarge = (limit: string) => ({ code: "too_large", details: { limit } });
      const many = run(texts.many, SCRIPT_VALUE_MAX_MEMBERS + 1);
      expect(await refused(many)).toMatchObject(tooLarge("SCRIPT_VALUE_MAX_MEMBERS"));
      expect(JSON.stringify(await run(texts.deep, SCRIPT_VALUE_MAX_DEPTH))).toHaveLength(2 * SCRIPT_VALUE_MAX_DEPTH);
      for (const depth of [SCRIPT_VALUE_MAX_DEPTH + 1, 5_000, 200_000])
        expect(await refused(run(texts.deep, depth))).toMatchObject(tooLarge("SCRIPT_VALUE_MAX_DEPTH"));
    });

    test("arguments of a host call have so many members, and what is beyond is thrown at the call", async () => {
      expect(await run(texts.handing, SCRIPT_VALUE_MAX_MEMBERS)).toBeUndefined();
      expect(await run(texts.handing, SCRIPT_VALUE_MAX_MEMBERS + 1)).toContain(
        `host.add is called with has more than ${SCRIPT_VALUE_MAX_MEMBERS} members`,
      );
    });

    test("the text of an error is cut off, and says so", async () => {
      const error = await refused(run(texts.shouting, 20_000_000));
      expect(error).toMatchObject({ code: "invalid", message: expect.stringMatching(/x{99} … \(cut off\)$/) });
      expect(error.message.length).toBeLessThan(2 * SCRIPT_ERROR_MAX_CHARACTERS);
    });

    test("host calls, depth and the text have bounds", async () => {
      expect(await refused(run(texts.calls, SCRIPT_CALLS_MAX + 1))).toMatchObject({
        code: "too_large",
        details: { limit: "SCRIPT_CALLS_MAX" },
      });
      const deep = run(texts.echo, 1, { depth: SCRIPT_DEPTH_MAX + 1 });
      expect(await refused(deep)).toMatchObject({ code: "limited", details: { limit: "SCRIPT_DEPTH_MAX" } });
      const huge = run(" ".repeat(SCRIPT_SOURCE_MAX_BYTES + 1));
      expect(await refused(huge)).toMatchObject({ code: "too_large", details: { limit: "SCRIPT_SOURCE_MAX_BYTES" } });
    });

    const runEach = async (source: string, inputs: readonly Value[]): Promise<readonly unknown[]> => {
      const each = inputs.map((input) => ({ IN: input }));
      const series = { ...callOf(source), each, stepsMax: SERIES_STEPS_MAX, outputMaxCharacters: 1_000 };
      const made = await engine.runEach(series, HOST);
      return made.map((one) => (one instanceof AppError ? one.code : one.results["OUT"]));
    };

    test("a run of a series finds nothing that another left", async () => {
      expect(await runEach(texts.leak, [0, 1, 2, 3])).toEqual([false, false, false, false]);
    });

    test("a run of a series that fails takes no other along", async () => {
      const long = "x".repeat(2_000);
      const told = [1, "throw", 2, "endless", 3, "refused", "greedy", 4, long, { a: [5] }];
      const outcomes = [1, "invalid", 2, "too_large", 3, "denied", "too_large", 4, "too_large", { a: [5] }];
      expect(await runEach(texts.asTold, told)).toEqual(outcomes);
    });

    test("host calls are bounded for each run of a series", async () => {
      const outcomes = await runEach(texts.calls, [1, SCRIPT_CALLS_MAX + 1, 1]);
      expect(outcomes).toEqual([undefined, "too_large", undefined]);
    });

    test("a series that does not parse fails as a whole", async () => {
      await expect(runEach(texts.unparsable, [1, 2])).rejects.toMatchObject({ code: "syntax" });
    });

    test("more scripts than threads, each of which runs another in a host call, all answer", async () => {
      const nesting = (depth: number): ScriptHost => ({
        call: async ({ args: [left] }) => {
          if (left === 0) return depth;
          const inner = callOf(texts.nested, Number(left) - 1, { depth: depth + 1 });
          return (await engine.run(inner, nesting(depth + 1))).results["OUT"] ?? null;
        },
      });
      const runs = Array.from({ length: 3 * THREADS }, () => engine.run(callOf(texts.nested, 2), nesting(0)));
      expect((await Promise.all(runs)).map(({ results }) => results["OUT"])).toEqual(runs.map(() => 2));
    });
  });
}

const HOST: ScriptHost = {
  call: async ({ name, args, at }) => {
    switch (name) {
      case "host.add":
        return Number(args[0]) + Number(args[1]);
      case "host.where":
        return at ?? "";
      case "host.refuse":
        throw new AppError("denied", "Not for you.", { details: { permission: "x:read" } });
      default:
        throw new AppError("unsupported", `There is no ${name}.`);
    }
  },
};
