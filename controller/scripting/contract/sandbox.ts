import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AppError, isAppError } from "../../../common/errors.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import type { ThreadScripts } from "../engine.ts";
import type { ScriptHost, ScriptLanguage } from "../types.ts";
import type { threadScripts } from "./threads.ts";

/** A published way to escape a sandbox or its bounds. A text that escapes leaves its finding in `OUT`. */
export type Technique = readonly [name: string, source: string];

const DEADLINE_MS = 400;
/** Codes with which a text may fail; `internal` would be a fault of the engine. */
const FAILURES = ["invalid", "syntax", "denied", "unsupported", "too_large", "deadline"] as const;

/** No text may find anything, and none may block the engine for longer than its deadline. */
export function sandboxContract(
  open: Awaited<ReturnType<typeof threadScripts>>,
  language: ScriptLanguage,
  { techniques, works }: { readonly techniques: readonly Technique[]; readonly works: string },
): void {
  describe(`ways out of ${language}`, () => {
    let engine: ThreadScripts;
    beforeAll(() => (engine = open({ clock: realClock, threads: 2 })));
    afterAll(() => engine.close());
    const builtIns = JSON.stringify(Object.getOwnPropertyNames(Object.prototype));

    const run = async (source: string, timeoutMs: number): Promise<unknown> => {
      const by = { tenant: "mine", kind: "serverjs", user: "anna" } as const;
      const call = { ...by, language, name: "/ns/a", source, globals: {}, results: ["OUT"], timeoutMs };
      return (await engine.run(call, HOST)).results["OUT"];
    };

    test.each(techniques)("%s", async (_name, source) => {
      try {
        expect([undefined, null, false]).toContain(await run(source, DEADLINE_MS));
      } catch (error) {
        if (!isAppError(error)) throw error;
        expect(FAILURES).toContain(error.code);
        expect(`${error.message} ${JSON.stringify(error.details)}`).not.toMatch(/node:|\.ts\b|\/work|node_modules/);
      }
      expect(JSON.stringify(Object.getOwnPropertyNames(Object.prototype))).toBe(builtIns);
      expect(await run(works, 60_000)).toBe(3);
    });
  });
}

const HOST: ScriptHost = {
  call: ({ name, args }) =>
    name === "host.add"
      ? Promise.resolve(Number(args[0]) + Number(args[1]))
      : Promise.reject(new AppError("unsupported", `There is no ${name}.`)),
};
