import { afterAll, beforeAll, expect, test } from "vitest";
import { openFileHttp, type FileHttp } from "../../../../test/helpers/areas/file-http.ts";

let http: FileHttp;
beforeAll(async () => {
  http = await openFileHttp();
});
afterAll(() => http[Symbol.asyncDispose]());

const send = (method: "PUT" | "POST", url: string, fields: Readonly<Record<string, string>> = {}) => {
  const parts = Object.entries(fields).map(([name, value]) => {
    const file = name === "uploadfile" ? '; filename="up.txt"' : "";
    return `--B\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${value}\r\n`;
  });
  const headers = { "content-type": "multipart/form-data; boundary=B" };
  return http.call({ method, url, payload: `${parts.join("")}--B--\r\n`, headers });
};
const post = (url: string) => http.call({ method: "POST", url });
const get = (url: string) => http.call({ url });

test("files are indexed below a path, or all of them, and searched with the members of a row", async () => {
  await send("PUT", "/fs/docs/a.txt", { data: "one\ntwo words" });
  expect(await get("/fs/search/docs?query=words")).toEqual({ status: "ok", message: [] });
  expect(await post("/fs/index/docs?issys=false")).toEqual({ status: "ok", message: { indexed: 1, unindexed: 0 } });
  const row = { path: "/docs/a.txt", name: "a.txt", position: 2, excerpt: "two words", score: 0.5 };
  for (const url of ["/fs/search/docs", "/fs/search", "/fs/search/docs/a.txt"])
    expect(await get(`${url}?query=words`), url).toEqual({ status: "ok", message: [row] });
  const warnings = ["type has no effect beside query."];
  expect(await get("/fs/search/docs?query=words&type=dir")).toEqual({ status: "ok", message: [row], warnings });
  expect(await get("/fs/search/docs?query=words&issys=true")).toMatchObject({ code: "not_found" });
  await send("PUT", "/fs/more/b.txt", { data: "other words" });
  expect(await post("/fs/index")).toMatchObject({ message: { indexed: 2, unindexed: 0 } });
  expect(await post("/fs/index/none")).toMatchObject({ code: "not_found" });
  expect(await get("/fs/index?type=check")).toMatchObject({ message: false });
});

test("index=true with a write includes the file, a folder includes its files, and false excludes", async () => {
  await send("PUT", "/fs/put/a.txt", { data: "putword", index: "true" });
  expect(await send("POST", "/fs/put", { uploadfile: "upword", index: "true" })).toMatchObject({ status: "ok" });
  await send("PUT", "/fs/put/later.txt", { data: "laterword" });
  const names = async (query: string) => {
    const { message } = (await get(`/fs/search/put?query=${query}`)) as { message: readonly { name: string }[] };
    return message.map(({ name }) => name);
  };
  expect([await names("putword"), await names("upword"), await names("laterword")]).toEqual([
    ["a.txt"],
    ["up.txt"],
    [],
  ]);
  await send("PUT", "/fs/put", { type: "dir", index: "true" });
  expect(await names("laterword")).toEqual(["later.txt"]);
  await send("PUT", "/fs/put/a.txt", { data: "putword", index: "false" });
  expect(await names("putword")).toEqual([]);
});

test("a content that cannot be read is named in the answer and in the listing of its folder", async () => {
  const reason = "The content is neither a text nor docx, xlsx or pdf.";
  const put = await send("PUT", "/fs/bad/a.txt", { data: "\u0000\u0001", index: "true" });
  expect(put).toMatchObject({ status: "ok", warnings: [`/bad/a.txt: ${reason}`] });
  expect(await get("/fs/bad?type=dir")).toMatchObject({ message: [{ name: "a.txt", status: `unindexed: ${reason}` }] });
  expect(await post("/fs/index/bad")).toMatchObject({
    message: { indexed: 0, unindexed: 1 },
    warnings: [`/bad/a.txt: ${reason}`],
  });
});

test("without a query, files in a folder named search are read as before", async () => {
  await send("PUT", "/fs/search/x.txt", { data: "in search" });
  expect(await get("/fs/search/x.txt?type=file")).toMatchObject({ message: "in search" });
  expect(await get("/fs/search?type=dir")).toMatchObject({ message: [{ name: "x.txt" }] });
});
