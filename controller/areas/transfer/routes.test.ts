import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { TestTransfer } from "../../../test/helpers/objects/transfer.ts";
import { transferRoutes } from "./index.ts";

const admin = testPrincipal();
let engine: TestEngine;
let transfer: TestTransfer;
let http: TestHttp;
beforeAll(async () => {
  engine = await openTestEngine();
  transfer = new TestTransfer(engine);
  http = await openTestHttp({ endpoints: transferRoutes(transfer) });
});
afterAll(async () => {
  await http[Symbol.asyncDispose]();
  await transfer.close();
  await engine[Symbol.asyncDispose]();
});

function upload(session: string, content: string | Buffer, path = "/mxobject/import") {
  const head =
    '--B\r\nContent-Disposition: form-data; name="uploadfile"; filename="a.mql"\r\nContent-Type: application/octet-stream\r\n\r\n';
  const payload = Buffer.concat([Buffer.from(head), Buffer.from(content), Buffer.from("\r\n--B--\r\n")]);
  return http.call(session, {
    method: "POST",
    url: path,
    payload,
    headers: { "content-type": "multipart/form-data; boundary=B" },
  });
}

async function download(session: string, query: string) {
  return http.app.inject({ method: "GET", url: `/mxobject/export?${query}&sessionid=${session}` });
}

test("an uploaded script is taken in, and comes back as a bare file", async () => {
  const session = await http.signIn("admin");
  const script =
    "CREATE CLASS IF NOT EXISTS /matrix/box (host varchar, KEYS(host));\nINSERT INTO /matrix/box SET id = 'box:主机', host = '主机';\n";
  expect(await upload(session, script)).toMatchObject({ status: "ok", message: { state: "done", total: 2, done: 2 } });
  const file = await download(session, "class=/matrix/box&recursive=true&limit=-1&relation_defined=true");
  expect([file.statusCode, file.headers["content-type"], file.body]).toEqual([
    200,
    "text/plain; charset=utf-8",
    script,
  ]);
  expect(file.headers["content-disposition"]).toContain('filename="box.mql"');
  for (const query of ["limit=0", "template=true", "templdate=true"]) {
    expect((await download(session, `class=/matrix/box&${query}`)).body).toBe(
      script.slice(0, script.indexOf("\n") + 1),
    );
  }
});

test("definitions of an upload warn as CREATE CLASS does, in a plan and in the import, and once they are there no more", async () => {
  const session = await http.signIn("admin");
  const script = `create class if not exists /matrix/lab/warned (host varchar);
    create class if not exists /matrix/ent/warned (host varchar) with autosearhc=true;`;
  const warnings = [
    "autosearhc is no option of a class, and is only kept as a hint; did you mean autosearch?",
    "Ids of /matrix/ent/warned begin with warned: as those of /matrix/lab/warned do, so a lookup by id alone visits both classes.",
  ];
  const planned = await upload(session, script, "/mxobject/import?plan=true");
  expect(planned).toMatchObject({ message: { state: "planned" }, warnings });
  const imported = await upload(session, script);
  expect(imported).toMatchObject({ message: { state: "done" }, warnings });
  expect(imported.message).not.toHaveProperty("warnings");
  const [option] = warnings;
  expect(await upload(session, script)).toMatchObject({ message: { state: "done" }, warnings: [option] });
});

test("a spreadsheet is downloaded, and taken in again", async () => {
  const session = await http.signIn("admin");
  const file = await download(session, "class=/matrix/box&filetype=xlsx");
  expect([file.statusCode, file.headers["content-disposition"]]).toEqual([
    200,
    expect.stringContaining('filename="box.xlsx"'),
  ]);
  expect(await upload(session, file.rawPayload, "/mxobject/importclass")).toMatchObject({
    status: "ok",
    message: { state: "done", total: 2 },
  });
  expect((await download(session, "class=/matrix/box&filetype=xlsx")).rawPayload.equals(file.rawPayload)).toBe(true);
});

test("times and earlier states are exported and imported as scripts alone, and asked for on both calls", async () => {
  const session = await http.signIn("admin");
  const script = (await download(session, "class=/matrix/box&times=true")).body;
  expect(script).toContain("vtime = '");
  const message = "Times of rows not taken, as the import has no times=true (1).";
  expect(await upload(session, script)).toMatchObject({ status: "ok", message: { state: "done", message } });
  const planned = await upload(session, script, "/mxobject/import?plan=true");
  expect(planned).toMatchObject({ status: "ok", message: { state: "planned", message } });
  expect((await download(session, "class=/matrix/box&times=true&filetype=xlsx")).json()).toMatchObject({
    status: "error",
    code: "invalid",
  });
  for (const path of ["/mxobject/importclass?times=true", "/mxobject/import?times=true&class=/matrix/box"])
    expect(await upload(session, "x", path)).toMatchObject({ status: "error", code: "invalid" });
  const kept = "Objects not taken, as they were written or removed later (1): box:主机.";
  const again = await upload(session, script, "/mxobject/import?times=true");
  expect(again).toMatchObject({ status: "ok", message: { state: "done", message: kept } });
});

test("whoever reads only the status is never told ok of what failed", async () => {
  const session = await http.signIn("admin");
  const answer = await upload(session, "insert into /matrix/box host='a', size=1");
  expect(answer).toMatchObject({
    status: "error",
    code: "not_found",
    message: "line 1 column 1: Field size Not Exist\nNothing was written.",
  });
  expect((await download(session, "class=/matrix/none")).json()).toMatchObject({ status: "error", code: "not_found" });
  expect((await download(session, "class=/matrix/box&filetype=pdf")).json()).toMatchObject({
    status: "error",
    code: "invalid",
  });
  expect(await http.call(session, { method: "POST", url: "/mxobject/import" })).toMatchObject({
    status: "error",
    code: "invalid",
  });
});

