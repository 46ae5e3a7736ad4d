import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { mutationsOf } from "./mutations.ts";
import { SET_CHANGES_PER_FILE, SET_FILES } from "./set.ts";

test.each(SET_FILES)("%s of the fixed set is there, and has lines to change", (file) => {
  expect(mutationsOf(readFileSync(file, "utf8")).length).toBeGreaterThanOrEqual(SET_CHANGES_PER_FILE);
});
