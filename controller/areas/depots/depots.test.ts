import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { noClasses } from "../../../test/helpers/objects/memory/objects.ts";
import { tarOf, uploadFolder } from "../../../test/helpers/runs/archives.ts";
import { MemoryStores } from "../../../test/helpers/engines/memory/stores.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import type { SystemClass } from "../objects/index.ts";
import { depotClasses } from "./classes.ts";
import { DepotService } from "./service.ts";

const admin = testPrincipal();
const other = testPrincipal("administrator", "other");
const viewer = testPrincipal("viewer");

let folder: Awaited<ReturnType<typeof uploadFolder>>;
let stores: MemoryStores;
let depots: DepotService;

beforeAll(async () => {
  folder = await uploadFolder();
});
afterAll(() => folder.remove());
beforeEach(() => {
  stores = new MemoryStores();
  depots = new DepotService({ stores, runtime: testRuntime(), objects: noClasses() });
});

const web = (version: string) => ({ name: "web", version });
const script = (text = "#!/bin/sh\necho one\n") => folder.upload("check.sh", text);

/** Contents that still have a mark. */
const marked = () => stores.marked("matrix");

describe("uploading", () => {
  test("a version is listed with its files, description and all versions by number", async () => {
    await depots.create(admin, { ...web("1.9.0"), remark: "first", tags: ["a/b", "a/b"], command: "./check.sh" }, [
      await script(),
    ]);
    const record = await depots.create(admin, web("1.10.0"), [
      await folder.upload("d.tar", tarOf([{ name: "x/y", content: "1" }])),
    ]);
    expect(record).toMatchObject({
      id: "depot:web",
      class: "/matrix/system/depot",
      version: "1.10.0",
      versions: ["1.9.0", "1.10.0"],
    });
    expect(record.files).toMatchObject([{ path: "x/y", size: 1, executable: false }]);
    expect(await depots.get(admin, "web", "1.9.0")).toMatchObject({
      remark: "first",
      tags: ["a/b"],
      command: "./check.sh",
      creator: "administrator",
    });
    expect(await depots.list(admin)).toMatchObject([{ name: "web", version: "1.10.0", versions: ["1.9.0", "1.10.0"] }]);
  });

  test("a version that exists is a conflict, and nothing of the second upload stays", async () => {
    await depots.create(admin, web("1.0.0"), [await script()]);
    const before = marked();
    await expect(depots.create(admin, web("1.0.0"), [await script("other")])).rejects.toMatchObject({
      code: "conflict",
    });
    expect(marked()).toBe(before);
  });

  test("of many uploads of one version at once exactly one wins, whole", async () => {
    const uploads = await Promise.all(["a", "b", "c", "d"].map((text) => script(text)));
    const outcomes = await Promise.allSettled(uploads.map((upload) => depots.create(admin, web("1.0.0"), [upload])));
    expect(outcomes.filter((outcome) => outcome.status === "fulfilled")).toHaveLength(1);
    for (const outcome of outcomes)
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "conflict" });
    expect(["a", "b", "c", "d"]).toContain(await depots.readFile(admin, "web", "1.0.0", "check.sh"));
    expect(marked()).toBe(2);
  });

  test.each(["written", "lost"])(
    "whose last write ends unknown, and was in fact %s, is there once and whole",
    async (fate) => {
      const { kv } = await stores.tenant("matrix");
      const put = kv.put.bind(kv);
      let times = 0;
      kv.put = async (...write) => {
        if (times++ > 0) return put(...write);
        if (fate === "written") await put(...write);
        throw new AppError("unknown_outcome", "perhaps");
      };
      await depots.create(admin, web("1.0.0"), [await script("text")]);
      expect(await depots.readFile(admin, "web", "1.0.0", "check.sh")).toBe("text");
      expect(marked()).toBe(2);
    },
  );

  test("that the store cannot take leaves nothing behind and says so", async () => {
    const { blobs } = await stores.tenant("matrix");
    const put = blobs.put.bind(blobs);
    let times = 0;
    blobs.put = (...content) =>
      ++times > 5 ? Promise.reject(new AppError("unavailable", "disk full")) : put(...content);
    const many = tarOf(Array.from({ length: 50 }, (_, at) => ({ name: `f${at}`, content: `${at}` })));
    await expect(depots.create(admin, web("1.0.0"), [await folder.upload("d.tar", many)])).rejects.toMatchObject({
      code: "unavailable",
    });
    expect(await depots.exists(admin, "web")).toBe(false);
    expect(marked()).toBe(0);
  });

  test("an archive that leaves its folder refuses the whole upload and leaves nothing behind", async () => {
    const evil = await folder.upload(
      "d.tar",
      tarOf([
        { name: "fine", content: "1" },
        { name: "../../evil", content: "2" },
      ]),
    );
    await expect(depots.create(admin, web("1.0.0"), [await script(), evil])).rejects.toMatchObject({ code: "invalid" });
    expect(await depots.exists(admin, "web")).toBe(false);
    expect(marked()).toBe(0);
  });

  test.each([
    [{ name: "web", version: "1.0" }, "1.0.0"],
    [{ name: "web", version: "v1.0.0" }, "1.0.0"],
    [{ name: "../web", version: "1.0.0" }, "slash"],
    [{ name: "..", version: "1.0.0" }, "leaves"],
  ])("%j is refused", async (description, reason) => {
    await expect(depots.create(admin, description, [await script()])).rejects.toThrow(reason);
  });

  test("without a file there is no new version", async () => {
    await expect(depots.create(admin, web("1.0.0"), [])).rejects.toThrow("uploadfile");
  });
});