test("a script is read in the encoding that is named, and stored as what it says", async () => {
  const session = await http.signIn("admin");
  const script = Buffer.from("insert into /matrix/box set host='\xb1\xe0';", "latin1");
  expect(await upload(session, script)).toMatchObject({
    code: "invalid",
    message: expect.stringContaining("The script is no utf-8 text at byte 35: name its encoding") as string,
  });
  expect(await upload(session, script, "/mxobject/import?encoding=klingon")).toMatchObject({ code: "invalid" });
  expect(await upload(session, script, "/mxobject/import?encoding=gbk")).toMatchObject({ status: "ok" });
  expect(await transfer.query.rows(admin, "select host from /matrix/box where host = '编'")).toEqual([{ host: "编" }]);
  await transfer.query.rows(admin, "delete from /matrix/box where host = '编'");
});

test("a file with a heading line goes into the class that is named, as a plan first", async () => {
  const session = await http.signIn("admin");
  const columns = encodeURIComponent('{"Host name":"host","Remark":null}');
  const path = `/mxobject/import?class=/matrix/box&columns=${columns}`;
  const file = "Host name;Remark\nb;x\n";
  expect(await upload(session, file, `${path}&plan=true`)).toEqual({
    status: "ok",
    message: {
      id: "",
      state: "planned",
      total: 1,
      done: 0,
      message: "",
      columns: [
        { heading: "Host name", column: "host", type: "varchar" },
        { heading: "Remark", column: "" },
      ],
      delimiter: ";",
      encoding: "utf-8",
      created: 1,
      updated: 0,
      changes: [{ row: 2, id: "box:b", action: "create" }],
    },
  });
  const hosts = () => transfer.query.rows(admin, "select host from /matrix/box where host = 'b'");
  expect(await hosts()).toEqual([]);
  expect(await upload(session, file, path)).toMatchObject({
    status: "ok",
    message: { state: "done", total: 1, done: 1 },
  });
  expect(await hosts()).toEqual([{ host: "b" }]);
  await transfer.query.rows(admin, "delete from /matrix/box where host = 'b'");
  expect(await upload(session, "Host name\nc\n", "/mxobject/import?class=/matrix/box")).toMatchObject({
    status: "error",
    code: "invalid",
    message: expect.stringContaining('heading "Host name" is no column of /matrix/box') as string,
  });
});

test("a script and an exported spreadsheet are planned without being written", async () => {
  const session = await http.signIn("admin");
  const planned = { id: "", state: "planned", done: 0, message: "" };
  const script = "create class /matrix/later (a int); insert into /matrix/later a=1";
  expect((await upload(session, script, "/mxobject/import?plan=true"))["message"]).toEqual({ ...planned, total: 2 });
  expect(
    await upload(session, `${script}; insert into /matrix/later a='x'`, "/mxobject/import?plan=true"),
  ).toMatchObject({
    status: "error",
    message: expect.stringContaining("line 1 column") as string,
  });
  const file = await download(session, "class=/matrix/box&filetype=xlsx");
  const answer = await upload(session, file.rawPayload, "/mxobject/importclass?plan=true");
  expect(answer["message"]).toEqual({ ...planned, total: expect.any(Number) as number });
  await expect(transfer.query.rows(admin, "select a from /matrix/later")).rejects.toMatchObject({ code: "not_found" });
});

test.each(["columns=%7B%7D", "delimiter=;", "sheet=a"])(
  "what only a file with a heading line has is refused without a class (%s)",
  async (parameter) => {
    const session = await http.signIn("admin");
    const name = parameter.split("=")[0] ?? "";
    expect(await upload(session, "host\na\n", `/mxobject/import?${parameter}`)).toMatchObject({
      status: "error",
      code: "invalid",
      message: `[Valid] ${name}= is for a file with a heading line: name its class by class=.`,
    });
  },
);

test("who only reads may export and not import", async () => {
  const session = await http.signIn("viewer");
  expect((await download(session, "class=/matrix/box")).body).toContain("INSERT INTO /matrix/box");
  expect(await upload(session, "insert into /matrix/box host='a'")).toMatchObject({ status: "error", code: "denied" });
  expect(await transfer.query.rows(admin, "select host from /matrix/box")).toEqual([{ host: "主机" }]);
});

test("what was downloaded is taken in below another root", async () => {
  const session = await http.signIn("admin");
  const file = await download(session, "class=/matrix/box&filetype=xlsx");
  expect(await upload(session, file.rawPayload, "/mxobject/importclass?root=/matrix/copy")).toMatchObject({
    status: "ok",
    message: { state: "done" },
  });
  expect((await download(session, "class=/matrix/copy/box&limit=0")).body).toContain("/matrix/copy/box (host varchar");
  expect(await upload(session, file.rawPayload, "/mxobject/importclass?root=copy")).toMatchObject({ code: "invalid" });
  expect(await upload(session, "host\nz\n", "/mxobject/import?class=/matrix/box&root=/matrix/copy")).toMatchObject({
    code: "invalid",
  });
  const script = "INSERT INTO /matrix/box SET host = 'planned'";
  const planned = await upload(session, script, "/mxobject/import?root=/matrix/none&plan=true");
  expect(planned).toMatchObject({ message: expect.stringContaining("/matrix/none/box") });
});
