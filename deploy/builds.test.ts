import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { buildInto } from "./builds.ts";

let root: string;
let current: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "odp-builds-"));
  current = join(root, "dist");
});
afterEach(() => rm(root, { recursive: true }));

/** A program that loads a second file when it is told to. */
const build = (name: string): Promise<void> =>
  buildInto(current, name, async (folder) => {
    await mkdir(folder);
    await writeFile(join(folder, "later.mjs"), `console.log("later of ${name}");`);
    await writeFile(
      join(folder, "main.mjs"),
      `console.log("main of ${name}"); process.stdin.once("data", () => import("./later.mjs").then(() => process.exit()));`,
    );
  });
const builtNow = (): Promise<string> => readFile(join(current, "later.mjs"), "utf8");

it("a program that runs goes on with the files of its own build", async () => {
  await build("1");
  const program = spawn(process.execPath, [join(current, "main.mjs")], { stdio: ["pipe", "pipe", "inherit"] });
  let said = "";
  program.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  await once(program.stdout, "data");
  await build("2");
  program.stdin.write("go on");
  await once(program, "close");
  expect(said).toBe("main of 1\nlater of 1\n");
  expect(await builtNow()).toContain("later of 2");
});

it("a build that fails leaves the one there is", async () => {
  await build("1");
  await expect(buildInto(current, "2", () => Promise.reject(new Error("a type is wrong")))).rejects.toThrow(
    "a type is wrong",
  );
  expect(await builtNow()).toContain("later of 1");
});

it("two at once both succeed, and one of them stands", async () => {
  await Promise.all([build("1"), build("2")]);
  expect(await builtNow()).toMatch(/later of [12]/);
});

it("takes the place of the folder that earlier versions built into", async () => {
  await mkdir(current);
  await writeFile(join(current, "later.mjs"), "old");
  await build("1");
  expect(await builtNow()).toContain("later of 1");
});

it("keeps the newest ten", async () => {
  for (let name = 10; name < 25; name += 1) await build(String(name));
  expect(await readdir(join(root, ".builds"))).toEqual(Array.from({ length: 10 }, (_, i) => String(15 + i)));
});
