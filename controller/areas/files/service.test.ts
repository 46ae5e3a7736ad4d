import { afterAll, beforeAll, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { CHANGE_BATCH_MAX } from "../../../common/limits.ts";
import { uploadFolder } from "../../../test/helpers/runs/archives.ts";
import { realClock, seededRandom } from "../../../test/helpers/time/clock.ts";
import { testEntries } from "../../../test/helpers/areas/config.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { Mortality } from "../../../test/helpers/engines/mortal.ts";
import { prove } from "../../../test/helpers/runs/evidence.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import type { BlobStore } from "../../store/blobs.ts";
import type { Workers } from "../../workers/index.ts";
import { ObjectService, type TenantRoom } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { FileParser, RuleService, type RuleTasks } from "../rules/index.ts";
import { FILE_CLASS } from "./classes.ts";
import { FileService } from "./service.ts";
import { visibleObjects } from "../query/index.ts";

const admin = testPrincipal();
const other = testPrincipal("administrator", "second");
const MIB = 1_048_576;
const runtime = { ...testRuntime(realClock), random: seededRandom(1) };
const ALONE = { own: "one", has: () => true };

let engine: TestEngine;
let objects: ObjectService;
let files: FileService;
beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
  objects.registerSystemClass(FILE_CLASS);
  files = new FileService({ stores: engine, objects, runtime, controllers: ALONE });
});
afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

const user = (path: string) => ({ path, space: "user" as const });
const textOf = async (path: string, space: "user" | "system" = "user") => (await files.read(admin, path, space)).text;
const digestOf = async (path: string) => (await files.open(admin, path, "user")).digest;

test("a file is read as it was written, and again after it was replaced", async () => {
  await files.write(admin, user("/a/b/note.TXT"), { text: "one\n" });
  const before = Date.now();
  expect(await textOf("a/b/note.TXT")).toBe("one\n");
  await files.write(admin, user("a/b/note.TXT"), { text: "two 二\n" });
  expect(await textOf("/a/b/note.TXT")).toBe("two 二\n");
  const [row] = await objects.unrestricted.get(admin, [
    { id: "filesystem:user:/a/b/note.TXT", class: "/matrix/filesystem" },
  ]);
  expect(row?.values).toMatchObject({
    name: "note.TXT",
    parent: "/a/b",
    ftype: "txt",
    size: 8,
    owner: "administrator",
  });
  const modified = Number(row?.values["modified"]);
  await files.note(admin, { path: "a/b/note.TXT", space: "user" }, { attr: '{"a":1}' });
  const [noted] = await objects.unrestricted.get(admin, [
    { id: "filesystem:user:/a/b/note.TXT", class: "/matrix/filesystem" },
  ]);
  expect(noted?.values).toMatchObject({ attr: '{"a":1}', modified });
  expect(modified).toBeGreaterThanOrEqual(before);
});

test("content of more than one chunk comes back whole", async () => {
  const text = "0123456789abcdef".repeat((2.5 * MIB) / 16);
  await files.write(admin, user("big"), { text });
  const { bytes, size } = await files.open(admin, "big", "user");
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes) pieces.push(piece);
  expect([size, Buffer.concat(pieces).toString() === text]).toEqual([2.5 * MIB, true]);
});

test("content stays while a file names it, and is swept when none does any more", async () => {
  const { blobs } = await engine.tenant("matrix");
  await files.write(admin, user("first"), { text: "shared" });
  await files.write(admin, user("second"), { text: "shared" });
  const shared = await digestOf("first");
  await files.write(admin, user("first"), { text: "own" });
  await blobs.sweep(0);
  expect(await textOf("second")).toBe("shared");
  await files.write(admin, user("second"), { text: "own" });
  await blobs.sweep(0);
  expect(await blobs.stat(shared)).toBeUndefined();
  expect(await textOf("second")).toBe("own");
});

