import { expect, test } from "vitest";
import { programSources } from "../../test/helpers/programs/program-sources.ts";
import { beginningOf, cutText } from "./cut.ts";

const FACE = "\u{1F600}";

test("a text of the length is whole, and the beginning of a longer one never ends within a character", () => {
  expect(beginningOf("abc", 3)).toBe("abc");
  expect(beginningOf("abcd", 3)).toBe("abc");
  expect(beginningOf(`ab${FACE}c`, 3)).toBe("ab");
  expect(beginningOf(`ab${FACE}c`, 4)).toBe(`ab${FACE}`);
  expect(beginningOf(FACE, 1)).toBe("");
  expect(beginningOf("ab", 0)).toBe("");
});

test("a text with a mark where it was cut off is not longer than the bound, and holds whole characters", () => {
  expect(cutText("a".repeat(20), 20)).toBe("a".repeat(20));
  expect(cutText(FACE.repeat(20), 20)).toBe(`${FACE.repeat(4)} … (cut off)`);
  expect(cutText(`a${FACE.repeat(20)}`, 20)).toBe(`a${FACE.repeat(3)} … (cut off)`);
});

/** Where a text is cut that is no text of a user, or of which nothing is kept. */
const OWN_CUTS: Readonly<Record<string, string>> = {
  "agent/plugins/log-policy/rotation/chain.ts": "a digest",
  "common/text/tokens.ts": "a term of an index, the same in stores of earlier versions",
  "controller/areas/consolelog/position.ts": "a digest",
  "controller/areas/query/plan/paging.ts": "a digest",
  "controller/areas/users/credentials/password-policy.ts": "the part of a password that is estimated",
  "controller/http/body/part-heads.ts": "the part of a name that is compared",
  "controller/scripting/javascript/task.ts": "the part of a stack in which a place is looked for",
  "controller/store/cluster/records/places.ts": "the time within an id",
};

test("texts are cut by whole characters everywhere", () => {
  const found = programSources("agent", "common", "controller")
    .filter(({ text }) => /\.slice\(0, [A-Z_]+_CHARACTERS\)/.test(text))
    .map(({ file }) => file);
  expect(found.sort()).toEqual(Object.keys(OWN_CUTS));
});
