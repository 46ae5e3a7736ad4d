import { afterAll, beforeAll, expect, test } from "vitest";
import { FILE_LIST_PAGE_MAX } from "../../../../common/limits.ts";
import { openFileHttp, type FileHttp } from "../../../../test/helpers/areas/file-http.ts";
import type { FileController } from "../../../../test/helpers/areas/files.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { Principal } from "../../permissions/index.ts";
import type { FileEntry } from "../entries.ts";
import { nameOf } from "../names.ts";
import { ALL_VISIBLE } from "../visible.ts";
import { FolderListing } from "./listing.ts";

/** Pages of a folder: all entries in the order of names, each once, and no name that the caller may not see. */

const admin = testPrincipal();
const ann: Principal = {
  ...admin,
  user: "ann",
  data: [
    { class: "/", access: "write" },
    { class: "/matrix/filesystem", access: "write", where: "owner = 'ann'" },
  ],
};

let http: FileHttp;
let controller: FileController;
beforeAll(async () => {
  http = await openFileHttp();
  ({ controller } = http);
});
afterAll(() => http[Symbol.asyncDispose]());

const write = (as: Principal, path: string) => controller.files.write(as, controller.user(path), { text: "x" });

/** The names of each page, as the caller sees them. `between` runs after each page. */
async function pages(as: Principal, folder: string, limit: number, between?: () => Promise<void>) {
  const found: string[][] = [];
  let after: string | undefined;
  do {
    const page = await controller.files.page(as, controller.user(folder), { limit, after });
    const names: string[] = [];
    for await (const entries of page.entries) names.push(...entries.map(({ fullname }) => fullname));
    found.push(names.map((name) => name.slice(folder.length + 1)));
    after = page.next;
    await between?.();
  } while (after !== undefined);
  return found;
}

test("pages have each entry once, in the order of names", async () => {
  for (const name of ["c", "a", "é", "b/below", "B", "a.b"]) await write(admin, `/order/${name}`);
  expect(await pages(admin, "/order", 2)).toEqual([
    ["B", "a"],
    ["a.b", "b"],
    ["c", "é"],
  ]);
  expect(await pages(admin, "/order", 6)).toEqual([["B", "a", "a.b", "b", "c", "é"]]);
  await controller.files.makeFolder(admin, controller.user("/empty"));
  expect(await pages(admin, "/empty", 1)).toEqual([[]]);
});

/** A folder that its store reads in these parts. */
function inParts(...parts: readonly (readonly string[])[]): FolderListing {
  const entry = (name: string) => ({ fullname: `/folder/${name}`, space: "user" }) as FileEntry;
  const store: ConstructorParameters<typeof FolderListing>[0]["store"] = {
    find: () => Promise.resolve(entry("")),
    get: (_, places) => Promise.resolve(places.map(({ fullname }) => entry(nameOf(fullname)))),
    async *in() {
      for (const names of parts) yield await Promise.resolve(names.map(entry));
    },
  };
  return new FolderListing({ store, visibilityOf: () => Promise.resolve(ALL_VISIBLE) });
}

test.each([
  [undefined, ["a", "b", "c"], "c"],
  ["b", ["c", "d", "e"], "e"],
  ["c", ["d", "e", "f"], undefined],
  ["z", [], undefined],
])("a page after %s has the least names of all parts of the folder", async (after, names, next) => {
  const listing = inParts(["f", "d", "c"], ["e"], [], ["b", "a", "d"]);
  const page = await listing.page(admin, { space: "user", fullname: "/folder" }, { limit: 3, after });
  const found: string[] = [];
  for await (const entries of page.entries) found.push(...entries.map(({ fullname }) => nameOf(fullname)));
  expect([found, page.next]).toEqual([names, next]);
});

test("entries that rules hide fill no page, begin none and name none", async () => {
  await controller.files.makeFolder(ann, controller.user("/ruled"));
  for (const name of ["a", "c", "e"]) await write(ann, `/ruled/${name}`);
  for (const name of ["0", "b", "c1", "d", "f", "g"]) await write(admin, `/ruled/${name}`);
  expect(await pages(ann, "/ruled", 1)).toEqual([["a"], ["c"], ["e"]]);
  expect(await pages(ann, "/ruled", 3)).toEqual([["a", "c", "e"]]);
});

test("a user of few paths sees a page of the way to them", async () => {
  for (const name of ["a", "open/x", "z"]) await write(admin, `/few/${name}`);
  expect(await pages({ ...admin, user: "ben", paths: ["/few/open"] }, "/few", 1)).toEqual([["open"]]);
  const closed = controller.files.page({ ...admin, user: "ben", paths: ["/else"] }, controller.user("/few"), {
    limit: 1,
  });
  await expect(closed).rejects.toMatchObject({ code: "denied" });
});

test("entries that come and go between two pages take no other entry away", async () => {
  for (const name of ["a", "b", "c", "d"]) await write(admin, `/moving/${name}`);
  let round = 0;
  const found = await pages(admin, "/moving", 2, async () => {
    if (round++ > 0) return;
    await controller.files.remove(admin, controller.user("/moving/b"));
    await write(admin, "/moving/a1");
    await write(admin, "/moving/e");
  });
  expect(found).toEqual([["a", "b"], ["c", "d"], ["e"]]);
});

test("a page over HTTP has meta.next, and its limit is refused where it would have no effect", async () => {
  for (const name of ["a", "b", "c"]) await write(admin, `/http/${name}`);
  const get = (path: string) => http.call({ url: `/fs${path}` });
  expect(await get("/http?type=dir&limit=2")).toMatchObject({
    message: [{ fullname: "/http/a" }, { fullname: "/http/b" }],
    meta: { next: "b" },
  });
  const last = await get("/http?type=dir&limit=2&after=b");
  expect([last.message, last.meta]).toEqual([[expect.objectContaining({ fullname: "/http/c" })], {}]);
  expect(await get("/http?type=dir")).not.toHaveProperty("meta");
  expect(await get("?type=dir&limit=1")).toMatchObject({ meta: { next: expect.any(String) as unknown } });
  for (const wrong of [
    "/http/a?type=file&limit=1",
    "/http/a?after=a",
    "/http?type=dir&after=a",
    "/http?type=dir&limit=0",
    `/http?type=dir&limit=${String(FILE_LIST_PAGE_MAX + 1)}`,
    "/search?query=x&limit=1",
    "/search/http?query=x&after=a",
  ])
    expect(await get(wrong), wrong).toMatchObject({ code: "invalid" });
});
