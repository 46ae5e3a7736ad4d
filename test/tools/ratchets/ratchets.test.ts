import { describe, expect, test } from "vitest";
import { complaints, lowered } from "./compare.ts";
import { measure, type Measured } from "./measure.ts";

const lines = (count: number): string => "  work();\n".repeat(count);
const functionOf = (count: number, head = "function long()"): string => `${head} {\n${lines(count - 2)}}\n`;
const measuredOf = (text: string, path = "a.ts"): Measured => measure([{ path, text }]);

describe("a measure of the code", () => {
  test("a function of 71 lines is long, one of 70 is not, and a test file may have longer ones", () => {
    expect(measuredOf(functionOf(71)).functions).toEqual({ "a.ts long": 71 });
    expect(measuredOf(functionOf(70)).functions).toEqual({});
    expect(measuredOf(functionOf(71), "a.test.ts").functions).toEqual({});
  });

  test("a method, a function in a variable and a function without a name are told by the name next to them", () => {
    expect(measuredOf(`class Big {\n${functionOf(80, "work()")}}\n`).functions).toEqual({ "a.ts Big.work": 80 });
    expect(measuredOf(`const late = () => ${functionOf(80, "").trimStart()}`).functions).toEqual({ "a.ts late": 80 });
    expect(measuredOf(`run(() => ${functionOf(80, "").trimStart()});`).functions).toEqual({ "a.ts (file)": 80 });
  });

  test("a doc comment is no part of the length; what stands between two functions neither", () => {
    expect(
      measuredOf(`/**\n${" * long\n".repeat(80)} */\n${functionOf(70)}${"\n".repeat(9)}${functionOf(70)}`).functions,
    ).toEqual({});
  });

  test("a class of 251 lines and a file of 401 are long", () => {
    expect(measuredOf(`class Big {\n${"  a = 1;\n".repeat(249)}}\n`).classes).toEqual({ "a.ts Big": 251 });
    expect(measuredOf(`class Big {\n${"  a = 1;\n".repeat(248)}}\n`).classes).toEqual({});
    expect(measuredOf(lines(401)).files).toEqual({ "a.ts": 401 });
    expect(measuredOf(lines(400)).files).toEqual({});
  });

  test("a page of 1,001 words is long, however its lines are broken", () => {
    expect(measuredOf("word\n".repeat(1_001), "README.md").readmes).toEqual({ "README.md": 1_001 });
    expect(measuredOf("word ".repeat(1_000), "README.md").readmes).toEqual({});
  });

  test.each([
    ["/** Of objects that ended. */", [1, 0]],
    ["  // What was read.", [1, 0]],
    [" * Whether it is open.", [1, 0]],
    ["/** Else the next. */", [1, 0]],
    ["/** True if nobody else has it. */", [0, 1]],
    ["/** Removed, whatever its time is. */", [0, 1]],
    ["/** The objects that ended, of which one is left. */", [0, 0]],
    ['const text = "Of what nobody says";', [0, 0]],
    ["/** Offers a place. */", [0, 0]],
  ])("of comments that are hard to read, %s counts as it is", (line, counts) => {
    expect(Object.values(measuredOf(line).comments)).toEqual(counts);
  });

  test.each([
    ['for (const one of [a(), b()])\n  await expect(one).rejects.toThrow("x");', { "a.ts": 1 }],
    ["for (const one of calls) {\n  await expect(one, name).rejects.toMatchObject({ code });\n}", { "a.ts": 1 }],
    ['for (const one of names) await expect(call(one)).rejects.toThrow("x");', {}],
    ["for (const one of names) await expect(one.call()).rejects.toThrow();", {}],
    ["for (const one of names) expect(one).toBe(1);", {}],
  ])("of loops that expect rejections, %s counts as it is", (text, loops) => {
    expect(measuredOf(text).loops).toEqual(loops);
  });
});

describe("the list of what is above its bound", () => {
  const listed: Measured = {
    functions: { "a.ts long": 90 },
    classes: {},
    files: { "b.ts": 500 },
    readmes: {},
    comments: { hard: 3 },
    loops: {},
  };

  test("nothing is said while all is as listed", () => {
    expect(complaints(listed, listed)).toEqual([]);
  });

  test("what has grown or is new is refused", () => {
    const measured = { ...listed, functions: { "a.ts long": 91, "c.ts other": 71 }, comments: { hard: 4 } };
    expect(complaints(measured, listed)).toEqual([
      "functions: a.ts long 91 (90 in the list): split the function by purpose",
      "functions: c.ts other 71 (not in the list): split the function by purpose",
      "comments: hard 4 (3 in the list): rewrite the comment: subject first, active verb",
    ]);
  });

  test("what has shrunk has to be written down, and cannot grow again", () => {
    const measured = { ...listed, functions: {}, files: { "b.ts": 450 }, comments: { hard: 2 } };
    expect(complaints(measured, listed)).toEqual([
      "functions: the list says more than there is: npm run ratchets writes what is left",
      "files: the list says more than there is: npm run ratchets writes what is left",
      "comments: the list says more than there is: npm run ratchets writes what is left",
    ]);
    const after = lowered(measured, listed);
    expect(after).toEqual(measured);
    expect(lowered(listed, after)).toEqual(after);
    expect(complaints(listed, after)).not.toEqual([]);
  });
});
