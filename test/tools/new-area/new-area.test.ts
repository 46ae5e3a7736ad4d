import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { layOut } from "./lay-out.ts";

const PROJECT = resolve(import.meta.dirname, "../../..");
const COPIED = [
  "common",
  "controller",
  "proto",
  "agent",
  "deploy",
  "test",
  "biome.json",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "vitest.config.ts",
];
const TSC = "node_modules/typescript-7/bin/tsc";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "odp-new-area-"));
  for (const name of COPIED) await cp(join(PROJECT, name), join(root, name), { recursive: true });
  await symlink(join(PROJECT, "node_modules"), join(root, "node_modules"));
});
afterEach(() => rm(root, { recursive: true }));

test("an area that was laid out compiles, and its tests pass", { timeout: 180_000 }, async () => {
  const paths = await layOut(root, "shifts");
  expect(paths).toContain("controller/areas/shifts/service.ts");
  const run = promisify(execFile);
  const typed = await run(process.execPath, [TSC, "-p", "tsconfig.json", "--incremental", "false"], {
    cwd: root,
  }).catch((error: { stdout: string }) => error);
  expect(typed.stdout).toBe("");
  const { stdout } = await run(
    process.execPath,
    ["node_modules/vitest/vitest.mjs", "run", "--project", "unit", "controller/areas/shifts"],
    { cwd: root },
  );
  expect(stdout).toMatch(/Tests .*2 passed/);
});

test.each(["shifts", "maintenancewindows"])("%s: what was laid out has the form that is checked", async (name) => {
  const paths = await layOut(root, name);
  const checked = await promisify(execFile)("node_modules/.bin/biome", ["format", "--vcs-enabled=false", ...paths], {
    cwd: root,
  });
  const formatted = paths.filter((path) => path.endsWith(".ts"));
  expect(checked.stdout + checked.stderr).toContain(`Checked ${formatted.length} files`);
});

test("a name that is taken, and one that is none, change nothing", async () => {
  const before = await readFile(join(root, "controller/assembly.ts"), "utf8");
  await expect(layOut(root, "jobs")).rejects.toThrow("common/api/jobs.ts is there already.");
  await expect(layOut(root, "My Area")).rejects.toThrow("is no name of an area");
  expect(await readFile(join(root, "controller/assembly.ts"), "utf8")).toBe(before);
});
