import { expect, test } from "vitest";
import { KeptHeadings } from "./kept-headings.ts";

/** A file whose heading takes so many bytes of its mark. */
function state(serial: number, bytes: number, letter = "x") {
  const heading = { by: "first", text: "" };
  const rest = (bytes - JSON.stringify(heading).length) / JSON.stringify(letter).slice(1, -1).length;
  return { serial, heading: { ...heading, text: letter.repeat(rest) } };
}

test("the heading lines of all marks have a bound together, and make room for others when they go", () => {
  const headings = new KeptHeadings(1_000);
  const keeps = (serial: number, bytes: number) => headings.stored(state(serial, bytes)).includes("xx");
  headings.note(state(1, 400));
  expect([keeps(1, 400), keeps(2, 600), keeps(3, 100), keeps(1, 401)]).toEqual([true, true, false, false]);
  expect(keeps(3, 100)).toBe(true);
  headings.forget(2);
  expect(keeps(1, 900)).toBe(true);
  expect(JSON.parse(headings.stored(state(2, 600)))).toEqual({ serial: 2 });
});

test("a heading line of control characters counts as it is stored", () => {
  const line = state(1, 624, "\u0001");
  expect(JSON.parse(new KeptHeadings(624).stored(line))).toEqual(line);
  expect(JSON.parse(new KeptHeadings(623).stored(line))).toEqual({ serial: 1 });
});
