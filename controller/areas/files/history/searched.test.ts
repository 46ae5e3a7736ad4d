import { expect, test } from "vitest";
import { useFileControllers } from "../../../../test/helpers/areas/file-controllers.ts";
import type { FileController } from "../../../../test/helpers/areas/files.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";

/** The search finds the content of a restored file again, if it found it before the removal. */

const admin = testPrincipal();

let one: FileController;
useFileControllers((opened) => ({ one } = opened), { history: { ageMs: 3_600_000, maxBytes: 1_000_000 } });

async function found(word: string): Promise<readonly string[]> {
  await one.search.settled();
  const { rows } = await one.search.search(admin, one.user("/"), { query: word });
  return rows.map(({ path }) => path).sort();
}

const write = (path: string, text: string) => one.files.write(admin, one.user(path), { text });

test("a removed file that was searched is searched again, and one that was not stays out", async () => {
  await write("/single/in.txt", "heliotrope");
  await one.search.index(admin, one.user("/single"));
  await write("/single/out.txt", "heliotrope");
  for (const name of ["in", "out"]) await one.files.remove(admin, one.user(`/single/${name}.txt`));
  expect(await found("heliotrope")).toEqual([]);
  for (const name of ["in", "out"]) {
    const place = one.user(`/single/${name}.txt`);
    const [former] = await one.files.history.list(admin, place);
    expect(await one.files.history.restore(admin, place, former?.key ?? "")).toBe(1);
  }
  expect(await found("heliotrope")).toEqual(["/single/in.txt"]);
});

test("the searched files of a removed folder are searched again", async () => {
  for (const name of ["a", "b"]) await write(`/folder/${name}.txt`, "obsidian");
  await one.search.index(admin, one.user("/folder"));
  await write("/folder/c.txt", "obsidian");
  await one.files.remove(admin, one.user("/folder"));
  expect(await found("obsidian")).toEqual([]);
  const { former } = await one.files.history.trash(admin, one.user("/"), { limit: 10 });
  const folder = former.find(({ entry }) => entry.fullname === "/folder");
  expect(await one.files.history.restore(admin, one.user("/folder"), folder?.key ?? "")).toBe(3);
  expect(await found("obsidian")).toEqual(["/folder/a.txt", "/folder/b.txt"]);
});
