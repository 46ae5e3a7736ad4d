import { afterAll, beforeAll, expect } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import type { Value } from "../../../../common/value.ts";
import { TestClock } from "../../../../test/helpers/time/runtime.ts";
import type { ScriptCall, ScriptEngine, ScriptHost } from "../../types.ts";
import type { LanguageTexts } from "./texts.ts";

export const THREADS = 2;
export const FOR_EVER_MS = 3_600_000;

export interface ContractEngine {
  (options: { readonly clock: TestClock; readonly threads: number }): ScriptEngine & { readonly ended: number };
}

/** The engine under test, with scripts in its language and a clock that only tests advance. */
export interface EngineSubject {
  readonly texts: LanguageTexts;
  readonly clock: TestClock;
  readonly engine: () => ReturnType<ContractEngine>;
  /** A call with `IN` as its only global variable, and a deadline that no test reaches. */
  readonly callOf: (source: string, input?: Value, options?: Partial<ScriptCall>) => ScriptCall;
  /** Runs such a call with `HOST` and answers `OUT`. */
  readonly run: (source: string, input?: Value, options?: Partial<ScriptCall>) => Promise<Value | undefined>;
}

/** Opens an engine before the tests of the enclosing block and closes it after them. */
export function engineSubject(open: ContractEngine, texts: LanguageTexts): EngineSubject {
  const clock = new TestClock();
  let engine: ReturnType<ContractEngine>;
  beforeAll(() => (engine = open({ clock, threads: THREADS })));
  afterAll(() => engine.close());
  const callOf: EngineSubject["callOf"] = (source, input = null, options = {}) => ({
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
  return {
    texts,
    clock,
    engine: () => engine,
    callOf,
    run: async (source, input, options) => (await engine.run(callOf(source, input, options), HOST)).results["OUT"],
  };
}

/** The error of a call; fails if the call answers. */
export function refused(answer: Promise<unknown>): Promise<AppError> {
  return answer.then(
    (value) => expect.fail(`It answered ${JSON.stringify(value)}.`),
    (error: unknown) => error as AppError,
  );
}

export const HOST: ScriptHost = {
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