test("who is late to let go of the old content does not take it from who has written it again", async () => {
  const inner = await engine.tenant("matrix");
  const { objects: store, blobs } = inner;
  let letGo = (): void => undefined;
  const gate = new Promise<void>((resolve) => (letGo = resolve));
  let reached = (): void => undefined;
  const atGate = new Promise<void>((resolve) => (reached = resolve));
  const late: BlobStore = {
    put: (...content) => blobs.put(...content),
    mark: (digest, owner) => blobs.mark(digest, owner),
    // Then the controller dies: its cleanup afterwards does not run.
    unmark: async (digest, owner) => {
      reached();
      await gate;
      await blobs.unmark(digest, owner);
      throw new AppError("unavailable", "dead");
    },
    stat: missing,
    read: missing,
    sweep: missing,
    append: missing,
    readStream: missing,
    removeStream: missing,
  };
  const tenant = () => Promise.resolve({ ...inner, objects: store, blobs: late });
  const otherObjects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
  otherObjects.registerSystemClass(FILE_CLASS);
  const lateFiles = new FileService({
    stores: { tenant, system: tenant },
    objects: otherObjects,
    runtime,
    controllers: ALONE,
  });
  await files.write(admin, user("contested"), { text: "X" });
  const slow = lateFiles.write(admin, user("contested"), { text: "Y" });
  await atGate;
  await files.write(admin, user("contested"), { text: "X" });
  letGo();
  await expect(slow).rejects.toMatchObject({ code: "unknown_outcome" });
  await otherObjects.close();
  await blobs.sweep(0);
  expect(await textOf("contested")).toBe("X");
  prove("files-keep-their-content", {
    engine: engine.kind,
    cases: ["the old content is let go of late, and the writer dies"],
  });
});

test("the two spaces, the tenants and the world outside a space are apart", async () => {
  await files.write(admin, user("same"), { text: "user's" });
  await files.write(admin, { path: "same", space: "system" }, { text: "system's" });
  expect([await textOf("same"), await textOf("same", "system")]).toEqual(["user's", "system's"]);
  expect(await files.exists(other, user("same"))).toBe(false);
  await expect(files.open(other, "same", "user")).rejects.toMatchObject({ code: "not_found" });
  await expect(files.write(admin, user("../same"), { text: "" })).rejects.toMatchObject({ code: "invalid" });
});

test("what is no text is not given as one", async () => {
  const folder = await uploadFolder();
  const { path: file } = await folder.upload("bytes", Buffer.from([0xff, 0xfe, 0x00]));
  await files.write(admin, user("bytes"), { file });
  await folder.remove();
  await expect(files.read(admin, "bytes")).rejects.toMatchObject({ code: "invalid" });
});

test("a file parsed with a rule becomes records, and parsed again the same ones", async () => {
  const rules = new RuleService({ stores: engine, entries: testEntries(engine), objects });
  const parser = new FileParser({ rules, objects, files, clock: realClock });
  await objects.createClass(admin, {
    path: "/matrix/parsed",
    kind: "record",
    columns: [
      { name: "name", type: "varchar" },
      { name: "n", type: "int" },
    ],
  });
  await rules.put(admin, "/matrix/rules/parsed", "--class=/matrix/parsed\n--parser=csv\n--fields=name,n\n");
  const lines = Array.from({ length: CHANGE_BATCH_MAX + 200 }, (_, at) =>
    at === 7 ? "x,not a number" : `n${at},${at}`,
  );
  await files.write(admin, user("data.csv"), { text: `${lines.join("\n")}\n` });
  const request = {
    rule: "/matrix/rules/parsed",
    filename: "data.csv",
    space: "user",
    signal: new AbortController().signal,
  } as const;
  const result = { class: "/matrix/parsed", records: lines.length - 1, failed: 1, errors: [{ line: 8 }] };
  expect(await parser.parse(admin, request)).toMatchObject(result);
  expect(await parser.parse(admin, request)).toMatchObject(result);
  const names = new Set<unknown>();
  let count = 0;
  for await (const page of objects.unrestricted.read(admin, { class: "/matrix/parsed", subtree: false })) {
    for (const row of page) names.add(row.values["name"]);
    count += page.length;
  }
  expect([count, names.size]).toEqual([lines.length - 1, lines.length - 1]);
});

