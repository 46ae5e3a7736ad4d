import type { InjectOptions } from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fromBufferPromise } from "yauzl";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import { openTestHttp, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { rawZip } from "../../../../test/helpers/runs/raw-zip.ts";
import type { Stores } from "../../../store/engine.ts";
import type { Audit } from "../../audit/index.ts";
import { filesArea } from "../area.ts";

let http: TestHttp;
let controller: FileController;
let admin: string;
let viewer: string;

beforeAll(async () => {
  const stores: Stores = { system: () => http.engine.system(), tenant: (name) => http.engine.tenant(name) };
  controller = fileController(stores);
  const audit: Pick<Audit, "ready" | "record"> = {
    ready: (tenant) => http.audit.ready(tenant),
    record: (entry) => http.audit.record(entry),
  };
  http = await openTestHttp({ endpoints: filesArea(controller.files, controller.search, audit).endpoints ?? [] });
  [admin, viewer] = [await http.signIn("admin"), await http.signIn("viewer")];
  for (const path of ["/a/x.txt", "/b/x.txt"])
    await http.call(admin, { method: "PUT", url: `/fs${path}`, ...form({ data: path }) });
});
afterAll(async () => {
  await controller[Symbol.asyncDispose]();
  await http[Symbol.asyncDispose]();
});

function form(fields: Readonly<Record<string, string>>): Pick<InjectOptions, "payload" | "headers"> {
  return {
    payload: new URLSearchParams(fields).toString(),
    headers: { "content-type": "application/x-www-form-urlencoded" },
  };
}

const post = (url: string, { as = admin, ...more }: Omit<InjectOptions, "url"> & { readonly as?: string } = {}) =>
  http.app.inject({ method: "POST", url: `${url}${url.includes("?") ? "&" : "?"}sessionid=${as}`, ...more });

async function namesIn(archive: Buffer): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const entry of (await fromBufferPromise(archive)).eachEntry()) names.push(entry.fileName);
  return names;
}

describe("an export is asked for", () => {
  const BOTH = ["a/", "b/", "a/x.txt", "b/x.txt"];
  const json = (payload: object) => ({ payload, headers: { "content-type": "application/json" } });

  test.each<[string, string, Omit<InjectOptions, "url">]>([
    ["in the query, with the body of a library", "?srcpath=/a&srcpath=/b", json({ responseType: "arraybuffer" })],
    [
      "in the query, with a content type and no body",
      "?srcpath=/a&srcpath=/b",
      { headers: { "content-type": "application/zip" } },
    ],
    ["in the query alone", "?srcpath=/a&srcpath=/b&issys=false", {}],
    ["in a form", "", { payload: "srcpath=/a&srcpath=/b", headers: form({}).headers ?? {} }],
    ["in JSON", "?issys=false", json({ srcpath: ["/a", "/b"] })],
  ])("%s", async (_form, query, body) => {
    const answer = await post(`/fs/export${query}`, body);
    expect([answer.statusCode, answer.headers["content-type"]]).toEqual([200, "application/zip"]);
    expect(answer.headers["x-odp-warnings"]).toBeUndefined();
    expect(await namesIn(answer.rawPayload)).toEqual(BOTH);
  });

  test("and its answer is named as a file to keep, and not packed again", async () => {
    const answer = await post("/fs/export", {
      ...form({ srcpath: "//a" }),
      headers: { "accept-encoding": "gzip", ...form({}).headers },
    });
    expect(answer.headers["content-disposition"]).toBe(`attachment; filename="a.zip"; filename*=UTF-8''a.zip`);
    expect(answer.headers["content-encoding"]).toBeUndefined();
  });
});

