import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import packageJson from "../../../package.json" with { type: "json" };
import { allCommands } from "../commands/all.ts";
import { COMMON_FLAGS, type CommandDeclaration } from "../declared/declaration.ts";
import { described } from "./described.ts";
import { manualPage } from "./manual.ts";
import { referencePage } from "./page.ts";

const COMMANDS = await allCommands();

test("the page and the manual of the repository are made of the commands of this version", () => {
  expect(readFileSync("deploy/docs/command-reference.md", "utf8"), "run npm run gen").toBe(referencePage(COMMANDS));
  expect(readFileSync("deploy/docs/odp.1", "utf8"), "run npm run gen").toBe(manualPage(COMMANDS, packageJson.version));
});

test("every command has a name of its own, a summary in the form of the others, and options without a second meaning", () => {
  const all = described(COMMANDS);
  expect(new Set(all.map(({ words }) => words)).size).toBe(all.length);
  for (const { words, declaration } of all) {
    const { summary, flags = [], arguments: declared = [] } = declaration;
    expect(summary, words).toMatch(/^[a-z].*[^.]$/);
    const names = [...flags, ...declared].map(({ name }) => name);
    expect(new Set(names).size, words).toBe(names.length);
    expect(declared.findIndex(({ isOptional }) => isOptional) === -1 || declared.at(-1)?.isOptional, words).toBe(true);
  }
});

test("no option that takes a password or a token exists: other users see command lines", () => {
  const flags = (commands: readonly CommandDeclaration[]): readonly string[] =>
    commands.flatMap((one) => [
      ...(one.flags ?? []).flatMap(({ name, value }) => (value === undefined ? [] : [name])),
      ...flags(one.commands ?? []),
    ]);
  const names = [...flags(COMMANDS), ...COMMON_FLAGS.map(({ name }) => name)];
  expect(names.filter((name) => /pass|token|secret|session/.test(name))).toEqual([]);
});