describe("updating", () => {
  const update = (
    version: string,
    uploads: Awaited<ReturnType<typeof script>>[],
    more: { overwrite?: boolean; remark?: string } = {},
  ) =>
    depots.update(
      admin,
      { ...web(version), ...(more.remark === undefined ? {} : { remark: more.remark }) },
      { uploads, overwrite: more.overwrite ?? false },
    );

  test("adds a version that is not there, without overwrite", async () => {
    expect(await update("1.0.0", [await script()])).toMatchObject({ version: "1.0.0" });
  });

  test("replaces files only with overwrite, and lets go of the old ones", async () => {
    await depots.create(admin, { ...web("1.0.0"), remark: "kept" }, [await script("old")]);
    await expect(update("1.0.0", [await script("new")])).rejects.toThrow("overwrite=true");
    const replaced: unknown[] = [];
    const unused = () => Promise.resolve();
    depots.users.add({
      refuseDeletion: unused,
      refuseDeparture: unused,
      replaced: (change) => Promise.resolve(void replaced.push(change)),
    });
    expect(await update("1.0.0", [await script("new")], { overwrite: true })).toMatchObject({ remark: "kept" });
    expect(await depots.readFile(admin, "web", "1.0.0", "check.sh")).toBe("new");
    expect(marked()).toBe(2);
    expect(replaced).toEqual([{ tenant: "matrix", name: "web", version: "1.0.0" }]);
  });

  test("without a file keeps the files", async () => {
    await depots.create(admin, web("1.0.0"), [await script("old")]);
    expect(await update("1.0.0", [], { remark: "new remark" })).toMatchObject({
      remark: "new remark",
      files: [{ path: "check.sh" }],
    });
  });
});

