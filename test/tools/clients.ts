import { execFile, spawn, type ExecFileOptions } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createReadStream, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { promisify } from "node:util";
import { defaultCacheDir } from "../../deploy/local/install.ts";
import { checkRefusals, inNameSpace, REFUSALS } from "../openapi/clients/refusals.ts";

/**
 * The OpenAPI document as tools of others read it: it keeps the rules of Redocly, gives types to TypeScript and a client
 * to Python that calls a controller, schemathesis finds no answer that it does not describe, and no call that it allows
 * is refused, but for those of `refused.json`. Needs Python 3.10 with `venv`; its packages are installed into the cache.
 * `ODP_SCHEMA_EXAMPLES`: calls of each operation by schemathesis.
 */
const EXAMPLES = process.env["ODP_SCHEMA_EXAMPLES"] ?? "2";
const SEED = process.env["ODP_SCHEMA_SEED"] ?? "1";
/** Entries of `.redocly.lint-ignore.yaml`. Lower it with the list. */
const IGNORED_MAX = 13;
const FOLDER = resolve("test/openapi/clients");
const DOCUMENT = resolve("deploy/docs/openapi.json");
const CHECKS = ["status_code_conformance", "content_type_conformance", "response_schema_conformance"];
/** Streams have no end that schemathesis would wait for. */
const STREAMS = "/follow$|^/job/output/";

/** The longest step takes a minute, the installation of packages two. */
const STEP_DEADLINE_MS = 10 * 60_000;
const STOP_DEADLINE_MS = 30_000;

const work = mkdtempSync(join(tmpdir(), "odp-clients-"));
const started = performance.now();

const server = spawn("node_modules/.bin/tsx", [join(FOLDER, "serve.ts")], { stdio: ["pipe", "pipe", "inherit"] });
const ended = once(server, "exit", { signal: AbortSignal.timeout(STEP_DEADLINE_MS) });

try {
  const [address, python] = await Promise.all([
    addressOf(server),
    pythonOf(),
    step("rules of Redocly", lint),
    step("types for TypeScript", types),
  ]);
  await step("client for Python", () => generate(python));
  await step("calls of the client", () => call(python, address));
  await step("schemathesis", () => fuzz(python, address));
} catch (error) {
  const { stdout = "", stderr = "", message } = error as { stdout?: string; stderr?: string; message: string };
  console.error(`${stdout}\n${stderr}\n${message}`.slice(-8_000));
  process.exitCode = 1;
} finally {
  // The controller stops when its input ends. It must not outlive a step that failed.
  server.stdin.end();
  const kill = setTimeout(() => server.kill("SIGKILL"), STOP_DEADLINE_MS);
  await ended.catch(() => undefined);
  clearTimeout(kill);
  rmSync(work, { recursive: true, force: true });
}

function run(program: string, args: readonly string[], options: ExecFileOptions = {}) {
  const bounds = { timeout: STEP_DEADLINE_MS, maxBuffer: 64 * 1024 * 1024, encoding: "utf8" } as const;
  return promisify(execFile)(program, args, { ...options, ...bounds });
}

async function step(name: string, act: () => Promise<unknown>): Promise<void> {
  await act();
  console.log(`ok ${name} (${((performance.now() - started) / 1_000).toFixed(0)} s)`);
}

async function lint(): Promise<void> {
  const ignored = readFileSync(join(FOLDER, ".redocly.lint-ignore.yaml"), "utf8").match(/^ {4}- /gm)?.length ?? 0;
  if (ignored > IGNORED_MAX) throw new Error(`${ignored} ignored complaints of Redocly; at most ${IGNORED_MAX}.`);
  await run("node_modules/.bin/redocly", ["lint", DOCUMENT, "--config", join(FOLDER, "redocly.yaml")]);
}

async function types(): Promise<void> {
  const file = join(work, "types.ts");
  await run("node_modules/.bin/openapi-typescript", [DOCUMENT, "-o", file]);
  const use = join(work, "use.ts");
  writeFileSync(
    use,
    `import type { operations } from "./types.ts";
type Body = NonNullable<operations["postConfigSet"]["requestBody"]>["content"]["application/x-www-form-urlencoded"];
export const body: Body = { key: "/matrix/etc/mail", value: "smtp" };
// @ts-expect-error A value is missing.
export const lacking: Body = { key: "/matrix/etc/mail" };
`,
  );
  const options = [
    "--ignoreConfig",
    "--strict",
    "--noEmit",
    "--allowImportingTsExtensions",
    "--module",
    "esnext",
    "--moduleResolution",
    "bundler",
  ];
  await run("node_modules/.bin/tsc", [...options, use]);
}

/** Folder of programs of the packages that `requirements.txt` names; installs them once. */
async function pythonOf(): Promise<string> {
  const requirements = join(FOLDER, "requirements.txt");
  const digest = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 16);
  const folder = join(defaultCacheDir(), `clients-${digest}`);
  if (existsSync(folder)) return join(folder, "bin");
  await mkdir(defaultCacheDir(), { recursive: true });
  const made = `${folder}.new-${process.pid}`;
  await run("python3", ["-m", "venv", made]);
  await run(join(made, "bin/python"), ["-m", "pip", "install", "--quiet", "--requirement", requirements]);
  renameSync(made, folder);
  return join(folder, "bin");
}

async function generate(bin: string): Promise<void> {
  const options = ["--path", DOCUMENT, "--config", join(FOLDER, "openapi-python-client.yaml"), "--meta", "none"];
  const { stdout, stderr } = await python(bin, "openapi_python_client", [
    "generate",
    ...options,
    "--output-path",
    join(work, "odp_client"),
  ]);
  if (/warning/i.test(stdout + stderr)) throw new Error(`Not all operations are generated:\n${stdout}${stderr}`);
}

async function call(bin: string, address: string): Promise<void> {
  const { stdout } = await run(join(bin, "python"), [join(FOLDER, "calls.py"), address], {
    env: { ...process.env, PYTHONPATH: work },
  });
  console.log(stdout.trim());
}

async function fuzz(bin: string, address: string): Promise<void> {
  const document = join(work, "openapi.json");
  writeFileSync(document, JSON.stringify(inNameSpace(JSON.parse(readFileSync(DOCUMENT, "utf8")), "matrix")));
  const calls = join(work, "calls.ndjson");
  const basic = Buffer.from("matrix.admin:-").toString("base64");
  const headers = [`Authorization: Basic ${basic}`, "Accept: application/problem+json"];
  await python(bin, "schemathesis.cli", [
    ...["run", document, "--url", address, ...headers.flatMap((header) => ["--header", header])],
    ...["--phases", "examples,fuzzing", "--mode", "positive", "--checks", CHECKS.join(",")],
    ...["--max-examples", EXAMPLES, "--seed", SEED, "--generation-database", "none", "--continue-on-failure"],
    ...["--request-timeout", "30", "--suppress-health-check", "all", "--exclude-path-regex", STREAMS],
    ...["--warnings", "off", "--no-color", "--report", "ndjson", "--report-ndjson-path", calls],
  ]);
  await checkRefusals(createReadStream(calls), REFUSALS);
}

/** Programs of a folder that was renamed name the former one, so modules are run instead. */
function python(bin: string, module: string, args: readonly string[]) {
  return run(join(bin, "python"), ["-m", module, ...args], { cwd: work });
}

async function addressOf({ stdout }: { readonly stdout: Readable }): Promise<string> {
  for await (const address of createInterface({ input: stdout })) return address;
  throw new Error("The controller did not start.");
}
