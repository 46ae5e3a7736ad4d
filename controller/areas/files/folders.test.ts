import { describe, expect, test } from "vitest";
import { isAppError } from "../../../common/errors.ts";
import { PATH_DEPTH_MAX } from "../../../common/limits.ts";
import { onCluster, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { useFileControllers } from "../../../test/helpers/areas/file-controllers.ts";
import { fileController, type FileController } from "../../../test/helpers/areas/files.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { Interleaving, interleaved } from "../../../test/helpers/engines/interleaving.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { seedsOf } from "../../../test/helpers/time/times.ts";

const admin = testPrincipal();
const SEEDS = seedsOf([], onCluster ? 3 : 5);

let engine: TestEngine;
let one: FileController;
let two: FileController;
useFileControllers((opened) => ({ engine, one, other: two } = opened));

const write = (path: string, text = path) => one.files.write(admin, one.user(path), { text });
const text = async (path: string) => (await one.files.read(admin, path)).text;
const tree = (path: string) => one.tree(admin, path);

describe("a folder", () => {
  test("is there with the first file in it, with all above it, and is listed", async () => {
    await write("/list/a/b/one.txt");
    await one.files.makeFolder(admin, one.user("list/empty/"), { attr: '{"icon":"x"}', tags: ["t"] });
    expect(await tree("/list")).toEqual(["/list/a/", "/list/a/b/", "/list/a/b/one.txt", "/list/empty/"]);
    expect(await one.files.about(admin, one.user("/list/empty"))).toMatchObject({
      content: undefined,
      ftype: "dir",
      attr: '{"icon":"x"}',
      tags: ["t"],
    });
    expect(await tree("/list/empty")).toEqual([]);
    await expect(tree("/list/none")).rejects.toMatchObject({ code: "not_found" });
    await expect(tree("/list/a/b/one.txt")).rejects.toMatchObject({ code: "invalid" });
    await expect(one.files.read(admin, "/list/a")).rejects.toMatchObject({ code: "invalid" });
  });

  test("takes no file's place, nor a file its", async () => {
    await write("/kinds/file");
    await one.files.makeFolder(admin, one.user("/kinds/folder"));
    await expect(write("/kinds/folder")).rejects.toMatchObject({ code: "conflict" });
    await expect(write("/kinds/file/below")).rejects.toMatchObject({ code: "conflict" });
    await expect(one.files.makeFolder(admin, one.user("/kinds/file"))).rejects.toMatchObject({ code: "conflict" });
    expect(await tree("/kinds")).toEqual(["/kinds/file", "/kinds/folder/"]);
  });

  test("called like an extension is none: a file of that name stays a file", async () => {
    await write("/kinds/x.dir");
    await one.files.write(admin, one.user("/kinds/y"), { text: "y" }, { ftype: "dir" });
    for (const name of ["/kinds/x.dir", "/kinds/y"])
      expect(await one.files.about(admin, one.user(name))).toMatchObject({ ftype: "" });
  });
});

describe("a write", () => {
  test("without content keeps what is there, and begins an empty file", async () => {
    await one.files.write(admin, one.user("/kept.js"));
    expect(await text("/kept.js")).toBe("");
    await write("/kept.js", "content");
    await one.files.write(admin, one.user("/kept.js"), undefined, { attr: '{"title":"K"}', tags: ["a", " a", ""] });
    expect(await text("/kept.js")).toBe("content");
    expect(await one.files.about(admin, one.user("/kept.js"))).toMatchObject({
      attr: '{"title":"K"}',
      tags: ["a"],
      size: 7,
    });
  });

  test("sets attributes and tags, and refuses what is none", async () => {
    await write("/noted.txt");
    const note = (notes: object) => one.files.note(admin, one.user("/noted.txt"), notes);
    await note({ attr: '{"remark":"r"}' });
    await note({ tags: ["x/y"] });
    expect(await one.files.about(admin, one.user("/noted.txt"))).toMatchObject({
      attr: '{"remark":"r"}',
      tags: ["x/y"],
    });
    await note({ attr: '""', tags: [] });
    expect(await one.files.about(admin, one.user("/noted.txt"))).toMatchObject({ attr: "", tags: [] });
    await expect(note({ attr: "{" })).rejects.toMatchObject({ code: "syntax" });
    await expect(note({ attr: "[1]" })).rejects.toMatchObject({ code: "invalid" });
    await expect(note({ attr: JSON.stringify({ a: "x".repeat(70_000) }) })).rejects.toMatchObject({
      code: "too_large",
    });
    await expect(note({ tags: Array.from({ length: 101 }, (_, at) => String(at)) })).rejects.toMatchObject({
      code: "too_large",
    });
    await expect(one.files.note(admin, one.user("/none"), { attr: "" })).rejects.toMatchObject({ code: "not_found" });
  });

  test.each([
    "../up",
    "a/../../b",
    "a\\b",
    "a\u0000b",
    "a\u202eb",
    "C:/x",
    "",
    "/",
    "x/".repeat(PATH_DEPTH_MAX + 1),
    "n".repeat(300),
  ])("refuses the name %j", async (path) => {
    await expect(write(path, "")).rejects.toMatchObject({ code: "invalid" });
    await expect(one.files.makeFolder(admin, one.user(path))).rejects.toMatchObject({ code: "invalid" });
    await expect(one.files.remove(admin, one.user(path))).rejects.toMatchObject({ code: "invalid" });
    await write("/harmless");
    await expect(one.files.rename(admin, one.user("/harmless"), path)).rejects.toMatchObject({ code: "invalid" });
  });

  test.each(["constructor", "__proto__", "a:b", 'it\'s "q" 100%', "中文 file", "-rf"])(
    "takes the name %j as it is",
    async (name) => {
      await write(`/names/${name}`, name);
      expect(await text(`/names/${name}`)).toBe(name);
      expect(await tree("/names")).toContain(`/names/${name}`);
    },
  );

  test("reads what another controller wrote", async () => {
    await two.files.write(admin, two.user("/shared/x"), { text: "two" });
    expect(await text("/shared/x")).toBe("two");
  });
});

describe("a removal", () => {
  test("takes a file, and of a folder all that lies below it, and no neighbour", async () => {
    for (const path of ["/rm/a/1", "/rm/a/b/2", "/rm/ab/3", "/rm/c"]) await write(path);
    await one.files.remove(admin, one.user("/rm/c"));
    await one.files.remove(admin, one.user("/rm/a"));
    expect(await tree("/rm")).toEqual(["/rm/ab/", "/rm/ab/3"]);
    await expect(one.files.remove(admin, one.user("/rm/a"))).rejects.toMatchObject({ code: "not_found" });
    await write("/rm/a", "now a file");
    expect(await text("/rm/a")).toBe("now a file");
  });

  test("lets the content go, unless another file has it", async () => {
    const { blobs } = await engine.tenant("matrix");
    await write("/gone/1", "of two");
    await write("/stays", "of two");
    await write("/gone/2", "of one");
    const [shared, own] = await Promise.all(
      ["/gone/1", "/gone/2"].map(async (path) => (await one.files.read(admin, path)).digest),
    );
    await one.files.remove(admin, one.user("/gone"));
    await blobs.sweep(0);
    expect([await text("/stays"), await blobs.stat(own ?? "")]).toEqual(["of two", undefined]);
    await one.files.remove(admin, one.user("/stays"));
    await blobs.sweep(0);
    expect(await blobs.stat(shared ?? "")).toBeUndefined();
  });

  /** Fails if the file `new` is in no folder, or the file `old` is still there. */
  async function expectRemoved(folder: string, message: string): Promise<void> {
    const isThere = await one.files.exists(admin, one.user(`${folder}/new`));
    expect(isThere ? await tree(folder) : [], message).toEqual(isThere ? [`${folder}/new`] : []);
    if (isThere) expect(await tree("/race"), message).toContain(`${folder}/new`);
  }

  test("at any step of a write leaves the file in its folder or neither", async () => {
    let calls = 0;
    let at = 0;
    let meet = (): Promise<void> => Promise.resolve();
    const met = async (name: string) => {
      const store = await engine.tenant(name);
      const objects = new Proxy(store.objects, {
        get: (target, member) => {
          const value: unknown = Reflect.get(target, member);
          if (typeof value !== "function") return value;
          return async (...given: readonly unknown[]) => {
            if (calls++ === at) await meet();
            return Reflect.apply(value, target, given) as unknown;
          };
        },
      });
      return { ...store, objects };
    };
    const writer = fileController(engine, { own: "w", data: { system: () => engine.system(), tenant: met } });
    await writer.files.write(admin, one.user("/race/first"), { text: "" });
    for (let isMet = true; isMet; at++) {
      isMet = false;
      const folder = `/race/step${at}/in`;
      await write(`${folder}/old`);
      meet = async () => {
        isMet = true;
        await one.files.remove(admin, one.user(`/race/step${at}`));
      };
      calls = 0;
      await writer.files.write(admin, one.user(`${folder}/new`), { text: "new" });
      if (isMet) await expectRemoved(folder, `step ${at}`);
    }
    expect(at).toBeGreaterThan(5);
    await writer[Symbol.asyncDispose]();
  });

  test("beside a write leaves the file in its folder or neither, in any interleaving", async () => {
    for (const seed of SEEDS) {
      const folder = `/race/${seed}/in`;
      await write(`${folder}/old`);
      const turns = new Interleaving(seededRandom(seed));
      const [writer, remover] = ["w", "r"].map((own) =>
        fileController(interleaved(engine, turns, Infinity), { own: `${own}${seed}` }),
      );
      let isAnswered = true;
      const unanswered = (error: unknown): void => {
        if (!isAppError(error, "unknown_outcome", "unavailable", "not_found")) throw error;
        isAnswered = false;
      };
      await turns.run([
        async () => {
          await writer?.files.write(admin, one.user(`${folder}/new`), { text: "new" }).catch(unanswered);
        },
        async () => remover?.files.remove(admin, one.user(`/race/${seed}`)).catch(unanswered),
      ]);
      await writer?.[Symbol.asyncDispose]();
      await remover?.[Symbol.asyncDispose]();
      if (!isAnswered) continue;
      await expectRemoved(folder, `seed ${seed}`);
    }
  });
});

test("a neighbour and a user without the permission see and change nothing", async () => {
  await write("/private/x");
  const neighbour = testPrincipal("administrator", "second");
  const viewer = testPrincipal("viewer");
  expect(await one.files.exists(neighbour, one.user("/private/x"))).toBe(false);
  await expect(one.tree(neighbour, "/private")).rejects.toMatchObject({ code: "not_found" });
  await expect(one.files.remove(neighbour, one.user("/private"))).rejects.toMatchObject({ code: "not_found" });
  await expect(one.files.write(viewer, one.user("/private/y"), { text: "" })).rejects.toMatchObject({ code: "denied" });
  await expect(one.files.remove(viewer, one.user("/private/x"))).rejects.toMatchObject({ code: "denied" });
  expect(await text("/private/x")).toBe("/private/x");
});
