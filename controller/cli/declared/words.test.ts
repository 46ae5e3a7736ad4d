import { expect, test } from "vitest";
import type { CommandDeclaration } from "./declaration.ts";
import { expandedWords, namedCommands, placeOfCommand } from "./words.ts";

const run = () => Promise.resolve();
const COMMANDS: readonly CommandDeclaration[] = [
  { name: "exec", summary: "", passesThrough: true, flags: [{ name: "timeout", value: "s", summary: "" }], run },
  { name: "host", summary: "", commands: [{ name: "list", summary: "", isReading: true, run }] },
  { name: "sync", summary: "", flags: [{ name: "watch", summary: "" }], run },
];

test.each([
  ["host list --json=name,status", "host list --json --fields=name,status"],
  ["--json=a host list", "--json --fields=a host list"],
  ["host list --watch", "host list --watch=2"],
  ["host list --watch -o csv", "host list --watch=2 -o csv"],
  ["host list --watch=9", "host list --watch=9"],
  ["sync --watch a b", "sync --watch a b"],
  ["exec --timeout 5 web-1 top --watch --json=x", "exec --timeout 5 web-1 top --watch --json=x"],
  ["--context exec host list --json=a", "--context exec host list --json --fields=a"],
  ["host list -- --json=a", "host list -- --json=a"],
  ["host list --fields --watch", "host list --fields --watch"],
])("%s is %s", (words, expanded) => {
  expect(expandedWords(words.split(" "), COMMANDS).join(" ")).toBe(expanded);
});

test.each([
  ["host list", 0],
  ["--context host exec", 2],
  ["--context host", -1],
  ["--fields=host --utc -o csv host list", 4],
  ["-o host --help", -1],
  ["hst host", -1],
])("the command of %s is at %i", (words, place) => {
  expect(placeOfCommand(words.split(" "), ["exec", "host", "sync"])).toBe(place);
});

const TREE: readonly CommandDeclaration[] = [
  { name: "host", summary: "", commands: [...(COMMANDS[1]?.commands ?? []), { name: "show", summary: "", run }] },
  { name: "tokens", summary: "", run, commands: [{ name: "remove", summary: "", run }] },
];

function treeOf(commands: readonly CommandDeclaration[]): string {
  return commands.map(({ name, commands: below }) => (below ? `${name}(${treeOf(below)})` : name)).join(" ");
}

test.each([
  ["host show web-1", "host(show)"],
  ["-o json host --utc list --help", "host(list)"],
  ["host --help show", "host(list show)"],
  ["host --help", "host(list() show())"],
  ["-o json --help", "host() tokens()"],
  ["-o", "host() tokens()"],
  ["host", "host(list() show())"],
  ["tokens remove", "tokens(remove)"],
  ["tokens", "tokens(remove)"],
  ["--help host", "host(list show) tokens(remove)"],
  ["help host", "host(list show) tokens(remove)"],
  ["hst", "host(list show) tokens(remove)"],
])("%s needs %s", (words, tree) => {
  expect(treeOf(namedCommands(words.split(" "), TREE))).toBe(tree);
});
