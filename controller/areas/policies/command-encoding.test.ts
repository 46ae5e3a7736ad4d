import { expect, test } from "vitest";
import { checkSpec } from "./validation.ts";

const COMMAND = { kind: "command", name: "p", rule: "/r", command: "a", ctype: 1, interval: 1, unit: "day" } as const;

test("the encoding of a command's output is refused when the policy is saved, by its name", () => {
  for (const encoding of ["gbk", "UTF-16LE", "utf-8", ""]) checkSpec({ ...COMMAND, attrs: { encoding } });
  expect(() => checkSpec({ ...COMMAND, attrs: { encoding: "klingon" } })).toThrow(
    'attrs.encoding="klingon" is no encoding that is read here',
  );
});
