import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROMISES, type FailurePromise, type PromiseId } from "../promises.ts";
import { EVIDENCE_FOLDER, type Evidence } from "../helpers/runs/evidence.ts";

/**
 * `npm run promises`: writes the page of promises under failure, from the records of all test runs since `.evidence`
 * was last removed, and the page of what their tests found. With `--page` nothing is written: it fails if the committed
 * pages say something else than the tests. With `--check` it also fails if these runs did not prove a promise.
 */
const PAGE = "deploy/docs/promises.md";
/** Findings of the tests, for maintainers. */
const HISTORY_PAGE = "deploy/docs/maintainers/found.md";
const SHOWN = "Shown: ";

const promises = Object.entries(PROMISES) as [PromiseId, FailurePromise][];
const pages = [
  { path: PAGE, text: pageOf(promises.map(([id, promise]) => ({ id, promise, evidence: evidenceOf(id) }))) },
  { path: HISTORY_PAGE, text: historyOf(promises) },
];
if (process.argv.includes("--check")) fail([...unproved(), ...differences()]);
else if (process.argv.includes("--page")) fail(differences());
else for (const { path, text } of pages) writeFileSync(path, text);

interface Section {
  readonly id: PromiseId;
  readonly promise: FailurePromise;
  readonly evidence: readonly Evidence[];
}

function evidenceOf(id: PromiseId): readonly Evidence[] {
  const file = join(EVIDENCE_FOLDER, `${id}.jsonl`);
  if (!existsSync(file)) return [];
  const lines = new Set(readFileSync(file, "utf8").split("\n").filter(Boolean));
  return [...lines].sort().map((line) => JSON.parse(line) as Evidence);
}

function pageOf(sections: readonly Section[]): string {
  return [
    "# Promises under failure",
    "",
    "What odp promises when programs are killed, machines lose power, disks fill, networks break and clocks differ; by which test each promise is proved, and what that test last ran.",
    "Made of the runs themselves by `npm run promises`; CI fails when a promise was not proved. What these tests found is on a [page for maintainers](maintainers/found.md).",
    "",
    ...sections.flatMap(sectionOf),
  ].join("\n");
}

function sectionOf({ id, promise: { promise, tests, isSoak }, evidence }: Section): readonly string[] {
  return [
    `## ${id}`,
    "",
    promise,
    "",
    `Proved by ${tests.map((test) => `[${test}](../../${test})`).join(", ")}${isSoak ? ", which `npm run soak` runs" : ""}`,
    ...(evidence.length === 0 ? [] : ["", ...evidence.map((each) => `- ${SHOWN}${shown(each)}`)]),
    "",
  ];
}

function historyOf(all: readonly (readonly [id: PromiseId, promise: FailurePromise])[]): string {
  return [
    "# What the tests of promises found",
    "",
    "For maintainers: faults that the tests of the [promises under failure](../promises.md) brought to light, and how they were mended. Made by `npm run promises`.",
    "",
    ...all.flatMap(([id, { found }]) =>
      found.length === 0 ? [] : [`## ${id}`, "", ...found.map((each) => `- ${each}`), ""],
    ),
  ].join("\n");
}

function shown(evidence: Evidence): string {
  return Object.entries(evidence)
    .map(
      ([name, value]) =>
        `${name} ${Array.isArray(value) ? value.join(" ") : typeof value === "number" ? value.toLocaleString("en") : String(value)}`,
    )
    .join(" · ");
}

function unproved(): readonly string[] {
  const strangers = existsSync(EVIDENCE_FOLDER)
    ? readdirSync(EVIDENCE_FOLDER).map((file) => file.replace(/\.jsonl$/, ""))
    : [];
  return [
    ...promises
      .filter(([id, { isSoak }]) => !isSoak && evidenceOf(id).length === 0)
      .map(([id]) => `The promise ${id} was not proved by this run.`),
    ...strangers.filter((id) => !Object.hasOwn(PROMISES, id)).map((id) => `Evidence for ${id}, which is no promise.`),
  ];
}

function differences(): readonly string[] {
  const missing = promises.flatMap(([, { tests }]) => tests.filter((file) => !existsSync(file)));
  const others = pages.filter(({ path, text }) => promisesIn(readFileSync(path, "utf8")) !== promisesIn(text));
  return [
    ...missing.map((file) => `There is no test ${file}.`),
    ...others.map(
      ({ path }) => `${path} says something else than test/promises.ts: run npm run promises after the tests.`,
    ),
  ];
}

function fail(problems: readonly string[]): void {
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
}

/** The page without the figures of a single run. */
function promisesIn(text: string): string {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith(`- ${SHOWN}`))
    .join("\n");
}
