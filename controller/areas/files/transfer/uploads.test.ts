import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { connect, type AddressInfo } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { InjectOptions } from "fastify";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { HTTP_FORM_BESIDE_FILES_BYTES, HTTP_UPLOAD_MAX_BYTES } from "../../../../common/limits.ts";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import { openTestHttp, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { BeforeMark, BlobStore } from "../../../store/blobs.ts";
import type { Stores } from "../../../store/engine.ts";
import type { TenantRoom } from "../../objects/index.ts";
import { fileRoutes } from "../routes.ts";

const KIB = 1_024;
const MIB = 1_024 * KIB;
const PIECE = 65_536;

let http: TestHttp;
let controller: FileController;
let admin: string;
let viewer: string;
/** Contents that were taken in: how many bytes the store has read, and how it ended. */
const puts: { bytes: number; end: "open" | "stored" | "failed" }[] = [];

beforeAll(async () => {
  const stores: Stores = { system: () => http.engine.system(), tenant: counting };
  controller = fileController(stores, { room });
  http = await openTestHttp({ endpoints: fileRoutes(controller.files, controller.search) });
  [admin, viewer] = [await http.signIn("admin"), await http.signIn("viewer")];
});
afterAll(async () => {
  await controller[Symbol.asyncDispose]();
  await http[Symbol.asyncDispose]();
});
beforeEach(() => {
  puts.length = 0;
  free = Infinity;
});

/** Bytes for which the tenant has room. */
let free = Infinity;
const room: TenantRoom = {
  isLimited: () => free < Infinity,
  async require(_tenant, { bytes }) {
    await Promise.resolve();
    if (bytes > free) throw new AppError("too_large", "There is no room.", { details: { limit: "max_bytes", max: 1 } });
  },
  async take(tenant, growth) {
    await room.require(tenant, growth);
    free -= growth.bytes;
  },
  count: (_tenant, { bytes }) => void (free -= bytes),
};

async function counting(name: string) {
  const store = await http.engine.tenant(name);
  const blobs: BlobStore = Object.assign(Object.create(store.blobs) as BlobStore, {
    ...{ read: store.blobs.read.bind(store.blobs), unmark: store.blobs.unmark.bind(store.blobs) },
    put: async (bytes: AsyncIterable<Uint8Array>, ...rest: [owner: string, beforeMark?: BeforeMark]) => {
      const seen: (typeof puts)[number] = { bytes: 0, end: "open" };
      puts.push(seen);
      const counted = async function* () {
        for await (const piece of bytes) {
          seen.bytes += piece.length;
          yield piece;
        }
      };
      try {
        const info = await store.blobs.put(counted(), ...rest);
        seen.end = "stored";
        return info;
      } catch (error) {
        seen.end = "failed";
        throw error;
      }
    },
  });
  return { ...store, kv: store.kv, objects: store.objects, blobs };
}

type Part = readonly [name: string, value: string, filename?: string];

function partText([name, value, filename]: Part): string {
  const file = filename === undefined ? "" : `; filename="${filename}"`;
  return `--B\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${value}\r\n`;
}

const headers = { "content-type": "multipart/form-data; boundary=B" };
const send = (method: "PUT" | "POST", url: string, parts: readonly Part[], as = admin) =>
  http.call(as, { method, url, headers, payload: `${parts.map(partText).join("")}--B--\r\n` });
const textOf = async (path: string, space: "user" | "system" = "user") =>
  (await controller.files.read({ ...testPrincipal(), user: "admin" }, path, space)).text;
const blobs = async () => (await http.engine.tenant("matrix")).blobs;
const digestOf = (text: string) => createHash("sha256").update(text).digest("hex");

/** True if a sweep removes the content, because no mark keeps it. */
async function isSwept(text: string): Promise<boolean> {
  await (await blobs()).sweep(0);
  return (await (await blobs()).stat(digestOf(text))) === undefined;
}

test("files of any content are put as one part, whatever the name of the part", async () => {
  for (const [at, name] of ["uploadfile", "data"].entries()) {
    expect(await send("PUT", `/fs/put/${name}.bin`, [[name, `bytes ${at}`, "local name"]])).toMatchObject({
      status: "ok",
    });
    expect(await textOf(`/put/${name}.bin`)).toBe(`bytes ${at}`);
  }
  for (const parts of [
    [
      ["uploadfile", "a", "a"],
      ["uploadfile", "b", "b"],
    ],
    [
      ["data", "text"],
      ["uploadfile", "b", "b"],
    ],
    [
      ["uploadfile", "b", "b"],
      ["type", "dir"],
    ],
  ] as const)
    expect(await send("PUT", "/fs/put/none", parts)).toMatchObject({ code: "invalid" });
});

test("fields count before and after the file that they belong to", async () => {
  const parts: readonly Part[] = [
    ["index", "true"],
    ["uploadfile", "after", "after.txt"],
    ["attr", '{"title":"T"}'],
    ["tags", "a"],
    ["issys", "true"],
  ];
  expect(await send("POST", "/fs/order", parts)).toMatchObject({ status: "ok" });
  expect(await textOf("/order/after.txt", "system")).toBe("after");
  const { attr, tags } = await controller.files.about(testPrincipal(), { path: "/order/after.txt", space: "system" });
  expect([attr, tags]).toEqual(['{"title":"T"}', ["a"]]);
  expect(await controller.files.exists(testPrincipal(), controller.user("/order/after.txt"))).toBe(false);
});

test("a file that cannot be written is refused before a byte of it is read", async () => {
  await send("PUT", "/fs/refused/folder/x", [["data", "x"]]);
  puts.length = 0;
  const upload: readonly Part[] = [["uploadfile", "bytes", "folder"]];
  expect(await send("POST", "/fs/refused", upload)).toMatchObject({ code: "conflict" });
  expect(await send("POST", "/fs/refused", upload, viewer)).toMatchObject({ code: "denied" });
  expect(await send("POST", "/fs//push/a", upload)).toMatchObject({ code: "invalid" });
  expect(await send("POST", "/fs/refused", [["uploadfile", "bytes", "../../x"]])).toMatchObject({ code: "invalid" });
  expect(await send("POST", "/fs/refused", [["issys", "maybe"], ...upload])).toMatchObject({ code: "invalid" });
  expect(puts).toEqual([]);
});

const NO_ROOM = { code: "too_large", details: { limit: "max_bytes" } };

test("files for which the tenant has no room are refused by the length of the body, before a byte of them is stored", async () => {
  const large = "x".repeat(300 * KIB);
  free = 40 * KIB;
  expect(await send("POST", "/fs/full", [["uploadfile", large, "a"]])).toMatchObject(NO_ROOM);
  expect(await send("PUT", "/fs/full/a", [["data", large, "a"]])).toMatchObject(NO_ROOM);
  expect([puts, free]).toEqual([[], 40 * KIB]);
  const chunked = Readable.from([Buffer.from(`${partText(["uploadfile", large, "a"])}--B--\r\n`)]);
  expect(await http.call(admin, { method: "POST", url: "/fs/full", headers, payload: chunked })).toMatchObject(NO_ROOM);
  expect([puts.map(({ end }) => end), free]).toEqual([["failed"], 40 * KIB]);
});

test("files for which there is room are stored, whatever else the body has and however many they are", async () => {
  free = 620 * KIB;
  const parts: readonly Part[] = [
    ["uploadfile", "x".repeat(300 * KIB), "a"],
    ["uploadfile", "y".repeat(300 * KIB), "b"],
    ["attr", JSON.stringify({ text: "z".repeat(60 * KIB) })],
  ];
  expect(await send("POST", "/fs/fits", parts)).toMatchObject({ status: "ok" });
  expect(free).toBe(20 * KIB);
});

test("a body that is longer than all uploads may be is refused by the name of the limit, before it is read", async () => {
  const length = String(HTTP_UPLOAD_MAX_BYTES + HTTP_FORM_BESIDE_FILES_BYTES + 1);
  const payload = partText(["uploadfile", "beginning", "a"]);
  const sent = { method: "POST", url: "/fs/long", headers: { ...headers, "content-length": length }, payload } as const;
  expect(await http.call(admin, sent)).toMatchObject({
    code: "too_large",
    details: { limit: "HTTP_UPLOAD_MAX_BYTES", max: HTTP_UPLOAD_MAX_BYTES },
  });
  expect(puts).toEqual([]);
});

test("of a call that fails after its files have arrived, no content is kept", async () => {
  const parts: readonly Part[] = [
    ["uploadfile", "left behind", "left.txt"],
    ["attr", "no JSON"],
  ];
  expect(await send("POST", "/fs/failed", parts)).toMatchObject({ code: "syntax" });
  await expect.poll(() => isSwept("left behind")).toBe(true);
  expect(await send("PUT", "/fs/kept.txt", [["uploadfile", "kept", "k"]])).toMatchObject({ status: "ok" });
  expect(await isSwept("kept")).toBe(false);
});

test("a client that goes away in the middle leaves nothing", async () => {
  await http.app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = http.app.server.address() as AddressInfo;
  const socket = connect(port, "127.0.0.1");
  const head = `POST /fs/gone?sessionid=${admin} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${String(MIB)}\r\n`;
  socket.write(`${head}Content-Type: ${headers["content-type"]}\r\n\r\n`);
  socket.write(partText(["uploadfile", "x".repeat(PIECE), "gone.bin"]).slice(0, PIECE));
  await expect.poll(() => puts[0]?.bytes ?? 0).toBeGreaterThan(0);
  socket.destroy();
  await once(socket, "close");
  await expect.poll(() => puts[0]?.end).toBe("failed");
  expect(await controller.files.exists(testPrincipal(), controller.user("/gone/gone.bin"))).toBe(false);
});

test("an upload is in the store while it arrives: no more than a few chunks of it are held, and none on a disk", async () => {
  const total = 48 * MIB;
  let [made, most] = [0, 0];
  function* form(): Generator<Buffer> {
    yield Buffer.from(partText(["uploadfile", "", "large.bin"]).slice(0, -2));
    const piece = Buffer.alloc(PIECE, "x");
    for (; made < total; made += PIECE) {
      most = Math.max(most, made - (puts[0]?.bytes ?? 0));
      yield piece;
    }
    yield Buffer.from("\r\n--B--\r\n");
  }
  const sent: InjectOptions & { url: string } = {
    method: "POST",
    url: "/fs/large",
    headers,
    payload: Readable.from(form()),
  };
  expect(await http.call(admin, sent)).toMatchObject({ status: "ok" });
  expect(puts).toEqual([{ bytes: total, end: "stored" }]);
  expect(most).toBeLessThan(4 * MIB);
  expect(await readdir(join(http.engine.dir, "uploads")).catch(() => [])).toEqual([]);
  const about = await controller.files.about(testPrincipal(), controller.user("/large/large.bin"));
  expect(about.size).toBe(total);
});
