import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startChromium } from "../helpers/programs/chromium.ts";
import { LINE_ENDS } from "../../controller/http/sockets/line.ts";
import { pageProgram } from "./client/page.ts";
import { Installation } from "./installation.ts";

/** The npm package of the typed client, in an empty project: compiled strictly, then run in Node and in Chromium. */

const STEP_DEADLINE_MS = 60_000;
/** A line of the package, the message and the stack. */
const UNCAUGHT_MAX_CHARACTERS = 4_000;
const ADMIN_PASSWORD = "correct horse battery";
/** Pages whose examples in TypeScript are one program each. */
const PAGES = ["client", "start-programmer", "sockets"];
const FOUND = {
  rows: [
    [
      { page: "/a", size: 1 },
      { page: "/b", size: "9007199254740993" },
    ],
    [{ page: "/c", size: 3 }],
  ],
  failure: { code: "not_found", status: 404, nearest: "host", isUndone: false },
  revisions: { read: "one", stale: true, now: "two" },
  files: { isWhole: true, count: 2, warnings: [] },
  frames: ["seen"],
  events: { output: 42, hasId: true, msg: ["from here"] },
  lastLine: true,
  cancelled: true,
  signedOut: true,
};

let project: string;
let odp: Installation;
beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), "odp-client-"));
  const starting = Installation.start({ ODP_STORE: "embedded", ODP_ADMIN_PASSWORD: ADMIN_PASSWORD });
  await Promise.all([starting, install()]);
  odp = await starting;
});
afterAll(async () => {
  await odp?.stop();
  await rm(project, { recursive: true, force: true });
});

const run = (program: string, args: readonly string[], cwd = project) =>
  promisify(execFile)(program, args, { cwd, timeout: STEP_DEADLINE_MS });

async function install(): Promise<void> {
  const { stdout } = await run("npm", ["run", "--silent", "pack-client", "--", join(project, "made/package")], ".");
  await writeFile(join(project, "package.json"), '{ "name": "empty", "private": true, "type": "module" }\n');
  await run("npm", ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", stdout.trim()]);
  const program = await readFile("test/e2e/client/program.ts", "utf8");
  await writeFile(join(project, "program.ts"), program.replace("../../../common/client/index.ts", "odp-client"));
  for (const page of PAGES)
    await writeFile(join(project, `${page}.ts`), pageProgram(await readFile(`deploy/docs/${page}.md`, "utf8")));
  const options = ["--ignoreConfig", "--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"];
  await run(resolve("node_modules/.bin/tsc"), [...options, "program.ts", ...PAGES.map((page) => `${page}.ts`)]).catch(
    (error: { stdout?: string }) => {
      throw new Error(error.stdout);
    },
  );
}

/** Runs an exported function of a program in Node, with the WebSocket of `ws`, as Node 20 has none. */
async function inNode(file: string, name: string, more: object = {}): Promise<unknown> {
  const ws = JSON.stringify(resolve("node_modules/ws/wrapper.mjs"));
  const main = `import { run } from "./${file}";
import { WebSocket } from ${ws};
globalThis.WebSocket ??= WebSocket;
const openSocket = (url, headers) => new WebSocket(url, { headers });
console.log(JSON.stringify(await run({ ...${JSON.stringify({ url: odp.url, ...more })}, openSocket }, ${JSON.stringify(name)})));`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", main]);
  return JSON.parse(stdout);
}

test("the package runs in Node", async () => {
  expect(await inNode("program.js", "node")).toEqual(FOUND);
});

test("the examples of its page run as they are", async () => {
  await odp.mql("create class /matrix/box (name varchar, load1 double, keys(name))");
  for (const name of ["a", "b", "c"]) await odp.mql(`insert into /matrix/box name='${name}', load1=0.5`);
  const signed = { user: "matrix.admin", password: ADMIN_PASSWORD };
  const printed = ["smtp.example.com", "3 false 0", "404 name", "3", "a,b,c", "true", "true", `"smtp.example.com"`];
  expect(await inNode("client.js", "", signed)).toEqual([...printed, "18", "true"]);
});

test("the examples of the page about sockets run as they are", async () => {
  const signed = { user: "matrix.admin", password: ADMIN_PASSWORD };
  const [frame = "", ...others] = (await inNode("sockets.js", "", signed)) as readonly string[];
  const page = await readFile("deploy/docs/sockets.md", "utf8");
  expect(page).toContain(`It prints \`${frame}\`.`);
  expect(others).toEqual(["one,two"]);
});

test("the page about sockets has every way in which the controller closes one", async () => {
  const page = await readFile("deploy/docs/sockets.md", "utf8");
  const stated = [...page.matchAll(/^\| (\d{4}) \| `([^`]+)` \|/gm)].map(([, code, reason]) => [Number(code), reason]);
  expect(stated.toSorted()).toEqual(LINE_ENDS.toSorted());
});

test("the examples of the first steps of programmers run as they are", async () => {
  const signed = { user: "matrix.admin", password: ADMIN_PASSWORD };
  const printed = ["A-1 20.5", "Field totl Not Exist; did you mean total?", "/matrix/app/invoice UPDATE"];
  expect(await inNode("start-programmer.js", "", signed)).toEqual(printed);
});

test("a failure that a program does not catch is shown without the code of the package", async () => {
  const main = `import { OdpClient } from "odp-client"; await new OdpClient({ url: "${odp.url}" }).call("getHost");`;
  const failed = run(process.execPath, ["--input-type=module", "--eval", main]);
  const { stderr } = (await failed.catch((error: unknown) => error)) as { readonly stderr: string };
  expect(stderr).toContain("OdpError: Nobody is signed in.");
  expect(stderr.length).toBeLessThan(UNCAUGHT_MAX_CHARACTERS);
});

const chromium = await startChromium();
if (!chromium && process.env.ODP_REQUIRE_CLUSTER === "1")
  throw new Error("Chromium is needed (apt-get install chromium).");

describe.skipIf(!chromium)("in a page of the controller's origin", () => {
  const browser = chromium as Browser;
  afterAll(() => browser.close());

  test("the package runs, with the cookie of the browser", async () => {
    // The controller serves no programs of users on its origin; a proxy before it may. Its own pages refuse programs.
    const context = await browser.newContext({ bypassCSP: true });
    const page = await context.newPage();
    await page.route(`${odp.url}/app/**`, async (route) => {
      const path = new URL(route.request().url()).pathname.slice("/app/".length);
      const program = await readFile(join(project, path), "utf8");
      const body = program.replace('"odp-client"', '"/app/node_modules/odp-client/index.js"');
      return route.fulfill({ contentType: "text/javascript", body });
    });
    await page.goto(`${odp.url}/user/login`);
    const found = page.evaluate('import("/app/program.js").then(({ run }) => run({ url: location.origin }, "page"))');
    expect(await found).toEqual(FOUND);
  });
});
