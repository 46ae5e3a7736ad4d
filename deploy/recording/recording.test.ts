import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { allCommands } from "../../controller/cli/commands/all.ts";
import { COMMON_FLAGS, flagsOf, type CommandDeclaration } from "../../controller/cli/declared/declaration.ts";
import { escapeHtml } from "../../common/text/html.ts";
import { RECORDED } from "./session.ts";
import { recordingSvg } from "./svg.ts";

const COMMANDS = await allCommands();

/** The declaration that the words of a command name, and the words behind its name. */
function declared(words: readonly string[]): readonly [CommandDeclaration | undefined, readonly string[]] {
  let found: CommandDeclaration | undefined;
  let among = COMMANDS;
  for (const [at, word] of words.entries()) {
    const next = among.find(({ name }) => name === word);
    if (next === undefined) return [found, words.slice(at)];
    [found, among] = [next, next.commands ?? []];
  }
  return [found, []];
}

test.each(RECORDED)("%s is a command of odp, with options that it has", (line) => {
  const [program, ...words] = line.split(" ");
  const [command, rest] = declared(words);
  expect(program).toBe("odp");
  expect(command?.run).toBeDefined();
  const known = [...(command ? flagsOf(command) : []), ...COMMON_FLAGS].map(({ name }) => `--${name}`);
  expect(known).toEqual(expect.arrayContaining(rest.filter((word) => word.startsWith("--"))));
});

test("the picture of the README shows these commands", async () => {
  const picture = await readFile("deploy/docs/first-minutes.svg", "utf8");
  for (const command of RECORDED) expect(picture).toContain(`>$ ${escapeHtml(command)}</text>`);
  expect(await readFile("README.md", "utf8")).toContain("(deploy/docs/first-minutes.svg)");
});

test("a picture escapes what is shown, and cuts lines at the columns of the terminal", () => {
  const picture = recordingSvg([{ command: "odp <a>", output: "12345678\r\n\r\n&\r\n" }], 5);
  expect([...picture.matchAll(/>([^<]*)<\/text>/g)].map(([, text]) => text)).toEqual([
    "$ odp",
    " &lt;a&gt;",
    "12345",
    "678",
    "&amp;",
  ]);
});