test("a file is parsed with the caller's row condition and columns, and what was removed is not counted as stored", async () => {
  const rules = new RuleService({ stores: engine, entries: testEntries(engine), objects });
  const parser = new FileParser({ rules, objects, files, clock: realClock });
  const columns = [
    { name: "name", type: "varchar" },
    { name: "region", type: "varchar" },
  ] as const;
  await objects.createClass(admin, { path: "/matrix/ruled", columns, keys: ["name"] });
  await objects.createClass(admin, { path: "/matrix/passing", kind: "record", columns });
  await objects.unrestricted.insert(admin, "/matrix/ruled", [{ name: "theirs", region: "south" }]);
  const lines = ["mine,north", "foreign,south", "theirs,north", ",north"];
  await files.write(admin, user("ruled.csv"), { text: `${lines.join("\n")}\n` });
  const rule = async (path: string, fields: string): Promise<string> => {
    await rules.put(admin, "/matrix/rules/ruled", `--class=${path}\n--parser=csv\n--fields=${fields}\n`);
    return "/matrix/rules/ruled";
  };
  const { signal } = new AbortController();
  const parse = async (principal: Principal, path: string, fields = "name,region") =>
    parser.parse(principal, { rule: await rule(path, fields), filename: "ruled.csv", space: "system", signal });
  await files.write(admin, { path: "ruled.csv", space: "system" }, { text: `${lines.join("\n")}\n` });
  const north = {
    ...admin,
    user: "bob",
    data: [
      { class: "/matrix", access: "write", where: "region = 'north'" },
      { class: "/matrix/filesystem", access: "read" },
    ],
  } as const;
  expect(await parse(north, "/matrix/ruled")).toMatchObject({
    records: 1,
    failed: 3,
    errors: [{ line: 2 }, { line: 3 }, { line: 4 }],
  });
  expect(await parse(north, "/matrix/passing")).toMatchObject({ records: 3, removed: 0, failed: 1 });
  const rows = [];
  for await (const page of objects.unrestricted.read(admin, { class: "/matrix/ruled", subtree: false }))
    rows.push(...page);
  expect(rows.map(({ values }) => values)).toEqual(
    expect.arrayContaining([
      { name: "theirs", region: "south" },
      { name: "mine", region: "north" },
    ]),
  );
  expect(rows).toHaveLength(2);
  const blind = { ...admin, user: "eve", data: [{ class: "/matrix", access: "write", hidden: ["region"] }] } as const;
  await expect(parse(blind, "/matrix/passing")).rejects.toMatchObject({ code: "not_found" });
  const reader = { ...admin, data: [{ class: "/matrix", access: "read" }] } as const;
  await expect(parse(reader, "/matrix/passing")).rejects.toMatchObject({ code: "denied" });
  const passed = [];
  for await (const page of objects.unrestricted.read(admin, { class: "/matrix/passing", subtree: false }))
    passed.push(...page);
  await objects.unrestricted.remove(
    admin,
    passed.slice(0, 1).map(({ id }) => ({ id, class: "/matrix/passing" })),
  );
  expect(await parse(north, "/matrix/passing")).toMatchObject({ records: 2, removed: 1, failed: 1 });
});

