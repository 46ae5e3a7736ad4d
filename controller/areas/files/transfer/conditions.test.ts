import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AppError, type ErrorCode } from "../../../../common/errors.ts";
import { FILE_TAGS_MAX, TAG_DEPTH_MAX } from "../../../../common/limits.ts";
import type { Expected } from "../../../../common/revisions.ts";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { encodeJson } from "../../../store/format.ts";
import type { KvStore } from "../../../store/kv.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { revisionOfFile } from "./expected.ts";

/** Changes of a file are made one after the other on all controllers, each on the revision that its caller expects. */

const admin = testPrincipal();
const user = (path: string) => ({ path, space: "user" as const });
const IS_ABSENT: Expected = { isAbsent: true };
const on = (...revisions: string[]): Expected => ({ revisions, isAbsent: false });
const stale = { code: "stale" };
const PENDING = "files/pending/";

let engine: TestEngine;
let one: FileController;
let two: FileController;
beforeAll(async () => {
  engine = await openTestEngine();
  [one, two] = [fileController(engine, { own: "one" }), fileController(engine, { own: "two" })];
});
afterAll(async () => {
  await one[Symbol.asyncDispose]();
  await two[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

const save = ({ files }: FileController, path: string, text: string, expected?: Expected) =>
  files.save(admin, user(path), { content: { text }, expected });
const revisionOf = async (path: string) => revisionOfFile(await one.files.about(admin, user(path)));
const textOf = async (path: string) => (await two.files.read(admin, path)).text;
const codeOf = (error: unknown): ErrorCode | undefined => (error instanceof AppError ? error.code : undefined);

async function outcomes(works: readonly Promise<unknown>[]): Promise<readonly (string | undefined)[]> {
  const all = await Promise.allSettled(works);
  return all.map((ended) => (ended.status === "rejected" ? codeOf(ended.reason) : "ok"));
}

/** Digests of contents that some mark keeps: a sweep removes the others. */
async function isKept(digest: string): Promise<boolean> {
  const { blobs } = await engine.tenant("matrix");
  await blobs.sweep(0);
  return (await blobs.stat(digest)) !== undefined;
}

test("of ten writes on one revision by two controllers one is made, the others are stale and leave no content", async () => {
  await save(one, "/ten", "first");
  const now = on(await revisionOf("/ten"));
  const texts = Array.from({ length: 10 }, (_, at) => `text ${String(at)}`);
  const ended = await outcomes(texts.map((text, at) => save(at % 2 === 0 ? one : two, "/ten", text, now)));
  expect(ended.filter((outcome) => outcome === "ok")).toHaveLength(1);
  expect(ended.filter((outcome) => outcome === "stale")).toHaveLength(9);
  expect(await textOf("/ten")).toBe(texts[ended.indexOf("ok")]);
  const { content } = await one.files.about(admin, user("/ten"));
  expect(await isKept(content?.digest ?? "")).toBe(true);
  const { blobs } = await engine.tenant("matrix");
  for (const text of texts.filter((_, at) => ended[at] !== "ok")) {
    const { digest } = await blobs.put([Buffer.from(text)], "looked for");
    await blobs.unmark(digest, "looked for");
    expect(await isKept(digest)).toBe(false);
  }
});

test("of ten that make one file one does", async () => {
  const works = Array.from({ length: 10 }, (_, at) =>
    save(at % 2 === 0 ? one : two, "/new/ten", String(at), IS_ABSENT),
  );
  const ended = await outcomes(works);
  expect(ended.filter((outcome) => outcome === "ok")).toHaveLength(1);
  expect(ended.filter((outcome) => outcome === "stale")).toHaveLength(9);
});

test("of a write, a removal, a rename and a note on one revision one is made", async () => {
  for (let round = 0; round < 3; round++) {
    const path = `/mixed/${String(round)}`;
    await save(one, path, "before");
    const now = on(await revisionOf(path));
    const ended = await outcomes([
      save(one, path, "written", now),
      two.files.remove(admin, user(path), now),
      one.files.rename(admin, user(path), `${path}-renamed`, now),
      two.files.note(admin, user(path), { attr: '{"a":1}', expected: now }),
    ]);
    expect(ended.filter((outcome) => outcome === "ok")).toHaveLength(1);
    expect(ended.every((outcome) => outcome === "ok" || outcome === "stale")).toBe(true);
    expect(await two.files.exists(admin, user(path))).toBe(ended[1] !== "ok" && ended[2] !== "ok");
    expect(await two.files.exists(admin, user(`${path}-renamed`))).toBe(ended[2] === "ok");
  }
});

test.each<readonly [string, (path: string) => Promise<unknown>]>([
  ["another content", (path) => two.files.write(admin, user(path), { text: "other" })],
  ["the same content", (path) => two.files.write(admin, user(path), { text: "first" })],
  ["attributes", (path) => two.files.note(admin, user(path), { attr: '{"a":1}' })],
  ["tags", (path) => two.files.note(admin, user(path), { tags: ["a"] })],
  [
    "tags by a statement",
    (path) => two.files.retag(admin, `filesystem:user:${path}`, [{ column: "tags", operation: "set", value: ["b"] }]),
  ],
  [
    "a copy over it",
    async (path) => {
      await two.files.write(admin, user(`/from${path}`), { text: "first" });
      await two.files.copy(admin, user(`/from${path}`), "/");
    },
  ],
  [
    "its removal and another file of that name",
    async (path) => {
      await two.files.remove(admin, user(path));
      await two.files.write(admin, user(path), { text: "first" });
    },
  ],
])("a file gets another revision by %s", async (what, change) => {
  const path = `/${what.replaceAll(" ", "-")}`;
  await save(one, path, "first");
  const before = await revisionOf(path);
  await change(path);
  expect(await revisionOf(path)).not.toBe(before);
  await expect(save(one, path, "late", on(before))).rejects.toMatchObject(stale);
});

test("each change answers the revision that a read then tells", async () => {
  const made = await save(one, "/told", "a", IS_ABSENT);
  expect(await revisionOf("/told")).toBe(made.revision);
  const noted = await two.files.note(admin, user("/told"), { tags: ["x"], expected: on(made.revision) });
  expect(await revisionOf("/told")).toBe(noted);
  const moved = await one.files.move(admin, user("/told"), "/into", on(noted));
  expect(await revisionOf("/into/told")).toBe(moved);
  expect([await textOf("/into/told"), await one.files.exists(admin, user("/told"))]).toEqual(["a", false]);
  expect((await one.files.about(admin, user("/into/told"))).tags).toEqual(["x"]);
  await two.files.remove(admin, user("/into/told"), on(moved));
  expect(await one.files.exists(admin, user("/into/told"))).toBe(false);
});

test("the content of a file that was renamed on its revision stays", async () => {
  await save(one, "/renamed", "precious");
  await one.files.rename(admin, user("/renamed"), "/renamed-to", on(await revisionOf("/renamed")));
  await (await engine.tenant("matrix")).blobs.sweep(0);
  expect(await textOf("/renamed-to")).toBe("precious");
});

test("a folder is neither removed nor moved on a condition, and a target that exists is stale for If-None-Match", async () => {
  await save(one, "/folder/x", "x");
  const any: Expected = { revisions: "*", isAbsent: false };
  await expect(one.files.remove(admin, user("/folder"), any)).rejects.toMatchObject({ code: "unsupported" });
  await expect(one.files.rename(admin, user("/folder"), "/other", any)).rejects.toMatchObject({ code: "unsupported" });
  await save(one, "/taken", "y");
  await expect(one.files.rename(admin, user("/folder/x"), "/taken", IS_ABSENT)).rejects.toMatchObject(stale);
  await expect(one.files.remove(admin, user("/none"), any)).rejects.toMatchObject(stale);
  expect(await textOf("/folder/x")).toBe("x");
});

test("a condition is refused while its file is being copied, moved or removed with a folder", async () => {
  await save(one, "/busy/x", "x");
  const { kv } = await engine.tenant("matrix");
  const work = { id: "w", tenant: "matrix", kind: "move", space: "user", from: "/busy", to: "/else", owner: "one" };
  await kv.put("files/open/w", encodeJson(work));
  const now = on(await revisionOf("/busy/x"));
  const refused = { code: "conflict", message: expect.stringContaining("being copied") as unknown };
  await expect(save(one, "/busy/x", "y", now)).rejects.toMatchObject(refused);
  await expect(save(two, "/else/x", "y", IS_ABSENT)).rejects.toMatchObject(refused);
  await save(one, "/elsewhere", "y", IS_ABSENT);
  await kv.delete("files/open/w");
  await save(one, "/busy/x", "y", now);
});

test("a write that its row cannot take changes nothing and leaves no content", async () => {
  const text = "refused by its row";
  const { kv, blobs } = await engine.tenant("matrix");
  const deep = Array.from({ length: TAG_DEPTH_MAX - 1 }, (_, at) => `d${String(at)}`).join("/");
  const tags = Array.from({ length: FILE_TAGS_MAX }, (_, at) => `t${String(at)}/${deep}`);
  await save(one, "/refused", "first");
  for (const path of ["/refused", "/refused-new"]) {
    const saved = one.files.save(admin, user(path), { content: { text }, notes: { tags } });
    await expect(saved, path).rejects.toMatchObject({ message: expect.stringContaining("indexed values") as unknown });
  }
  for await (const entry of entriesUnder(kv, PENDING)) expect(entry).toBeUndefined();
  await blobs.sweep(0);
  expect(await blobs.stat(createHash("sha256").update(text).digest("hex"))).toBeUndefined();
  expect([await textOf("/refused"), await one.files.exists(admin, user("/refused-new"))]).toEqual(["first", false]);
});

/** A controller that dies between its next decision and the row. With `refusing`, only its writes fail from then on. */
function dyingController({ refusing }: { readonly refusing?: ErrorCode } = {}): FileController {
  let isDead = false;
  const open = async (name: string) => {
    const store = await engine.tenant(name);
    const txn: KvStore["txn"] = async (request) => {
      const answer = await store.kv.txn(request);
      isDead ||= request.then.some(({ key }) => key.startsWith(PENDING));
      return answer;
    };
    const objects = new Proxy(store.objects, {
      get: (target, member) => {
        if (isDead && (!refusing || member === "change"))
          throw new AppError(refusing ?? "internal", "This controller died.");
        const value: unknown = Reflect.get(target, member);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
    return { ...store, objects, blobs: store.blobs, kv: wrappedKv(store.kv, { txn }) };
  };
  return fileController({ system: () => engine.system(), tenant: open }, { own: "dying" });
}

test.each(["the next change of the file", "maintenance"])(
  "a change whose controller died after its decision is made by %s",
  async (next) => {
    const path = `/left/${next}`;
    await save(one, path, "before");
    const now = on(await revisionOf(path));
    const dying = dyingController();
    await expect(save(dying, path, "decided", now)).rejects.toMatchObject({ code: "unknown_outcome" });
    expect(await textOf(path)).toBe("before");
    if (next === "maintenance") await two.files.maintain("matrix");
    else await two.files.note(admin, user(path), { tags: ["next"] });
    await (await engine.tenant("matrix")).blobs.sweep(0);
    expect(await textOf(path)).toBe("decided");
    await expect(save(two, path, "late", now)).rejects.toMatchObject(stale);
    const { kv } = await engine.tenant("matrix");
    for await (const entry of entriesUnder(kv, PENDING)) expect(entry).toBeUndefined();
    await dying.files.close();
  },
);

test("a file that cannot be at its new place stays at its former one", async () => {
  await save(one, "/stays", "stays");
  const refusing = dyingController({ refusing: "invalid" });
  const moved = refusing.files.rename(admin, user("/stays"), "/stays-not", on(await revisionOf("/stays")));
  await expect(moved).rejects.toMatchObject({ code: "invalid" });
  await two.files.maintain("matrix");
  await (await engine.tenant("matrix")).blobs.sweep(0);
  expect([await textOf("/stays"), await one.files.exists(admin, user("/stays-not"))]).toEqual(["stays", false]);
  await refusing.files.close();
});
