import { expect, test } from "vitest";
import {
  SCRIPT_CALLS_MAX,
  SCRIPT_DEPTH_MAX,
  SCRIPT_ERROR_MAX_CHARACTERS,
  SCRIPT_SOURCE_MAX_BYTES,
  SCRIPT_VALUE_MAX_DEPTH,
  SCRIPT_VALUE_MAX_MEMBERS,
} from "../../../../common/limits.ts";
import { type EngineSubject, refused } from "./subject.ts";

/** Bounds of memory and of values: answers, arguments of host calls and texts of errors. */
export function boundsOfValuesContract({ texts, run }: EngineSubject): void {
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
}

/** Bounds of host calls, of depth and of the source. */
export function boundsOfCallsContract({ texts, run }: EngineSubject): void {
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
}