test("of a file its tenant has no room for nothing is stored, of one it has half the room for half, and every other line says why", async () => {
  const rules = new RuleService({ stores: engine, entries: testEntries(engine), objects });
  const columns = [{ name: "name", type: "varchar" }] as const;
  await objects.createClass(admin, { path: "/matrix/full", columns, keys: ["name"] });
  await rules.put(admin, "/matrix/rules/full", "--class=/matrix/full\n--parser=csv\n--fields=name\n");
  await files.write(admin, user("full.csv"), { text: "a\nb\nc\nd\n" });
  const { signal } = new AbortController();
  const request = { rule: "/matrix/rules/full", filename: "full.csv", space: "user", signal } as const;
  const parsedWith = async (left: number) => {
    const require: TenantRoom["require"] = async (_tenant, { objects: wanted }) => {
      if (wanted > left) throw new AppError("too_large", "there is no room for more");
      left -= wanted;
    };
    const room: TenantRoom = { isLimited: () => true, take: require, require, count: () => undefined };
    const parser = new FileParser({ rules, objects, files, clock: realClock, room });
    const result = await parser.parse(admin, request).catch((error: unknown) => error);
    const names: unknown[] = [];
    for await (const page of objects.unrestricted.read(admin, { class: "/matrix/full", subtree: false }))
      names.push(...page.map(({ values }) => values["name"]));
    return { result, names: names.sort() };
  };
  const refused = (...lines: number[]) =>
    lines.map((line) => ({ line, error: expect.stringContaining("there is no room") as unknown }));
  expect(await parsedWith(0)).toMatchObject({
    result: { code: "invalid", details: { failed: 4, errors: refused(1, 2, 3, 4) } },
    names: [],
  });
  expect(await parsedWith(2)).toMatchObject({
    result: { records: 2, failed: 2, errors: refused(3, 4) },
    names: ["a", "b"],
  });
});

test("columns of a file that the class lacks are told, each with the number of records that have it", async () => {
  const rules = new RuleService({ stores: engine, entries: testEntries(engine), objects });
  const parser = new FileParser({ rules, objects, files, clock: realClock });
  await objects.createClass(admin, {
    path: "/matrix/narrow",
    kind: "record",
    columns: [
      { name: "name", type: "varchar" },
      { name: "size", type: "int" },
    ],
  });
  await rules.put(
    admin,
    "/matrix/rules/narrow",
    "--class=/matrix/narrow\n--parser=csv\n--fields=name,bytes,colour\n--var_size=field bytes\n",
  );
  await files.write(admin, user("narrow.csv"), { text: "a,1,red\nb,2,green\n" });
  const request = {
    rule: "/matrix/rules/narrow",
    filename: "narrow.csv",
    space: "user",
    signal: new AbortController().signal,
  } as const;
  expect(await parser.parse(admin, request)).toMatchObject({
    records: 2,
    failed: 0,
    warnings: ["/matrix/narrow has no column for colour, which 2 records have: left out."],
  });
});

test("long lines of a file are parsed by threads for the caller's tenant, until the caller goes", async () => {
  const rules = new RuleService({ stores: engine, entries: testEntries(engine), objects });
  const given: unknown[] = [];
  const run: Workers<RuleTasks>["run"] = (_name, _input, options) => {
    given.push(options);
    return Promise.reject(new AppError("cancelled", "The task was cancelled."));
  };
  const parser = new FileParser({ rules, objects, files, clock: realClock, workers: { run } });
  await objects.createClass(admin, {
    path: "/matrix/long",
    kind: "record",
    columns: [{ name: "name", type: "varchar" }],
  });
  await rules.put(admin, "/matrix/rules/long", "--class=/matrix/long\n--parser=grok\n--pattern_1=^%{WORD:name}\n");
  await files.write(admin, user("long.txt"), { text: `short\nlong ${"x".repeat(5_000)}\n` });
  const { signal } = new AbortController();
  const request = { rule: "/matrix/rules/long", filename: "long.txt", space: "user", signal } as const;
  await expect(parser.parse(admin, request)).rejects.toMatchObject({ code: "cancelled" });
  expect(given).toMatchObject([{ tenant: "matrix", signal }]);
});

function missing(): never {
  throw new Error("not asked in this test");
}

test("a local file whose content the store refuses is not opened", async () => {
  const put: BlobStore["put"] = () => Promise.reject(new AppError("unavailable", "The disk is full."));
  const tenant = async (name: string) => {
    const store = await engine.tenant(name);
    return { ...store, blobs: new Mortality(Infinity, false).mortal(store.blobs, { put }) };
  };
  const stores = { system: () => engine.system(), tenant };
  const refusing = new FileService({ stores, objects, runtime, controllers: ALONE });
  // An open of a file that is not there would be an error of the stream, which ends the process.
  const written = refusing.write(admin, user("refused"), { file: "/none/such" });
  await expect(written).rejects.toMatchObject({ code: "unavailable" });
  await refusing.close();
});
