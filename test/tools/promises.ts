import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROMISES, type FailurePromise, type PromiseId } from "../promises.ts";
import { EVIDENCE_FOLDER, type Evidence } from "../helpers/evidence.ts";

/**
 * `npm run promises`: writes the page of promises under failure, from the records of all test runs since `.evidence`
 * was last removed. With `--check` nothing is written: it fails if these runs did not prove a promise, or if the
 * committed page has other promises than the tests.
 */
const PAGE = "deploy/docs/promises.md";
const SHOWN = "Shown: ";

const promises = Object.entries(PROMISES) as [PromiseId, FailurePromise][];
const page = pageOf(promises.map(([id, promise]) => ({ id, promise, evidence: evidenceOf(id) })));
if (process.argv.includes("--check")) check();
else writeFileSync(PAGE, page);

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
    "What odp promises when programs are killed, machines lose power, disks fill, networks break and clocks differ; by which test each promise is proved, what that test last ran, and",
    "what the proof brought to light. Made of the runs themselves by `npm run promises`; CI fails when a promise was not proved.",
    "",
    ...sections.flatMap(sectionOf),
  ].join("\n");
}

function sectionOf({ id, promise: { promise, tests, found }, evidence }: Section): readonly string[] {
  return [
    `## ${id}`,
    "",
    promise,
    "",
    `Proved by ${tests.map((test) => `[${test}](../../${test})`).join(", ")}`,
    ...(evidence.length === 0 ? [] : ["", ...evidence.map((each) => `- ${SHOWN}${shown(each)}`)]),
    ...(found.length === 0 ? [] : ["", "Found and mended:", "", ...found.map((each) => `- ${each}`)]),
    "",
  ];
}

function shown(evidence: Evidence): string {
  return Object.entries(evidence)
    .map(
      ([name, value]) =>
        `${name} ${Array.isArray(value) ? value.join(" ") : typeof value === "number" ? value.toLocaleString("en") : String(value)}`,
    )
    .join(" · ");
}

function check(): void {
  const problems = promises
    .filter(([id]) => evidenceOf(id).length === 0)
    .map(([id]) => `The promise ${id} was not proved by this run.`);
  const strangers = existsSync(EVIDENCE_FOLDER)
    ? readdirSync(EVIDENCE_FOLDER).map((file) => file.replace(/\.jsonl$/, ""))
    : [];
  problems.push(
    ...strangers.filter((id) => !Object.hasOwn(PROMISES, id)).map((id) => `Evidence for ${id}, which is no promise.`),
  );
  for (const [, { tests }] of promises)
    problems.push(...tests.filter((file) => !existsSync(file)).map((file) => `There is no test ${file}.`));
  if (promisesIn(readFileSync(PAGE, "utf8")) !== promisesIn(page))
    problems.push(`${PAGE} tells other promises than test/promises.ts: run npm run promises after the tests.`);
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
  else console.log(`${promises.length} promises proved by this run.`);
}

/** The page without the figures of a single run. */
function promisesIn(text: string): string {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith(`- ${SHOWN}`))
    .join("\n");
}
