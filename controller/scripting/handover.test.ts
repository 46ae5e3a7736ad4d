import { describe, expect, test } from "vitest";
import {
  SCRIPT_CALL_MAX_CHARACTERS,
  SCRIPT_ERROR_MAX_CHARACTERS,
  SCRIPT_LOG_ENTRY_MAX_CHARACTERS,
  SCRIPT_VALUE_MAX_DEPTH,
  SCRIPT_VALUE_MAX_MEMBERS,
} from "../../common/limits.ts";
import { bounded, passedByArguments, passedByValues, shortened } from "./handover.ts";

function nested(depth: number, [begin = "", end = ""]: readonly string[] = ["[", "]"]): string {
  return `[${begin.repeat(depth)}${end.repeat(depth)}]`;
}

const numbers = (count: number): string => JSON.stringify(Array.from({ length: count }, () => 1));
const MOST = SCRIPT_VALUE_MAX_MEMBERS;

describe("values", () => {
  test("pass up to a depth, and are told by its name beyond", () => {
    for (const ends of [
      ["[", "]"],
      ['{"a":', "}"],
    ]) {
      expect(passedByValues(nested(SCRIPT_VALUE_MAX_DEPTH, ends))).toBeUndefined();
      expect(passedByValues(nested(SCRIPT_VALUE_MAX_DEPTH + 1, ends))?.limit).toBe("SCRIPT_VALUE_MAX_DEPTH");
    }
    expect(passedByValues(`[${"[[]],".repeat(1_000)}[]]`)).toBeUndefined();
  });

  test("have so many members and entries, counted all together", () => {
    const half = numbers(MOST / 2);
    expect(passedByValues(`[${numbers(MOST)}]`)).toBeUndefined();
    expect(passedByValues(`{"a":${half},"b":${half}}`)).toBeUndefined();
    for (const json of [`[${numbers(MOST + 1)}]`, `{"a":${half},"b":${half},"c":{"d":1}}`, `{"a":[${half},${half}]}`])
      expect(passedByValues(json)?.limit).toBe("SCRIPT_VALUE_MAX_MEMBERS");
  });

  test("that are texts have neither, whatever stands in them", () => {
    const texts = ['{"a":[1,2,', `${"[".repeat(200)}\\"`, '\\\\"', `${",".repeat(MOST + 1)}"`, "\\"];
    expect(passedByValues(JSON.stringify(texts))).toBeUndefined();
    expect(passedByValues(`["\\\\",${nested(101)}]`)?.limit).toBe("SCRIPT_VALUE_MAX_DEPTH");
  });

  test("of a call have so many characters, too", () => {
    const text = JSON.stringify(["x".repeat(SCRIPT_CALL_MAX_CHARACTERS - 4)]);
    expect(passedByArguments(text)).toBeUndefined();
    expect(passedByArguments(`${text} `)?.limit).toBe("SCRIPT_CALL_MAX_CHARACTERS");
  });
});

describe("entries of a log", () => {
  const length = (args: string): number => (JSON.parse(args) as readonly string[])[0]?.length ?? 0;
  const LONG = SCRIPT_LOG_ENTRY_MAX_CHARACTERS + 1;

  test("go on as they are when they are short", () => {
    expect(shortened("log.info", '["a",{"b":1}]')).toBe('["a",{"b":1}]');
  });

  test("keep so much that they are told to be cut off", () => {
    const args = JSON.stringify(["so", { long: "x".repeat(LONG) }]);
    expect(shortened("log.info", args)).toMatch(/^\["so \{\\"long\\":\\"xxx/);
    expect(length(shortened("log.info", args))).toBe(LONG);
  });

  test("are not even read when they hold more than a call may", () => {
    for (const args of [`[${numbers(MOST + 1)}]`, nested(LONG)]) expect(length(shortened("log.info", args))).toBe(LONG);
  });

  test("are the only arguments that are cut off", () => {
    const args = JSON.stringify(["x".repeat(LONG)]);
    expect(shortened("logs.info", args)).toBe(args);
  });
});

describe("a failure", () => {
  const failure = { kind: "thrown", message: "no", code: "denied", details: { permission: "x:read" } } as const;

  test("that is short is handed over as it is", () => {
    expect(bounded(failure)).toEqual({ ...failure, file: undefined });
  });

  test("has a text of so many characters, which says that it was cut off", () => {
    const { message } = bounded({ ...failure, message: "x".repeat(SCRIPT_ERROR_MAX_CHARACTERS + 1) });
    expect(message).toHaveLength(SCRIPT_ERROR_MAX_CHARACTERS);
    expect(message).toMatch(/^x+ … \(cut off\)$/);
  });

  test("has no other text that is longer", () => {
    const long = "x".repeat(2 * SCRIPT_ERROR_MAX_CHARACTERS);
    const deep = JSON.parse(nested(SCRIPT_VALUE_MAX_DEPTH + 1)) as never;
    for (const details of [{ long }, { deep }] as readonly Readonly<Record<string, string>>[])
      expect(bounded({ ...failure, details }).details).toEqual({ cut: "SCRIPT_ERROR_MAX_CHARACTERS" });
    const { code, file } = bounded({ ...failure, code: long, file: long });
    expect([code?.length, file?.length]).toEqual([SCRIPT_ERROR_MAX_CHARACTERS, SCRIPT_ERROR_MAX_CHARACTERS]);
  });
});
