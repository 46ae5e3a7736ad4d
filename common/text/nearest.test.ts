import { expect, test } from "vitest";
import { AppError } from "../errors.ts";
import { NEAREST_MAX_CHARACTERS, NEAREST_MAX_NAMES } from "../limits.ts";
import { nearestName, suggestion, unknownName, withNearest } from "./nearest.ts";

test.each([
  ["hots", ["owner", "host", "hot"], "host"],
  ["HOST", ["hosts", "host"], "host"],
  ["ownr", ["size"], undefined],
  ["a", ["b", "A"], "A"],
  ["ab", ["cd"], undefined],
  ["code", ["note"], undefined],
  ["owenrs", ["owner"], "owner"],
  ["rack", ["rackno"], "rackno"],
  ["/matrix/ent/bxo", ["/matrix/ent/box", "/matrix/ent/boxes"], "/matrix/ent/box"],
  ["名称", ["名字", "大小"], "名字"],
  ["na\u{1F600}me", ["name", "names"], "name"],
  ["abcdef", ["abcdxy", "abcdex", "abcdey"], "abcdex"],
])("%s means, of %j, %s", (word, names, nearest) => {
  expect(nearestName(word, names)).toBe(nearest);
});

test("the work for one word is bounded", () => {
  const others = Array.from({ length: NEAREST_MAX_NAMES }, (_, at) => `x${at}`.padEnd(9, "y"));
  expect(nearestName("hostname", [...others.slice(1), "hostnama"])).toBe("hostnama");
  expect(nearestName("hostname", [...others, "hostnama"])).toBeUndefined();
  // Names of another length are not compared, so they do not count.
  expect(nearestName("host", [...others, "hots"])).toBe("hots");
  const long = "a".repeat(NEAREST_MAX_CHARACTERS);
  expect(nearestName(long, [`${long}b`])).toBe(`${long}b`);
  expect(nearestName(`${long}b`, [long])).toBeUndefined();
});

test("a message ends with a question about the nearest name, or with a full stop", () => {
  expect(suggestion("hots", ["host"], "--")).toBe("; did you mean --host?");
  expect(suggestion("hots", [])).toBe(".");
});

test.each([
  ["Field hots Not Exist", "Field hots Not Exist; did you mean host?"],
  ["There is no hots: host, size.", "There is no hots: host, size; did you mean host?"],
  ["class : hots not find !", "class : hots not find ! did you mean host?"],
])("the error about an unknown name names the nearest in text and details: %s", (text, message) => {
  const details = { unknown: "hots", nearest: "host" };
  expect(unknownName(text, { name: "hots", among: ["host"] })).toMatchObject({ code: "not_found", message, details });
});

test("without a near name the error stays as it is", () => {
  const error = unknownName("There is no hots.", { name: "hots", among: ["size"], code: "invalid" });
  expect(error).toMatchObject({ code: "invalid", message: "There is no hots.", details: { unknown: "hots" } });
});

test("an error keeps its other details, and a nearest name that it has", () => {
  const error = new AppError("not_found", "No hots.", { details: { unknown: "hots", line: 3 } });
  const once = withNearest(error, ["host"]);
  expect(once.details).toEqual({ unknown: "hots", line: 3, nearest: "host" });
  expect(withNearest(once, ["hot"])).toBe(once);
  const other = new AppError("denied", "Not you.");
  expect(withNearest(other, ["host"])).toBe(other);
});
