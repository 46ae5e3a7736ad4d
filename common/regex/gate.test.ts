import { expect, it } from "vitest";
import { programSources } from "../../test/helpers/programs/program-sources.ts";

/** Files that create regular expressions from texts that users do not write, and the origin of these texts. */
const OWN_TEXTS: Readonly<Record<string, string>> = {
  "common/csv/reader.ts": "the separator and the quote, one character each, as their codes",
  "common/regex/native.ts": "the gate",
  "common/times/formats.ts": "formats of times, which the program writes",
  "common/search/parse-time.ts": "forms of times, which the program writes",
  "controller/http/input/coerce.ts": "patterns of the program's own schemas",
  "controller/areas/rules/bodies/frames.ts": "a part of the script, which runs in its own machine",
  "controller/areas/rules/grok/trial.ts": "the match of a grok, which the gate compiled",
  "controller/areas/rules/parsing/parsers.ts": "the match of a grok, which the gate compiled",
  "controller/areas/rules/grok/patterns.ts": "the match of a grok, which the gate compiled",
  "controller/cli/doctor/redaction.ts": "names of secrets, which the program chooses",
  "common/text/markup.ts": "names of attributes, which the program chooses",
};

it("no user's expression runs but through the gate", () => {
  // String.match and String.search convert any text to an expression.
  const makes = /\bRegExp\s*\(|\bRE2JS\.compile|\.(?:match|matchAll|search)\(\s*(?!\/|[A-Z][A-Z_0-9]*\b)[\w.]+\s*\)/;
  const found = programSources("agent", "common", "controller").filter(({ text }) => makes.test(text));
  expect(found.map(({ file }) => file).filter((file) => !Object.hasOwn(OWN_TEXTS, file))).toEqual([
    "common/regex/re2.ts",
  ]);
});
