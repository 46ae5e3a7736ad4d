import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PASSWORD } from "../../../test/helpers/http/http-app.ts";
import { TestCommandLine } from "../../../test/helpers/programs/command-line.ts";
import { openFileSync, type FileSyncWorld } from "../../../test/helpers/programs/file-sync.ts";

/** The examples of `deploy/docs/file-sync.md`, run in the order of the page. */

let world: FileSyncWorld;
let line: TestCommandLine;
let folder: string;
beforeAll(async () => {
  world = await openFileSync();
  line = await TestCommandLine.open();
  folder = (await world.folders()).local;
});
afterAll(async () => {
  await line[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

interface Example {
  readonly command: string;
  readonly answer: readonly string[];
}

async function examples(): Promise<readonly Example[]> {
  const page = await readFile(join(import.meta.dirname, "../../../deploy/docs/file-sync.md"), "utf8");
  const blocks = [...page.matchAll(/^```sh\n([^]*?)\n```$/gm)].map(([, text = ""]) => text.split("\n"));
  return blocks.flatMap((lines) =>
    lines.flatMap((line, at) => {
      if (!line.startsWith("$ ")) return [];
      const rest = lines.slice(at + 1);
      const end = rest.findIndex((other) => other.startsWith("$ "));
      return [{ command: line.slice(2), answer: end === -1 ? rest : rest.slice(0, end) }];
    }),
  );
}

/** Runs a line of a shell, or of `odp` in this process. Returns what is shown, with the exit code if it is not 0. */
async function shown(command: string): Promise<readonly string[]> {
  if (!command.startsWith("odp ")) {
    const { stdout } = await promisify(execFile)("sh", ["-c", command], { cwd: folder });
    return linesOf(stdout);
  }
  const words = command.split(" ").slice(1);
  const { text, code } = await odp(words.map((word) => (word.startsWith("./") ? join(folder, word) : word)));
  return [...linesOf(text.replaceAll(`${folder}/`, "./")), ...(code === 0 ? [] : [`# exit code ${code}`])];
}

async function odp(words: readonly string[]): Promise<{ readonly text: string; readonly code: number }> {
  const environment = { ODP_URL: world.url, ODP_USER: "matrix.admin", ODP_PASSWORD: PASSWORD };
  const { out, err, code } = await line.run(words, { environment });
  return { text: out + err, code };
}

function linesOf(text: string): readonly string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

/** The times of answers differ from run to run. */
function comparable(lines: readonly string[]): readonly string[] {
  return lines.map((line) => line.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>"));
}

test("every example shows what the page says", async () => {
  const all = await examples();
  expect(all.length).toBeGreaterThan(25);
  for (const { command, answer } of all) expect(comparable(await shown(command)), command).toEqual(comparable(answer));
});

test("--exclude may stand before the two paths, and be repeated", async () => {
  await promisify(execFile)("sh", ["-c", "mkdir mixed && touch mixed/a.log mixed/a.tmp mixed/a.js"], { cwd: folder });
  const words = ["--exclude", "*.log", "--exclude", "*.tmp", join(folder, "mixed"), "odp:/mixed", "--dry-run"];
  const { text, code } = await odp(["fs", "sync", ...words]);
  expect([code, linesOf(text)[0]]).toEqual([0, "create a.js"]);
});
