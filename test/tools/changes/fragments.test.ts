import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { faults, section, withSection } from "./fragments.ts";

const CHANGES = join(import.meta.dirname, "../../../changes");

test("every file of changes/ can be gathered", () => {
  const files = readdirSync(CHANGES).filter((file) => file !== "README.md");
  expect(faults(files.map((file) => ({ file, text: readFileSync(join(CHANGES, file), "utf8") })))).toEqual([]);
});

describe("a fragment", () => {
  test.each([
    ["improved-things.md", "Text.", /the name is not/],
    ["fixed-Things.md", "Text.", /the name is not/],
    ["fixed-things.txt", "Text.", /the name is not/],
    ["fixed-things.md", " \n\n", /it is empty/],
    ["fixed-things.md", "# Things\n\nText.", /a heading or a list/],
    ["fixed-things.md", "- Text.", /a heading or a list/],
    ["fixed-things.md", "x".repeat(1_201), /more than 1200 characters/],
    ["breaking-things.md", "What to do: nothing.", /no second paragraph/],
  ])("%s that says %j is refused", (file, text, what) => {
    expect(faults([{ file, text }])).toEqual([expect.stringMatching(what)]);
  });

  test("of each kind has its place, Breaking first and with what an operator does", () => {
    const fragments = [
      { file: "fixed-b.md", text: "B is\nright now." },
      { file: "fixed-a.md", text: "A is right now." },
      { file: "breaking-c.md", text: "C is refused.\n\nWhat to do: write D.\n" },
    ];
    expect(faults(fragments)).toEqual([]);
    expect(section("0.2.0, 2027-01-31", fragments)).toBe(
      `## 0.2.0, 2027-01-31

### Breaking

- C is refused.

  What to do: write D.

### Fixed

- A is right now.
- B is right now.`,
    );
  });
});

test("a release stands before the last one, and the rest of the changelog stays", () => {
  const changelog = "# Changelog\n\nText.\n\n## 0.1.0, 2026-11-29\n\n- old\n";
  expect(withSection(changelog, "## 0.2.0, 2027-01-31")).toBe(
    "# Changelog\n\nText.\n\n## 0.2.0, 2027-01-31\n\n## 0.1.0, 2026-11-29\n\n- old\n",
  );
  expect(() => withSection("# Changelog\n", "## 0.2.0")).toThrow("no release");
});
