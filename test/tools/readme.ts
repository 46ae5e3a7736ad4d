import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually, freePort } from "../helpers/programs/programs.ts";
import { fencesOf, parseBlocks } from "../mql/blocks.ts";

/**
 * Follows the README like a new user: clones into an empty folder, runs `npm ci && npm start`, then every command of
 * "First steps" against the running program, and the queries of the user pages about its demonstration. Fails if one of
 * them does.
 */
const READY_DEADLINE_MS = 60_000;
const DEMO_DEADLINE_MS = 60_000;
const ANSWER_SHOWN_CHARACTERS = 300;

const folder = mkdtempSync(join(tmpdir(), "odp-readme-"));
const port = await freePort();
const environment = { ...process.env, ODP_PORT: String(port), ODP_AGENT_PORT: String(await freePort()) };

execFileSync("git", ["clone", "--quiet", process.cwd(), folder], { stdio: "inherit" });
execFileSync("npm", ["ci", "--no-progress", "--silent"], { cwd: folder, stdio: "inherit" });
const child = spawn("npm", ["start"], {
  cwd: folder,
  env: environment,
  stdio: ["ignore", "pipe", "pipe"],
  detached: true,
});
let output = "";
child.stdout.on("data", (part: Buffer) => (output += part.toString()));
child.stderr.on("data", (part: Buffer) => (output += part.toString()));

try {
  const password = (await printed(/password\s+(\S+)/, READY_DEADLINE_MS))[1] ?? "";
  await printed(/records have arrived/, DEMO_DEADLINE_MS);
  console.log(output.trimEnd());
  const variables = { ...environment, ODP_PASSWORD: password, ODP_URL: `http://127.0.0.1:${port}` };
  for (const command of firstSteps()) run(command, variables);
  for (const example of demoExamples()) await ask(example, password);
} finally {
  if (child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
  await new Promise((resolve) => (child.exitCode === null ? child.once("exit", resolve) : resolve(undefined)));
  rmSync(folder, { recursive: true, force: true });
}
console.log("1 passed, 0 failed");

function printed(expected: RegExp, deadlineMs: number): Promise<RegExpExecArray> {
  return eventually(`npm start prints ${expected}`, deadlineMs, () => {
    if (child.exitCode !== null) throw new Error(`npm start ended:\n${output}`);
    return expected.exec(output) ?? undefined;
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${output}`);
  });
}

/** The lines of the first shell block under "First steps", without comments and the placeholder for the password. */
function firstSteps(): readonly string[] {
  const readme = readFileSync("README.md", "utf8");
  const block = /## First steps[\s\S]*?```sh\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
  const commands = block
    .split("\n")
    .map((line) => line.replace(/\s+#.*$/, ""))
    .filter((line) => line !== "" && !line.startsWith("export "));
  if (commands.length < 4) throw new Error("The README's first steps have gone.");
  return commands.map((command) => command.replaceAll("http://127.0.0.1:8080", `http://127.0.0.1:${port}`));
}

interface Example {
  readonly kind: string;
  readonly text: string;
}

/** Queries of the pages, without their answers: the records of the demonstration differ from those on the pages. */
function demoExamples(): readonly Example[] {
  const pages = readdirSync("deploy/docs").filter((name) => name.endsWith(".md"));
  const examples = pages
    .flatMap((name) => fencesOf(readFileSync(join("deploy/docs", name), "utf8")))
    .filter(({ kind }) => kind === "mql" || kind === "search")
    .flatMap(({ kind, text }) => parseBlocks(text).map((block) => ({ kind, text: block.text })))
    .filter(({ text }) => text.includes("/matrix/demo/") && /^(select|debug>|#)/.test(text));
  if (examples.length < 5) throw new Error("The pages ask nothing of the demonstration any more.");
  return examples;
}

async function ask({ kind, text }: Example, password: string): Promise<void> {
  const authorization = `Basic ${Buffer.from(`matrix.admin:${password}`).toString("base64")}`;
  const url = `http://127.0.0.1:${port}/mxobject/${kind}`;
  const answer = await fetch(url, { method: "POST", headers: { authorization }, body: text });
  const told = await answer.text();
  console.log(`\n${text}\n${told.slice(0, ANSWER_SHOWN_CHARACTERS)}`);
  if (!answer.ok || told.includes('"status":"error"')) throw new Error(`An example of the pages fails: ${text}`);
}

function run(command: string, variables: NodeJS.ProcessEnv): void {
  const answer = execFileSync("sh", ["-c", command], { cwd: folder, env: variables, encoding: "utf8" });
  console.log(`\n$ ${command}\n${answer.trimEnd()}`);
  if (answer.trim() === "" || answer.includes("no rows") || answer.includes('"status":"error"'))
    throw new Error(`The README's command answers nothing: ${command}`);
}
