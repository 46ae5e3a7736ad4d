import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** For every requirement of levels 1 and 2, these pages on OWASP ASVS 5.0 say what holds and the test that shows it. */
const PAGES = ["deploy/docs/maintainers/asvs.md", "deploy/docs/maintainers/asvs-9-17.md"];

/** The requirements of levels 1 and 2 of version 5.0.0: sections with their numbers. */
const REQUIREMENTS = `
1.1.1-2 1.2.1-9 1.3.1-11 1.4.1-3 1.5.1-2 2.1.1-3 2.2.1-3 2.3.1-4 2.4.1 3.2.1-2 3.3.1-4 3.4.1-6 3.5.1-5 3.7.1-2 4.1.1-3
4.2.1 4.3.1-2 4.4.1-4 5.1.1 5.2.1-3 5.3.1-2 5.4.1-3 6.1.1-3 6.2.1-12 6.3.1-4 6.4.1-4 6.5.1-5 6.6.1-3 6.8.1-4 7.1.1-3
7.2.1-4 7.3.1-2 7.4.1-5 7.5.1-2 7.6.1-2 8.1.1-2 8.2.1-3 8.3.1 8.4.1 9.1.1-3 9.2.1-4 10.1.1-2 10.2.1-2 10.3.1-4
10.4.1-11 10.5.1-5 10.6.1-2 10.7.1-3 11.1.1-2 11.2.1-3 11.3.1-3 11.4.1-4 11.5.1 11.6.1 12.1.1-3 12.2.1-2 12.3.1-4
13.1.1 13.2.1-5 13.3.1-2 13.4.1-5 14.1.1-2 14.2.1-4 14.3.1-3 15.1.1-3 15.2.1-3 15.3.1-7 16.1.1 16.2.1-5 16.3.1-4
16.4.1-3 16.5.1-3 17.1.1 17.2.1-4 17.3.1-2
`;

const STANDINGS = ["Proved", "Written down", "No test yet", "Open", "Not applicable"] as const;
type Standing = (typeof STANDINGS)[number];

interface Row {
  readonly id: string;
  readonly standing: Standing;
  readonly shown: string;
}

const page = PAGES.map((path) => readFileSync(path, "utf8")).join("\n");
const rows = [...applicable(), ...notApplicable()];

test("every requirement of levels 1 and 2 is on the pages once, and nothing else", () => {
  expect(rows.map(({ id }) => id).sort()).toEqual(requirements().sort());
});

test("every file that is named is there, with the title or the words", () => {
  const missing = rows.flatMap(({ id, shown }) =>
    proofsIn(shown)
      .filter(isMissing)
      .map((proof) => ({ id, ...proof })),
  );
  expect(missing).toEqual([]);
});

test("what is proved is proved by tests, what is open says what is missing", () => {
  const wrong = rows.filter(({ standing, shown }) => {
    const proofs = proofsIn(shown);
    if (standing === "Proved") return !proofs.every(({ file }) => isTest(file));
    if (standing === "Written down") return proofs.some(({ file }) => isTest(file));
    return proofs.length > 0 || shown === "" || (standing === "No test yet" && shown !== "no test yet");
  });
  expect(wrong).toEqual([]);
});

test("the figures at the top are right", () => {
  const counted = STANDINGS.map((standing) => [standing, rows.filter((row) => row.standing === standing).length]);
  const told = [...page.matchAll(/^\| ([A-Z][a-z ]+) \| (\d+) \|/gm)].map(([, name, count]) => [name, Number(count)]);
  expect(told).toEqual([...counted, ["All", rows.length]]);
});

function requirements(): string[] {
  return REQUIREMENTS.trim()
    .split(/\s+/)
    .flatMap((section) => {
      const [, prefix = "", first = "", last = first] = /^(\d+\.\d+\.)(\d+)(?:-(\d+))?$/.exec(section) ?? [];
      return Array.from({ length: Number(last) - Number(first) + 1 }, (_, at) => `${prefix}${Number(first) + at}`);
    });
}

/** A row must have four cells; otherwise its requirement counts as missing. */
function applicable(): Row[] {
  return page
    .split("\n")
    .map((line) => line.slice(2, -2).split(" | "))
    .filter(([id = "", ...others]) => /^\d+\.\d+\.\d+$/.test(id) && others.length === 3)
    .map(([id = "", , , shown = ""]) => ({ id, shown, standing: standingOf(shown) }));
}

function notApplicable(): Row[] {
  const [, table = ""] = page.split("## Not applicable\n");
  return [...table.matchAll(/^\| (\d[\d., ]*) \| (.+) \|$/gm)].flatMap(([, ids = "", shown = ""]) =>
    ids.split(", ").map((id) => ({ id, shown, standing: "Not applicable" as const })),
  );
}

function standingOf(shown: string): Standing {
  if (shown.startsWith("**open**: ")) return "Open";
  const proofs = proofsIn(shown);
  if (proofs.length === 0) return "No test yet";
  return proofs.some(({ file }) => isTest(file)) ? "Proved" : "Written down";
}

interface Proof {
  readonly file: string;
  readonly text: string;
}

function proofsIn(shown: string): Proof[] {
  return [...shown.matchAll(/`([^`]+)` “([^”]+)”/g)].map(([, file = "", text = ""]) => ({ file, text }));
}

function isTest(file: string): boolean {
  return file.endsWith(".test.ts");
}

/** True if the file lacks the text. A title of a test is searched with its quotes: a part of a title names no test. */
function isMissing({ file, text }: Proof): boolean {
  if (!existsSync(file)) return true;
  const content = readFileSync(file, "utf8");
  const forms = isTest(file) ? [`"${text}"`, `\`${text}\``] : [text];
  return !forms.some((form) => content.includes(form));
}