describe("reading and changing files", () => {
  beforeEach(async () => {
    const archive = tarOf([
      { name: "bin/a.sh", content: "one\ntwo\n", mode: 0o755 },
      { name: "logo", content: Buffer.from([0, 1, 2]) },
    ]);
    await depots.create(admin, { ...web("1.0.0"), command: "./bin/a.sh" }, [await folder.upload("d.tar", archive)]);
  });
  const change = (type: "M" | "A" | "D", filepath: string, more: { content?: string; newVersion?: string } = {}) =>
    depots.changeFile(admin, { ...web("1.0.0"), newVersion: "1.0.1", type, filepath, ...more });

  test("text comes as text; binary, unknown and foreign paths are clear errors", async () => {
    expect(await depots.readFile(admin, "web", "1.0.0", "bin/a.sh")).toBe("one\ntwo\n");
    await expect(depots.readFile(admin, "web", "1.0.0", "logo")).rejects.toThrow("binary");
    await expect(depots.readFile(admin, "web", "1.0.0", "nope")).rejects.toMatchObject({ code: "not_found" });
    await expect(depots.readFile(admin, "web", "1.0.0", "../../x")).rejects.toMatchObject({ code: "invalid" });
  });

  test("M, A and D make a new version; the old one stays as it was", async () => {
    expect((await change("M", "bin/a.sh", { content: "one\n2\n" })).files).toMatchObject([
      { path: "bin/a.sh", executable: true, size: 6 },
      { path: "logo" },
    ]);
    await change("A", "new.txt", { content: "n", newVersion: "1.0.2" });
    expect((await change("D", "logo", { newVersion: "1.0.3" })).files.map((file) => file.path)).toEqual(["bin/a.sh"]);
    expect((await depots.get(admin, "web", "1.0.0")).files).toHaveLength(2);
    expect(await depots.get(admin, "web", "1.0.1")).toMatchObject({ command: "./bin/a.sh" });
    await depots.remove(admin, "web", { version: "1.0.0" });
    expect(await depots.readFile(admin, "web", "1.0.2", "bin/a.sh")).toBe("one\ntwo\n");
  });

  test("a change that does not fit what is there is refused", async () => {
    await expect(change("M", "nope", { content: "" })).rejects.toMatchObject({ code: "not_found" });
    await expect(change("D", "nope")).rejects.toMatchObject({ code: "not_found" });
    await expect(change("A", "logo", { content: "" })).rejects.toMatchObject({ code: "conflict" });
    await expect(change("A", "logo/x", { content: "" })).rejects.toThrow("file and folder");
    await expect(change("A", "../x", { content: "" })).rejects.toThrow("leaves");
    await expect(change("M", "logo", { content: "", newVersion: "1.0.0" })).rejects.toMatchObject({ code: "conflict" });
  });

  test("the difference of two versions names every file and shows text by line", async () => {
    await change("M", "bin/a.sh", { content: "one\n2\n" });
    await depots.changeFile(admin, { ...web("1.0.1"), newVersion: "1.0.2", type: "D", filepath: "logo" });
    await depots.changeFile(admin, {
      ...web("1.0.2"),
      newVersion: "1.0.3",
      type: "A",
      filepath: "new",
      content: "n\n",
    });
    const differences = await depots.diff(admin, "web", "1.0.0", "1.0.3");
    expect(differences.map(({ path, change: kind, binary }) => [path, kind, binary])).toEqual([
      ["bin/a.sh", "modified", false],
      ["logo", "removed", true],
      ["new", "added", false],
    ]);
    expect(differences[0]?.diff).toContain("-two\n+2\n");
    expect(await depots.diff(admin, "web", "1.0.0", "1.0.0")).toEqual([]);
  });
});

describe("removing", () => {
  test("takes all versions and their marks; what is gone is not found", async () => {
    await depots.create(admin, web("1.0.0"), [await script()]);
    await depots.create(admin, web("1.0.1"), [await script()]);
    expect(await depots.remove(admin, "web")).toBe(2);
    expect(marked()).toBe(0);
    await expect(depots.get(admin, "web")).rejects.toMatchObject({ code: "not_found" });
    await expect(depots.remove(admin, "web")).rejects.toMatchObject({ code: "not_found" });
  });

  test("is refused by who still needs it", async () => {
    await depots.create(admin, web("1.0.0"), [await script()]);
    const inUse = () => Promise.reject(new Error("in use"));
    depots.users.add({ refuseDeletion: inUse, refuseDeparture: inUse, replaced: inUse });
    await expect(depots.remove(admin, "web")).rejects.toThrow("in use");
    expect(await depots.exists(admin, "web", "1.0.0")).toBe(true);
    expect(await depots.remove(admin, "web", { force: true })).toBe(1);
  });
});

