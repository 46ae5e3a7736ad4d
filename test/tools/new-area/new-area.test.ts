import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { layOut } from "./lay-out.ts";

const PROJECT = resolve(import.meta.dirname, "../../..");
const COPIED = [
  "common",
  "controller",
  "proto",
  "agent",
  "deploy",
  "test",
  ".oxlintrc.json",
  "biome.json",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "vitest.config.ts",
];

/** One copy for all tests. Each test lays out areas with different names. */
let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "odp-new-area-"));
  for (const name of COPIED) await cp(join(PROJECT, name), join(root, name), { recursive: true });
  await symlink(join(PROJECT, "node_modules"), join(root, "node_modules"));
});
afterAll(() => rm(root, { recursive: true }));

test("areas that were laid out have the form that is checked, compile, are free of lint, and their tests pass", async () => {
  const paths = [...(await layOut(root, "shifts")), ...(await layOut(root, "maintenancewindows"))];
  expect(paths).toContain("controller/areas/shifts/service.ts");
  const permissions = await readFile(join(root, "controller/areas/permissions/names.ts"), "utf8");
  expect(permissions).toContain('  "users:read",\n  "users:write",\n');
  const run = promisify(execFile);
  const formatted = paths.filter((path) => path.endsWith(".ts"));
  const checked = await run("node_modules/.bin/biome", ["format", "--vcs-enabled=false", ...paths], { cwd: root });
  expect(checked.stdout + checked.stderr).toContain(`Checked ${new Set(formatted).size} files`);
  // Only new and changed files are checked: code that does not know areas compiles as before.
  const lint = ["--type-aware", "--type-check", "--deny-warnings", ...new Set(formatted)];
  const typed = await run("node_modules/.bin/oxlint", lint, { cwd: root }).catch((error: { stdout: string }) => error);
  expect(typed.stdout).toContain("Found 0 warnings and 0 errors.");
  const areas = ["controller/areas/shifts", "controller/areas/maintenancewindows"];
  const { stdout } = await run(
    process.execPath,
    ["node_modules/vitest/vitest.mjs", "run", "--project", "unit", "--no-file-parallelism", ...areas],
    { cwd: root },
  );
  expect(stdout).toMatch(/Tests .*4 passed/);
});

test("a name that is taken, and one that is none, change nothing", async () => {
  const before = await readFile(join(root, "controller/assembly/areas.ts"), "utf8");
  await expect(layOut(root, "jobs")).rejects.toThrow("common/api/jobs.ts is there already.");
  await expect(layOut(root, "My Area")).rejects.toThrow("is no name of an area");
  expect(await readFile(join(root, "controller/assembly/areas.ts"), "utf8")).toBe(before);
});
