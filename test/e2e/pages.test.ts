import { mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PERMISSIONS } from "../../controller/areas/permissions/index.ts";
import { freePort } from "../helpers/programs/programs.ts";
import { Installation } from "./installation.ts";
import { expectShown } from "./pages/comparison.ts";
import { inShell, shellExamples } from "./pages/shell.ts";

/**
 * The examples of pages for users, run as their readers do: in a shell, with curl and the command line, against one
 * controller as `npm start` starts it, with its agent and the demonstration.
 */

const ADMIN_PASSWORD = "correct horse battery";
/** Address of a controller on a reader's machine. */
const READERS_URL = "http://127.0.0.1:8080";

/** Port of a controller that a page starts itself. */
const SECOND_PORT = "8090";

let odp: Installation;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-pages-"));
  await symlink(resolve("dist"), join(folder, "dist"));
  odp = await Installation.start({
    ODP_STORE: "embedded",
    ODP_ADMIN_PASSWORD: ADMIN_PASSWORD,
    ODP_DEMO: "1",
    ODP_LOCAL_AGENT: "1",
  });
  await odp.controller.printed(/The demonstration works/);
});
afterAll(async () => {
  await odp?.stop();
  await rm(folder, { recursive: true, force: true });
});

const PAGES = [
  "start-operator",
  "start-author",
  "start-programmer",
  "triggers",
  "policies",
  "server-scripts",
  "users-and-groups",
  "configuration",
  "appcontext",
  "tags",
  "jobs",
  "running",
  "troubleshooting",
];

test.each(PAGES)("every example of %s.md shows what the page says", async (name) => {
  const page = (await readFile(`deploy/docs/${name}.md`, "utf8"))
    .replaceAll(READERS_URL, odp.url)
    .replaceAll(SECOND_PORT, String(await freePort()));
  const examples = shellExamples(page.replaceAll(/^export ODP_PASSWORD=.*$/gm, ""));
  const environment = { ODP_URL: odp.url, ODP_PASSWORD: ADMIN_PASSWORD };
  const shown = await inShell(
    examples.map(({ command }) => command),
    { folder, environment },
  );
  for (const [at, { command, shown: expected, line }] of examples.entries()) {
    const { output = "", code } = shown[at] ?? {};
    const message = `${name}.md:${line}: ${command}`;
    if (expected === undefined) expect.soft([code, output], message).toEqual([0, ""]);
    else expectShown(output, expected, message);
  }
});

test("users-and-groups.md has every permission", async () => {
  const page = await readFile("deploy/docs/users-and-groups.md", "utf8");
  const rows = [...page.matchAll(/^\| `(\w+)` \| ([\w, ]+) \|/gm)];
  const stated = rows.flatMap(([, area = "", verbs = ""]) => verbs.split(", ").map((verb) => `${area}:${verb}`));
  expect(stated).toEqual(PERMISSIONS);
});

test.each(["concepts", "running"])("every statement that %s.md recommends is answered", async (name) => {
  const statements = [...(await readFile(`deploy/docs/${name}.md`, "utf8")).matchAll(/`(select [^`]+)`/g)];
  expect(statements.length).toBeGreaterThan(2);
  for (const [, statement = ""] of statements) await odp.mql(statement);
});