test("a deployment gets files and command, of the newest version by default", async () => {
  await depots.create(admin, { ...web("1.9.0"), command: "old" }, [await script()]);
  await depots.create(admin, { ...web("1.10.0"), command: "./check.sh" }, [await script()]);
  expect(await depots.toDeploy(admin, "web")).toMatchObject({
    version: "1.10.0",
    command: "./check.sh",
    files: [{ path: "check.sh", executable: true }],
  });
  await expect(depots.toDeploy(admin, "web", "3.0.0")).rejects.toMatchObject({ code: "not_found" });
});

test("one tenant sees and touches nothing of another", async () => {
  await depots.create(admin, web("1.0.0"), [await script()]);
  expect(await depots.list(other)).toEqual([]);
  expect(await depots.exists(other, "web")).toBe(false);
  await expect(depots.get(other, "web")).rejects.toMatchObject({ code: "not_found" });
  await expect(depots.readFile(other, "web", "1.0.0", "check.sh")).rejects.toMatchObject({ code: "not_found" });
  await expect(depots.remove(other, "web")).rejects.toMatchObject({ code: "not_found" });
  await depots.create(other, web("1.0.0"), [await script("theirs")]);
  expect(await depots.readFile(admin, "web", "1.0.0", "check.sh")).toContain("echo one");
});

test("a viewer reads but changes nothing", async () => {
  await depots.create(admin, web("1.0.0"), [await script()]);
  expect(await depots.list(viewer)).toHaveLength(1);
  const denied = { code: "denied" };
  await expect(depots.create(viewer, web("1.0.1"), [await script()])).rejects.toMatchObject(denied);
  await expect(depots.update(viewer, web("1.0.0"), { uploads: [], overwrite: true })).rejects.toMatchObject(denied);
  await expect(
    depots.changeFile(viewer, { ...web("1.0.0"), newVersion: "1.0.1", type: "D", filepath: "check.sh" }),
  ).rejects.toMatchObject(denied);
  await expect(depots.remove(viewer, "web")).rejects.toMatchObject(denied);
});

test("depots are rows of /system/depot; MQL changes tags through their owner and inserts nothing", async () => {
  const classes: SystemClass[] = [];
  classes.push(...depotClasses(depots));
  const depot = classes.find((definition) => definition.path === "/system/depot");
  await depots.create(admin, { ...web("1.0.0"), tags: ["a"] }, [await script()]);
  expect(depot?.guard.insert).toBeUndefined();
  expect(await depot?.guard.update?.(admin, "depot:web", [{ column: "tags", operation: "add", value: ["b"] }])).toBe(
    true,
  );
  for await (const page of depot?.provide?.(admin) ?? [])
    expect(page).toEqual([
      {
        id: "depot:web",
        class: "/matrix/system/depot",
        name: "web",
        version: "1.0.0",
        versions: ["1.0.0"],
        remark: "",
        tags: ["a", "b"],
        command: "",
        status: "ok",
        filecount: 1,
        size: Buffer.byteLength("#!/bin/sh\necho one\n"),
        created: new TestClock().nowMs(),
        creator: "administrator",
      },
    ]);
  await expect(
    depot?.guard.update?.(admin, "depot:web", [{ column: "version", operation: "set", value: "9.9.9" }]),
  ).rejects.toMatchObject({ code: "unsupported" });
  await expect(depot?.guard.remove?.(viewer, ["depot:web"])).rejects.toMatchObject({ code: "denied" });
  expect(await depot?.guard.remove?.(admin, ["depot:web"])).toBe(1);
});
