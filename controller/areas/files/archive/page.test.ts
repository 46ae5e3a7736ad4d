import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fromBufferPromise } from "yauzl";
import * as limits from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import { FileArchiveWorld } from "../../../../test/helpers/areas/file-archives.ts";
import type { FileController } from "../../../../test/helpers/areas/files.ts";
import { rawZip } from "../../../../test/helpers/runs/raw-zip.ts";
import { runPage } from "../../../../test/mql/script.ts";
import type { Principal } from "../../permissions/index.ts";

const PAGE = "deploy/docs/file-archives.md";

let world: FileArchiveWorld;
let one: FileController;
beforeAll(async () => {
  world = await FileArchiveWorld.open();
  ({ one } = world);
});
afterAll(() => world.close());

/** Each line is a path and a text; a path that ends with a slash is a folder. */
const linesOf = (lines: readonly string[]) =>
  lines.map((line) => {
    const at = line.includes(" ") ? line.indexOf(" ") : line.length;
    return { name: line.slice(0, at), content: line.slice(at + 1) };
  });

async function write(who: Principal, block: string): Promise<readonly Row[]> {
  for (const { name, content } of linesOf(block.split("\n"))) {
    if (name.endsWith("/")) await one.files.makeFolder(who, one.user(name));
    else await one.files.write(who, one.user(name), { text: content });
  }
  return [];
}

async function exported(who: Principal, block: string): Promise<readonly Row[]> {
  const paths = new URLSearchParams(block).getAll("srcpath");
  const { bytes, filename } = await one.files.archives.export(who, paths.map(one.user));
  const rows: Row[] = [{ archive: filename }];
  for await (const entry of (await fromBufferPromise(await buffer(bytes))).eachEntry())
    rows.push({ entry: entry.fileName, bytes: entry.uncompressedSize });
  return rows;
}

/** The first line contains the parameters of the call if it has no blank, the others the entries of the archive. */
async function imported(who: Principal, block: string): Promise<readonly Row[]> {
  const [first = "", ...others] = block.split("\n");
  const [query, lines] = first.includes(" ") ? ["", [first, ...others]] : [first, others];
  const depth = new URLSearchParams(query).get("depth");
  const options = { as: who, ...(depth !== null && { depth: Number(depth) }) };
  const { paths, files, folders, bytes } = await world.import(rawZip(linesOf(lines)), options);
  return [{ message: [...paths], meta: JSON.stringify({ files, folders, bytes }) }];
}

test("the examples of the page answer what stands below them", async () => {
  await runPage(PAGE, { write, export: exported, import: imported });
});

test("the page states the limits", async () => {
  const page = await readFile(PAGE, "utf8");
  for (const text of [
    `${limits.FILE_ARCHIVE_ENTRIES_MAX.toLocaleString("en")} entries`,
    `${limits.FILE_ARCHIVE_ENTRIES_MAX.toLocaleString("en")} files and folders`,
    `${limits.FILE_ARCHIVE_UNPACKED_MAX_BYTES / 2 ** 30} GiB`,
    `${limits.FILE_ARCHIVE_RATIO_MAX} times`,
    `beyond ${limits.FILE_ARCHIVE_RATIO_FREE_BYTES / 2 ** 20} MiB`,
  ])
    expect(page).toContain(text);
  expect(limits.FILE_ARCHIVES_AT_ONCE_MAX, "the page says: a fifth").toBe(4);
});
