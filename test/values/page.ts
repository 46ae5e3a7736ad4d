import type { Outcome, Tables } from "./table.ts";
import { VALUES } from "./values.ts";

/** The page of the documentation that the tests compare with the results. */
export const PAGE = "deploy/docs/values.md";

const HEADINGS: Readonly<Record<keyof Tables, string>> = {
  in: "Ways in",
  out: "Ways out",
  kept: "Places without types",
};

/** The whole page. */
export function page(tables: Tables): string {
  return [
    "# What becomes of a value",
    "",
    "Whether a value that programs often alter comes out as it went in: by every way in, by every way out, and in places outside of objects. Made by `npm run values`; the tests compare each way with this page (`test/values/values.test.ts`).",
    "",
    "| In a table | Means |",
    "| --- | --- |",
    "| `=` | the value is kept, and comes out, as it is |",
    "| refused | nothing is written, and the error names the column, the member, or the place in the file |",
    "| as `0` | of the two zeros of a double, which are equal, columns and JSON have the one without a sign ([decision 30](decisions/0030-zero-has-no-sign.md)) |",
    "| as text | the place keeps texts, and a number as JavaScript writes it |",
    "| whole part | `:int` of a grok pattern cuts off a fraction |",
    "| not kept | an empty part of a line, a blank line and a member that is null say nothing: the column is not set |",
    "| – | the way has no form for the value |",
    "",
    'The whole numbers go to a `bigint`, `1e308` and `-0` to a `double`, times to a `timestamp`, days to a `date`, texts to a `varchar`. The lone surrogate is half of a character (`"a\\ud800b"`), which no text of a store has; combining is `e` with two marks that stay as they are; NUL is the character 0.',
    "",
    '- JSON answers, scripts and notifications have whole numbers beyond 2^53 as texts: `"9007199254740993"`. Every way in takes such a text for a number.',
    "- A number of a script is a double, so a script writes larger whole numbers as texts. A number with an exponent (`9.1e15`) is a double on every way.",
    "- A list of Lua has no null: a body of a rule that hands on a list with one leaves it out, or is refused by the column. A trigger that does not touch the list leaves it as it is.",
    "- A `double` holds the nearest double of what is written.",
    "- A job gets its parameters as texts; a list or an object as JSON, in which whole numbers beyond 2^53 are texts.",
    "- A text with a lone surrogate is refused where a member is a text. Where JSON is kept without types, and in imports of configuration, it stays as it is.",
    "- Bytes that are no text of the encoding that is named, or of UTF-8, are refused in bodies, queries, forms, imports, names in archives and files that a rule parses. In the output of commands they are read as U+FFFD and counted, and in lines of logs read as U+FFFD: [encodings](encodings.md).",
    ...(["in", "out", "kept"] as const).flatMap((name) => section(HEADINGS[name], tables[name])),
    "",
  ].join("\n");
}

function section(heading: string, rows: ReadonlyMap<string, readonly Outcome[]>): readonly string[] {
  return [
    "",
    `## ${heading}`,
    "",
    `| | ${VALUES.map(({ name }) => name).join(" | ")} |`,
    `| --- |${" --- |".repeat(VALUES.length)}`,
    ...[...rows].map(([name, outcomes]) => `| ${name} | ${outcomes.join(" | ")} |`),
  ];
}

/** The outcomes on a page, by table and row. */
export function readPage(text: string): Tables {
  const of = (name: keyof Tables): ReadonlyMap<string, readonly Outcome[]> => {
    const part = text.split("\n## ").find((some) => some.startsWith(`${HEADINGS[name]}\n`)) ?? "";
    const rows = part.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| |"));
    return new Map(
      rows
        .filter((line) => !line.startsWith("| ---"))
        .map((line) => {
          const [row = "", ...outcomes] = line.slice(2, -2).split(" | ");
          return [row, outcomes] as const;
        }),
    );
  };
  return { in: of("in"), out: of("out"), kept: of("kept") };
}
