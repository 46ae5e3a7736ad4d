import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import type { AppError } from "../../../../common/errors.ts";
import { SCRIPT_LOOK_MS, SCRIPT_STOP_GRACE_MS } from "../../../../common/limits.ts";
import type { ScriptHost } from "../../types.ts";
import { type EngineSubject, FOR_EVER_MS, HOST, refused, THREADS } from "./subject.ts";

const DEADLINE_MS = 500;

/** Scripts that end by their deadline or by the signal of their caller. */
export function stoppedScriptsContract(subject: EngineSubject): void {
  const { texts, clock, engine, callOf, run } = subject;

  test.each(texts.endless)("a script that never ends is stopped at its deadline: %s", async (source) => {
    const { began, answer } = begin(subject, source);
    await began;
    clock.advance(DEADLINE_MS);
    expect(await answer).toMatchObject({ code: "deadline" });
    expect(engine().ended).toBe(0);
  });

  test("a script whose caller is gone before it begins is not begun", async () => {
    const [endless = ""] = texts.endless;
    const answer = await refused(engine().run(callOf(endless, null, { signal: AbortSignal.abort() }), HOST));
    expect(answer).toMatchObject({ code: "cancelled" });
  });

  test("a script that waits for a host call is stopped by its signal, and hears nothing of the answer", async () => {
    let answerLate!: (value: null) => void;
    const late = new Promise<null>((resolve) => (answerLate = resolve));
    const abort = new AbortController();
    let answer!: Promise<AppError>;
    const signal = await new Promise<AbortSignal>((resolve) => {
      const host: ScriptHost = { call: (call) => (resolve(call.signal), late) };
      answer = refused(engine().run(callOf(texts.waiting, null, { signal: abort.signal }), host));
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
    const answer = await refused(engine().run(callOf(texts.goesOn, null, { signal: abort.signal }), host));
    expect(answer).toMatchObject({ code: "cancelled" });
    expect(called).toEqual(["host.wait"]);
  });

  test("a script that says itself that it was stopped failed, as any other", async () => {
    for (const source of texts.pretending) expect(await refused(run(source))).toMatchObject({ code: "invalid" });
  });
}

/** Scripts that are ended with their thread. */
export function stuckScriptsContract(subject: EngineSubject): void {
  const { texts, clock, engine, run } = subject;

  test("a script that cannot be stopped is ended with its thread, and no other with it", async () => {
    const { began, answer } = begin(subject, texts.stuck);
    await began;
    const others = Array.from({ length: THREADS }, (_, at) => run(texts.add, [at, 1], { tenant: "other" }));
    expect(await Promise.all(others)).toEqual(others.map((_, at) => at + 1));
    clock.advance(DEADLINE_MS);
    clock.advance(SCRIPT_STOP_GRACE_MS);
    expect(await answer).toMatchObject({ code: "deadline" });
    expect(await run(texts.add, [1, 1])).toBe(2);
    // The end of a thread is reported later than that of its script.
    while (engine().ended === 0) await turn();
    expect(engine().ended).toBe(1);
  });

  test("a script that cannot be stopped is ended at the bound of such times, and its place is free", async () => {
    const stuck = Array.from({ length: THREADS }, () => begin(subject, texts.stuck, FOR_EVER_MS));
    await Promise.all(stuck.map(({ began }) => began));
    const waiting = run(texts.add, [1, 1], { user: "ben" });
    let left = stuck.length;
    const answers = stuck.map(async ({ answer }) => answer.finally(() => (left -= 1)));
    while (left > 0) {
      clock.advance(SCRIPT_LOOK_MS);
      await turn();
    }
    const ended = { code: "deadline", details: { limit: "SCRIPT_NATIVE_MAX_MS" } };
    expect(await Promise.all(answers)).toMatchObject(stuck.map(() => ended));
    expect(await waiting).toBe(2);
  });
}

/** A run that reports when it has begun. Without `timeoutMs` it has a deadline of `DEADLINE_MS`. */
function begin(
  { texts, engine, callOf }: EngineSubject,
  source: string,
  timeoutMs = DEADLINE_MS,
): { readonly began: Promise<void>; readonly answer: Promise<AppError> } {
  let answer!: Promise<AppError>;
  const began = new Promise<void>((resolve) => {
    const host: ScriptHost = { call: async () => (resolve(), null) };
    answer = refused(engine().run(callOf(`${texts.calls}\n${source}`, 1, { timeoutMs }), host));
  });
  return { began, answer };
}