test("an export that is refused is an error in JSON", async () => {
  const refused = async (url: string, options = {}) =>
    (await post(url, options)).json<{ status: string; code: string }>();
  expect(await refused("/fs/export")).toMatchObject({ status: "error", code: "invalid" });
  expect(await refused("/fs/export?srcpath=/a&srcpath=/none")).toMatchObject({ status: "error", code: "not_found" });
  expect(await refused("/fs/export?srcpath=/a&issys=true", { as: viewer })).toMatchObject({ code: "denied" });
  for (const path of ["/export", "export/2024", "/import", "import/2024"]) {
    const file = {
      payload: '--B\r\nContent-Disposition: form-data; name="uploadfile"; filename="x"\r\n\r\nx\r\n--B--\r\n',
    };
    const answer = await refused(`/fs/${path}`, {
      ...file,
      headers: { "content-type": "multipart/form-data; boundary=B" },
    });
    expect(answer, path).toMatchObject({ status: "error", code: "invalid" });
  }
  expect((await http.call(admin, { url: "/fs/export?type=check" })).message).toBe(false);
});

describe("an import", () => {
  const upload = async (
    url: string,
    { as = admin, entries = [{ name: "site/shop/1.0/index.html", content: "<p>" }] } = {},
  ) => {
    const bytes = rawZip(entries);
    const head = '--B\r\nContent-Disposition: form-data; name="uploadfile"; filename="a.zip"\r\n\r\n';
    const payload = Buffer.concat([Buffer.from(head), bytes, Buffer.from("\r\n--B--\r\n")]);
    const answer = await post(url, { as, payload, headers: { "content-type": "multipart/form-data; boundary=B" } });
    return answer.json<{ message: readonly string[]; code?: string }>();
  };

  test.each(["import", "export"])(
    "by /fs/%s answers the folder, which a browser then opens, and is recorded",
    async (verb) => {
      const recorded = http.trail.records.length;
      expect(await upload(`/fs/${verb}?depth=3&issys=true`)).toEqual({
        status: "ok",
        message: ["/site/shop/1.0"],
        meta: { files: 1, folders: 3, bytes: 3 },
      });
      const page = await http.app.inject({ url: `/static/site/shop/1.0/index.html?sessionid=${admin}` });
      expect([page.statusCode, page.body]).toEqual([200, "<p>"]);
      const actions = http.trail.records.slice(recorded).map(({ action, outcome }) => [action, outcome]);
      expect(actions).toEqual([[`POST /fs/${verb}`, "ok"]]);
    },
  );

  test("is refused for readers by either verb, and the refusal is recorded", async () => {
    for (const verb of ["import", "export"]) {
      expect(await upload(`/fs/${verb}`, { as: viewer })).toMatchObject({ code: "denied" });
      expect(http.trail.records.at(-1)).toMatchObject({ action: `POST /fs/${verb}`, outcome: "denied" });
    }
  });

  test("takes names in the encoding that the call names", async () => {
    const gbk = [{ name: Buffer.from([0xce, 0xc4, 0xbc, 0xfe]), flags: 0, content: "x" }];
    expect(await upload("/fs/import?encoding=gbk", { entries: gbk as never })).toMatchObject({
      message: ["/", "/文件"],
    });
    expect(await upload("/fs/import", { entries: gbk as never })).toMatchObject({ code: "invalid" });
    expect(await upload("/fs/import?encoding=none", { entries: gbk as never })).toMatchObject({ code: "invalid" });
  });

  test("takes exactly one archive and a depth of at least one", async () => {
    const refused = async (url: string) => (await post(url, form({}))).json<{ code: string }>();
    expect(await refused("/fs/import")).toMatchObject({ code: "invalid" });
    expect(await upload("/fs/import?depth=0")).toMatchObject({ code: "invalid" });
    expect(await upload("/fs/import?depth=3x")).toMatchObject({ code: "invalid" });
    expect(await upload("/fs/export?srcpath=/a")).toMatchObject({ code: "invalid" });
    expect(await refused("/fs/export?srcpath=/a&depth=3")).toMatchObject({ code: "invalid" });
  });
});
