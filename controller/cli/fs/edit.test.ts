import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openFileSync, type FileSyncWorld, type Folders } from "../../../test/helpers/programs/file-sync.ts";
import { editFile } from "./edit.ts";
import { editorOf, runEditor } from "./editor.ts";

/** `odp fs edit` against a controller. */

let world: FileSyncWorld;
let temporary: string;
beforeAll(async () => {
  world = await openFileSync();
  temporary = await mkdtemp(join(tmpdir(), "odp-editing-"));
});
afterAll(async () => {
  await rm(temporary, { recursive: true });
  await world[Symbol.asyncDispose]();
});

let folders: Folders;
beforeEach(async () => {
  folders = await world.folders();
  await folders.writeThere("a.js", "one");
});

/** Edits a file of the folder. `editor` gets the local copy. */
function edit(name: string, editor: (file: string) => Promise<unknown>, code = 0) {
  return editFile(`${folders.remote}/${name}`, {
    ...{ client: world.client(), isSystem: false, signal: new AbortController().signal, temporary },
    editor: async (file) => {
      await editor(file);
      return code;
    },
  });
}

/** The names of the local copies that were kept. */
const kept = async (): Promise<readonly string[]> => readdir(temporary);

/** The message of a failure, which names the kept copy, and what that contains. The copy is removed. */
async function keptBy(work: Promise<unknown>) {
  const error = (await work.catch((thrown: unknown) => thrown)) as Error & { readonly code?: string };
  const file = / Your version is kept in (\S+)$/.exec(error.message)?.[1] ?? "";
  const text = file === "" ? undefined : await readFile(file, "utf8");
  if (file !== "") await rm(dirname(file), { recursive: true });
  return { code: error.code, message: error.message.split(" Your")[0], text };
}

test("a changed copy is written back; it was readable for its owner only, and is removed", async () => {
  let modes: readonly number[] = [];
  const isWritten = await edit("a.js", async (file) => {
    modes = [(await stat(file)).mode & 0o777, (await stat(dirname(file))).mode & 0o777];
    expect(await readFile(file, "utf8")).toBe("one");
    // As editors do: a new file takes the place of the old one.
    await rm(file);
    await writeFile(file, "two");
  });
  expect([isWritten, modes, await folders.there(), await kept()]).toEqual([
    true,
    [0o600, 0o700],
    { "a.js": "two" },
    [],
  ]);
});

test("a copy that was not changed is not written, although the file was changed meanwhile", async () => {
  expect(await edit("a.js", () => folders.writeThere("a.js", "other"))).toBe(false);
  expect([await folders.there(), await kept()]).toEqual([{ "a.js": "other" }, []]);
});

test("a file that is missing is made, unless another user has made it meanwhile", async () => {
  expect(await edit("new.js", (file) => writeFile(file, "new"))).toBe(true);
  expect(await edit("empty.js", () => Promise.resolve())).toBe(false);
  const lost = edit("taken.js", async (file) => {
    await writeFile(file, "mine");
    await folders.writeThere("taken.js", "theirs");
  });
  expect(await keptBy(lost)).toMatchObject({ text: "mine" });
  expect(await folders.there()).toEqual({ "a.js": "one", "new.js": "new", "taken.js": "theirs" });
});

test("on a conflict the file stays as the other user made it, and the own copy is kept", async () => {
  const lost = edit("a.js", async (file) => {
    await writeFile(file, "mine");
    await folders.writeThere("a.js", "theirs");
  });
  const message = `${folders.place().path.slice(0, 1)}${folders.place("a.js").path.slice(1)} was changed meanwhile.`;
  expect(await keptBy(lost)).toEqual({ code: "stale", message, text: "mine" });
  expect(await folders.there()).toEqual({ "a.js": "theirs" });
});

test("an editor that fails writes nothing, and loses nothing", async () => {
  const failed = edit("a.js", (file) => writeFile(file, "half"), 7);
  const message = "The editor ended with 7, so nothing was written.";
  expect(await keptBy(failed)).toEqual({ code: "invalid", message, text: "half" });
  expect(await keptBy(edit("a.js", () => Promise.resolve(), 1))).toMatchObject({ code: "invalid", text: undefined });
  expect(await keptBy(edit("a.js", (file) => rm(file)))).toMatchObject({ code: "not_found", text: undefined });
  expect([await folders.there(), await kept()]).toEqual([{ "a.js": "one" }, []]);
});

test("what a killed editor left beside the copy, as a swap file, is kept; a backup of a good end is not", async () => {
  const swap = async (file: string): Promise<void> => writeFile(`${file}.swp`, "unsaved");
  const error = (await edit("a.js", swap, 1).catch((thrown: unknown) => thrown)) as Error;
  const folder = / Your version is kept in (\S+)$/.exec(error.message)?.[1] ?? "";
  expect(await readFile(join(folder, "a.js.swp"), "utf8")).toBe("unsaved");
  await rm(folder, { recursive: true });
  const renamed = edit("a.js", (file) => rename(file, `${file}.mine`));
  expect(await keptBy(renamed)).toMatchObject({ code: "not_found", text: "one" });
  expect(await edit("a.js", swap)).toBe(false);
  expect([await folders.there(), await kept()]).toEqual([{ "a.js": "one" }, []]);
});

test("a copy that cannot be read after the edit is kept", async () => {
  const replaced = edit("a.js", async (file) => {
    await rm(file);
    await mkdir(file);
    await writeFile(join(file, "mine"), "mine");
  });
  await expect(replaced).rejects.toThrow(/^EISDIR.* so nothing was written. Your version is kept in /);
  const [folder = ""] = await kept();
  expect(await readFile(join(temporary, folder, "a.js", "mine"), "utf8")).toBe("mine");
  await rm(join(temporary, folder), { recursive: true });
});

test("a folder is not edited", async () => {
  let isOpened = false;
  const folder = editFile(folders.remote, {
    ...{ client: world.client(), isSystem: false, signal: new AbortController().signal, temporary },
    editor: () => Promise.resolve((isOpened = true) ? 0 : 1),
  });
  await expect(folder).rejects.toThrow();
  expect([isOpened, await kept()]).toEqual([false, []]);
});

test("the editor is that of the user, with its options; the name of the file is no part of the command line", async () => {
  expect([{ VISUAL: "a -w", EDITOR: "b" }, { VISUAL: " ", EDITOR: "b" }, {}].map(editorOf)).toEqual([
    "a -w",
    "b",
    "vi",
  ]);
  const [script, file] = [join(temporary, "editor"), join(temporary, "$(touch x); 'y")];
  await writeFile(script, '#!/bin/sh\nprintf "%s" "$1|$2" > "$2"\nexit 3\n');
  await chmod(script, 0o755);
  expect(await runEditor(`${script} --wait`, file, { PATH: process.env["PATH"] })).toBe(3);
  expect(await readFile(file, "utf8")).toBe(`--wait|${file}`);
  await Promise.all([rm(script), rm(file)]);
});
