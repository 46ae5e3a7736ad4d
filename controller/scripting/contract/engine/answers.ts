import { expect, test } from "vitest";
import type { ScriptHost } from "../../types.ts";
import { type EngineSubject, refused, THREADS } from "./subject.ts";

/** Globals, results, host calls, and errors as a script and its caller see them. */
export function answersContract({ texts, run }: EngineSubject): void {
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
}

/** Scripts that run others in their host calls. */
export function nestedScriptsContract({ texts, engine, callOf }: EngineSubject): void {
  test("more scripts than threads, each of which runs another in a host call, all answer", async () => {
    const nesting = (depth: number): ScriptHost => ({
      call: async ({ args: [left] }) => {
        if (left === 0) return depth;
        const inner = callOf(texts.nested, Number(left) - 1, { depth: depth + 1 });
        return (await engine().run(inner, nesting(depth + 1))).results["OUT"] ?? null;
      },
    });
    const runs = Array.from({ length: 3 * THREADS }, () => engine().run(callOf(texts.nested, 2), nesting(0)));
    expect((await Promise.all(runs)).map(({ results }) => results["OUT"])).toEqual(runs.map(() => 2));
  });
}
