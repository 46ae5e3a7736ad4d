import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { rowsOf, viewOf } from "../formats/columns.ts";
import { timesIn } from "./queries.ts";

const FOUND_DEFAULT = 100;

/** `odp search` */
export const SEARCH_COMMANDS: CommandDeclaration = {
  name: "search",
  summary: "find objects of many classes by words and conditions",
  details:
    "Words are found in every text that you may see; all of them must match. A text that begins with / # or debug> is a whole search in the language of the page search.md. Other texts find present objects only.",
  arguments: [{ name: "words", summary: "words, conditions such as size>10, or one whole search", isRepeated: true }],
  flags: [
    { name: "class", value: "class", summary: "only objects of this class and those below it", completes: "classes" },
    { name: "limit", value: "n", summary: `how many; default: ${FOUND_DEFAULT}` },
  ],
  examples: [
    "odp search disk full",
    "odp search --class /acme/log 'level=error' --limit 10",
    "odp search '#/acme/log: | error | nearest 1 hour | print host, message'",
  ],
  run: search,
};

async function search(call: Call): Promise<void> {
  const { shell } = call;
  const cond = searchOf(call);
  const client = await shell.client();
  const request = { body: { cond, meta: true } };
  const { message, meta, warnings } = await client.answer("postMxobjectSearch", request, { signal: shell.ended() });
  for (const warning of warnings) shell.note(`warning: ${warning}`);
  await shell.show(message, message.length > 0 ? viewOf(rowsOf(message), timesIn(meta)) : undefined);
  if (message.length === Number(call.optional("limit") ?? FOUND_DEFAULT))
    shell.note(`There may be more than these ${message.length}: add --limit <n>.`);
}

/** The text in the language of searches. */
function searchOf(call: Call): string {
  const text = call.list("words").join(" ");
  const [path, limit] = [call.optional("class"), call.number("limit")];
  const isWhole = /^\s*([/#]|debug>)/.test(text);
  if (isWhole && (path !== undefined || limit !== undefined))
    throw new UsageError("A whole search names its class and its number of rows: leave --class and --limit out.");
  if (isWhole) return text;
  return [
    path === undefined ? "#" : `#${path.replace(/\/+$/, "")}/:`,
    text,
    ...(limit === undefined ? [] : [`top ${limit}`]),
  ].join(" | ");
}
