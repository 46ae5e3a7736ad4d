import { open, readdir } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { InjectOptions } from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BLOB_CHUNK_MAX_BYTES, HTTP_PIECE_BYTES } from "../../../../common/limits.ts";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import { onCluster } from "../../../../test/helpers/engines/engine.ts";
import { openTestHttp, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { ByteRange } from "../../../store/blobs.ts";
import type { Stores } from "../../../store/engine.ts";
import { fileRoutes } from "../routes.ts";

const admin = { ...testPrincipal(), user: "admin" };
const TEXT = "0123456789";

let http: TestHttp;
let controller: FileController;
let session: string;
/** Ranges that were read from the store. */
const reads: (ByteRange | undefined)[] = [];

beforeAll(async () => {
  const stores: Stores = {
    system: () => http.engine.system(),
    tenant: async (name) => {
      const store = await http.engine.tenant(name);
      const blobs = Object.create(store.blobs) as typeof store.blobs;
      blobs.put = (...content) => store.blobs.put(...content);
      blobs.unmark = (digest, owner) => store.blobs.unmark(digest, owner);
      blobs.read = async function* (digest, range) {
        reads.push(range);
        yield* store.blobs.read(digest, range);
      };
      return { ...store, kv: store.kv, objects: store.objects, blobs };
    },
  };
  controller = fileController(stores);
  http = await openTestHttp({ endpoints: fileRoutes(controller.files, controller.search) });
  session = await http.signIn("admin");
  await controller.files.write(admin, controller.user("/d/ten.bin"), { text: TEXT });
});
afterAll(async () => {
  await controller[Symbol.asyncDispose]();
  await http[Symbol.asyncDispose]();
});

const get = (path: string, headers: Record<string, string> = {}, method: InjectOptions["method"] = "GET") =>
  http.app.inject({
    ...(method && { method }),
    url: `${path}${path.includes("?") ? "&" : "?"}sessionid=${session}`,
    headers,
  });

test.each([
  ["bytes=2-4", "234", "bytes 2-4/10"],
  ["bytes=7-", "789", "bytes 7-9/10"],
  ["bytes=-3", "789", "bytes 7-9/10"],
  ["bytes=-30", TEXT, "bytes 0-9/10"],
  ["bytes=8-99", "89", "bytes 8-9/10"],
])("the range %s is answered with its bytes alone", async (range, body, told) => {
  for (const path of ["/fs/d/ten.bin?type=open", "/fs/d/ten.bin?type=download", "/static/d/ten.bin"]) {
    const answer = await get(path, { range });
    expect([answer.statusCode, answer.body]).toEqual([206, body]);
    expect(answer.headers).toMatchObject({ "content-range": told, "content-length": String(body.length) });
  }
});

test.each(["bytes=0-1,3-4", "bytes=5-2", "lines=1-2", "bytes=", "bytes=x-1"])(
  "several ranges, and a range that says nothing, are answered with the whole: %s",
  async (range) => {
    const answer = await get("/static/d/ten.bin", { range });
    expect([answer.statusCode, answer.body, answer.headers["accept-ranges"]]).toEqual([200, TEXT, "bytes"]);
  },
);

test.each(["bytes=10-", "bytes=10-20", "bytes=-0"])(
  "a range without a byte is refused with the size: %s",
  async (range) => {
    const answer = await get("/static/d/ten.bin", { range });
    expect([answer.statusCode, answer.headers["content-range"]]).toEqual([416, "bytes */10"]);
    expect(answer.json()).toMatchObject({ code: "range", details: { size: 10 } });
  },
);

test("If-Range continues only the same version, and a date proves none", async () => {
  const { headers } = await get("/static/d/ten.bin");
  const etag = String(headers["etag"]);
  const ranged = async (ifRange: string) =>
    (await get("/static/d/ten.bin", { range: "bytes=0-0", "if-range": ifRange })).statusCode;
  expect(etag).toMatch(/^"[^"]+"$/);
  expect(await ranged(etag)).toBe(206);
  for (const other of ['"other"', `W/${etag}`, String(headers["last-modified"])]) expect(await ranged(other)).toBe(200);
});

test("a version that the client has is not sent again, by its tag or by its date", async () => {
  const { headers } = await get("/static/d/ten.bin");
  const [etag, date] = [String(headers["etag"]), String(headers["last-modified"])];
  const before = new Date(Date.parse(date) - 1_000).toUTCString();
  const status = async (asked: Record<string, string>) => (await get("/static/d/ten.bin", asked)).statusCode;
  expect(await status({ "if-none-match": etag })).toBe(304);
  expect(await status({ "if-none-match": etag, range: "bytes=0-0" })).toBe(304);
  expect(await status({ "if-modified-since": date })).toBe(304);
  expect(await status({ "if-modified-since": before })).toBe(200);
  expect(await status({ "if-modified-since": "no date" })).toBe(200);
  expect(await status({ "if-none-match": '"other"', "if-modified-since": date })).toBe(200);
  expect(await status({ "if-match": etag })).toBe(200);
  expect(await status({ "if-match": '"other"' })).toBe(412);
  expect(await status({ "if-unmodified-since": before })).toBe(412);
});

test("HEAD tells what GET would send, and reads nothing", async () => {
  reads.length = 0;
  const whole = await get("/fs/d/ten.bin?type=download", {}, "HEAD");
  const part = await get("/fs/d/ten.bin?type=download", { range: "bytes=0-3" }, "HEAD");
  expect([whole.statusCode, whole.body, whole.headers["content-length"]]).toEqual([200, "", "10"]);
  expect(whole.headers).toMatchObject({ "accept-ranges": "bytes", etag: expect.stringMatching(/^"/) as unknown });
  expect([part.statusCode, part.headers["content-length"], part.headers["content-range"]]).toEqual([
    206,
    "4",
    "bytes 0-3/10",
  ]);
  expect(reads).toEqual([]);
});

test("a range is asked of the store as a range", async () => {
  reads.length = 0;
  await get("/static/d/ten.bin", { range: "bytes=2-4" });
  expect(reads).toEqual([{ start: 2, end: 5 }]);
});

test("a name that is no ASCII is told in both forms", async () => {
  await controller.files.write(admin, controller.user('/d/größe "x".txt'), { text: "x" });
  const { headers } = await get(`/fs/d/${encodeURIComponent('größe "x".txt')}?type=download`);
  expect(headers["content-disposition"]).toBe(
    `attachment; filename="gr__e _x_.txt"; filename*=UTF-8''gr%C3%B6%C3%9Fe%20%22x%22.txt`,
  );
});

test("an empty file is sent whole, and has no range", async () => {
  await controller.files.write(admin, controller.user("/d/empty"), { text: "" });
  const whole = await get("/static/d/empty");
  expect([whole.statusCode, whole.body, whole.headers["content-length"]]).toEqual([200, "", "0"]);
  expect((await get("/static/d/empty", { range: "bytes=0-" })).statusCode).toBe(416);
});

test("a compressed answer has a weak tag, and a range is never compressed", async () => {
  await controller.files.write(admin, controller.user("/d/long.txt"), { text: TEXT.repeat(1_000) });
  const packed = await get("/static/d/long.txt", { "accept-encoding": "gzip" });
  expect(packed.headers).toMatchObject({ "content-encoding": "gzip", etag: expect.stringMatching(/^W\//) as unknown });
  expect(packed.headers).not.toHaveProperty("content-length");
  const part = await get("/static/d/long.txt", { "accept-encoding": "gzip", range: "bytes=0-4999" });
  expect([part.statusCode, part.body]).toEqual([206, TEXT.repeat(500)]);
  expect(part.headers).not.toHaveProperty("content-encoding");
});

/** Changes one byte of a stored content on the disk of the embedded store. */
async function flip(digest: string, at: number): Promise<void> {
  const names = await readdir(http.engine.dir, { recursive: true });
  const name = names.find((path) => path.endsWith(digest)) ?? "";
  const file = await open(join(http.engine.dir, name), "r+");
  const { buffer } = await file.read({ buffer: Buffer.alloc(1), position: at });
  await file.write(Buffer.of((buffer[0] ?? 0) ^ 1), 0, 1, at);
  await file.close();
}

// On the cluster, `contents.cluster.test.ts` proves that such a chunk ends the read.
test.skipIf(onCluster)("a flipped byte breaks the answer, and no client takes it for the whole", async () => {
  await http.app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = http.app.server.address() as AddressInfo;
  const url = (path: string) => `http://127.0.0.1:${String(port)}/static/d/${path}?sessionid=${session}`;
  const text = "x".repeat(2 * BLOB_CHUNK_MAX_BYTES + HTTP_PIECE_BYTES);
  await controller.files.write(admin, controller.user("/d/late.bin"), { text });
  await controller.files.write(admin, controller.user("/d/early.bin"), { text: `${text}y` });
  await flip((await controller.files.open(admin, "/d/late.bin", "user")).digest, 2 * BLOB_CHUNK_MAX_BYTES + 1);
  await flip((await controller.files.open(admin, "/d/early.bin", "user")).digest, 1);
  const late = await fetch(url("late.bin"));
  expect(late.status).toBe(200);
  await expect(late.arrayBuffer()).rejects.toThrow();
  const early = await fetch(url("early.bin"));
  expect([early.status, early.headers.get("etag")]).toEqual([500, null]);
  expect(await early.json()).toMatchObject({ code: "unavailable", message: expect.stringContaining("damaged") });
  const sound = await fetch(url("early.bin"), { headers: { range: `bytes=${String(2 * BLOB_CHUNK_MAX_BYTES)}-` } });
  expect([sound.status, (await sound.text()).length]).toEqual([206, HTTP_PIECE_BYTES + 1]);
});
