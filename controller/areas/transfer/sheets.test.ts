import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openPromise } from "yauzl";
import { zipOf } from "../../../test/helpers/runs/archives.ts";
import { ClassTreeGenerator } from "../../../test/helpers/mql/class-trees.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { TestTransfer } from "../../../test/helpers/objects/transfer.ts";
import { SHEET_CELL_MAX_CHARACTERS } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import { workbookUpload } from "./import.ts";
import type { ExportRequest } from "./types.ts";

const admin = testPrincipal();

let engine: TestEngine;
let transfer: TestTransfer;
beforeAll(async () => {
  engine = await openTestEngine();
  transfer = new TestTransfer(engine);
});
afterAll(async () => {
  await transfer.close();
  await engine[Symbol.asyncDispose]();
});

async function workbook(request: ExportRequest): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of await transfer.exports.workbook(admin, request)) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function take(bytes: Buffer) {
  const path = join(engine.dir, "upload.xlsx");
  await writeFile(path, bytes);
  return transfer.imports.import(admin, workbookUpload({ path, filename: "upload.xlsx" }));
}

/** All parts of a workbook as one text. */
async function unpacked(file: Buffer): Promise<string> {
  const path = join(engine.dir, "unpacked.xlsx");
  await writeFile(path, file);
  const zip = await openPromise(path, { autoClose: false });
  let all = "";
  for await (const entry of zip.eachEntry())
    for await (const piece of (await zip.openReadStreamPromise(entry)) as AsyncIterable<Buffer>)
      all += piece.toString();
  zip.close();
  return all;
}

test.each(onCluster ? [{ seed: 5 }] : [{ seed: 5 }, { seed: 6 }])(
  "random classes and objects come back through a spreadsheet (%j)",
  async ({ seed }) => {
    const root = `/matrix/sheet_${seed}`;
    const request = { class: `${root}/`, relations: true };
    await transfer.objects.createEdgeType(admin, { name: `next_${seed}`, remedy: "" });
    const classes = new ClassTreeGenerator(seededRandom(seed)).tree(root, 8);
    for (const { spec, rows } of classes) {
      await transfer.objects.createClass(admin, spec);
      const [id] = await transfer.objects.unrestricted.insert(admin, spec.path, rows);
      await transfer.objects.unrestricted.insert(admin, spec.path, [{ id: id ?? "", [`next_${seed}`]: [id ?? ""] }]);
    }
    const [before, script] = [await workbook(request), await transfer.script(admin, request)];
    for (const { spec } of [...classes].reverse()) {
      await transfer.query.rows(admin, `delete from ${spec.path}`);
      await transfer.objects.dropClass(admin, spec.path);
    }
    await take(before);
    expect(await transfer.script(admin, request)).toBe(script);
    expect((await workbook(request)).equals(before)).toBe(true);
  },
);

test("a template is a class without objects, and is taken in as one", async () => {
  await transfer.query.rows(
    admin,
    "create class /matrix/plain (host varchar 'The host', size int, keys(host), index(size)) with ttl=1 day; insert into /matrix/plain host='a'",
  );
  const template = await workbook({ class: "/matrix/plain", limit: 0 });
  const script = await transfer.script(admin, { class: "/matrix/plain", limit: 0 });
  await transfer.query.rows(admin, "delete from /matrix/plain; drop class /matrix/plain");
  expect(await take(template)).toMatchObject({ state: "done", total: 1 });
  expect(await transfer.script(admin, { class: "/matrix/plain" })).toBe(script);
});

/** A workbook of one sheet `s` as spreadsheet programs save it. `parts` replaces parts of the file by name. */
async function saved(rows: string, parts: Readonly<Record<string, string>> = {}): Promise<Buffer> {
  const all = {
    "xl/workbook.xml":
      '<?xml version="1.0"?><x:workbook xmlns:x="m" xmlns:r="o"><!-- a note --><x:sheets><x:sheet name="s" sheetId="7" r:id="rId9"/></x:sheets></x:workbook>',
    "xl/_rels/workbook.xml.rels":
      '<Relationships><Relationship Id="rId9" Type="t" Target="/xl/worksheets/a.xml"/></Relationships>',
    "xl/worksheets/a.xml": `<worksheet><sheetData>${rows}</sheetData></worksheet>`,
    ...parts,
  };
  return zipOf(Object.entries(all).map(([name, content]) => ({ name, content })));
}

function row(number: number, ...cells: readonly (string | undefined)[]): string {
  const texts = cells.map((text, at) =>
    text === undefined ? "" : `<c r="${String.fromCharCode(65 + at)}${number}" t="str"><v>${text}</v></c>`,
  );
  return `<row r="${number}">${texts.join("")}</row>`;
}

const HEAD =
  row(1, "class", "/matrix/office") +
  row(2, "keys", "host") +
  row(3, "name", "host", "seen", "up", "size") +
  row(4, "type", "varchar", "timestamp", "boolean", "int");

test("what spreadsheet programs make of it is understood: shared and rich texts, days, truths, styles, empty cells", async () => {
  const cells =
    '<c r="B5" t="s"><v>1</v></c><c r="C5" s="4"><v>45292.5</v></c><c r="D5" t="b"><v>1</v></c><c r="E5" s="2"/>';
  const texts =
    '<sst><si><t>unused</t></si><si><r><t xml:space="preserve">rich </t></r><r><t>&amp; &#x4e3b;</t></r><rPh sb="0" eb="1"><t>spoken</t></rPh></si></sst>';
  await take(
    await saved(`${HEAD}<row r="5" spans="1:5">${cells}</row>${row(9, undefined, "_x000D_", "2024-01-01 00:00:00")}`, {
      "xl/sharedStrings.xml": texts,
    }),
  );
  expect(await transfer.query.rows(admin, "select host, seen, up, size from /matrix/office order by host")).toEqual([
    { host: "\r", seen: Date.UTC(2024, 0, 1), up: null, size: null },
    { host: "rich & 主", seen: Date.UTC(2024, 0, 1, 12), up: true, size: null },
  ]);
});

test.each([
  [
    "a value of another type",
    HEAD + row(5, undefined, "a", undefined, undefined, "many"),
    'sheet s cell E5: [Format] column size: "many" is no int.',
  ],
  [
    "a missing key",
    HEAD + row(5, undefined, undefined, undefined, "true"),
    "sheet s cell B5: [Valid] class /matrix/office: the key column host is not set.",
  ],
  [
    "a formula",
    `${HEAD}<row r="5"><c r="B5"><f>1+1</f><v>2</v></c></row>`,
    "sheet s cell B5: [Format] a formula is not taken in",
  ],
  [
    "an error as value",
    `${HEAD}<row r="5"><c r="B5" t="e"><v>#REF!</v></c></row>`,
    "sheet s cell B5: [Format] the error #REF! is no value.",
  ],
  [
    "a value below no column",
    HEAD + row(5, undefined, "a", undefined, undefined, "1", "stray"),
    "sheet s cell F5: [Format] it stands below no column of the class.",
  ],
  [
    "another head",
    row(1, "class", "/matrix/office") + row(2, "colour", "red"),
    'sheet s cell A2: [Format] it says "colour" where one of class, keys',
  ],
  [
    "no such type",
    row(1, "class", "/matrix/office") + row(2, "name", "a") + row(3, "type", "varchar); drop class /x"),
    "sheet s cell B3: ",
  ],
  [
    "no path",
    row(1, "class", "/matrix/a;drop") + row(2, "type"),
    'sheet s cell B1: [Format] it "/matrix/a;drop" is no class path.',
  ],
  ["rows out of order", row(2, "class") + row(1, "keys"), "the numbers of the rows are not in order"],
  [
    "a document type",
    "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>",
    "has a document type, which is refused",
  ],
  ["an unknown entity", `${HEAD}<row r="5"><c r="B5" t="str"><v>&b;</v></c></row>`, "is no XML"],
  ["half a tag", `${HEAD}<row r="5"`, "is no XML"],
  ["half a row", `${HEAD}<row r="5">`, "is no XML"],
])("%s is refused with its place", async (_what, rows, message) => {
  await expect(take(await saved(rows))).rejects.toMatchObject({
    code: expect.stringMatching(/^(invalid|syntax)$/) as string,
    message: expect.stringContaining(message) as string,
  });
});

test("what is no spreadsheet, or unpacks to far too much, is refused before it is read", async () => {
  await expect(take(Buffer.from("no zip"))).rejects.toMatchObject({
    code: "invalid",
    message: expect.stringContaining("is no spreadsheet that can be read") as string,
  });
  await expect(take(await zipOf([{ name: "a.txt", content: "a" }]))).rejects.toThrow(
    "has no part xl/_rels/workbook.xml.rels",
  );
  await expect(take(await saved(" ".repeat(20 * 1024 * 1024)))).rejects.toMatchObject({ code: "too_large" });
});

test("empty text, no value and texts of quotes alone stay apart, also in a program that drops empty cells", async () => {
  await transfer.query.rows(
    admin,
    `create class /matrix/blank (host varchar, note text, marks list<varchar>, keys(host));
     insert into /matrix/blank (host, note, marks) values ('a', '', []), ('b', null, null), ('c', '""', ['']), ('d', '"', null), ('e', '"""', null)`,
  );
  const request = { class: "/matrix/blank" };
  const [file, script] = [await workbook(request), await transfer.script(admin, request)];
  await transfer.query.rows(admin, "delete from /matrix/blank; drop class /matrix/blank");
  expect(await unpacked(file)).not.toMatch(/<t [^>]*><\/t>/);
  await take(file);
  expect(await transfer.script(admin, request)).toBe(script);
});

test("numbers that a spreadsheet program would round are texts, and come back exactly", async () => {
  await transfer.query.rows(
    admin,
    `create class /matrix/exact (n bigint, v varint, d double, keys(n));
     insert into /matrix/exact (n, v, d) values (999999999999999, 1, 0.30000000000000004), (1000000000000001, 9007199254740993, 1e308),
       (9007199254740991, -9007199254740993, 1e15), (-9223372036854775808, 1, 5e-324), (9223372036854775807, 1, '-0')`,
  );
  const request = { class: "/matrix/exact" };
  const [file, rows] = [await workbook(request), await transfer.query.rows(admin, "select * from /matrix/exact")];
  const numbers = [...(await unpacked(file)).matchAll(/<v>([^<]*)<\/v>/g)].map(([, text = ""]) => text);
  expect(numbers.filter((text) => /^-?\d{16,}$/.test(text))).toEqual([]);
  expect(numbers).toContain("999999999999999");
  await transfer.query.rows(admin, "delete from /matrix/exact");
  await take(file);
  const kept = ({ n, v, d }: Row) => ({ n, v, d });
  expect((await transfer.query.rows(admin, "select * from /matrix/exact")).map(kept)).toEqual(rows.map(kept));
});

test("a text that fits no cell is refused by its object, never written into a file that programs call damaged", async () => {
  const request = { class: "/matrix/long" };
  const longest = "x".repeat(SHEET_CELL_MAX_CHARACTERS);
  const insert = (text: string) =>
    transfer.query.rows(admin, "insert into /matrix/long (host, note) values ('a', ?)", [text]);
  await transfer.query.rows(admin, "create class /matrix/long (host varchar, note text, keys(host))");
  await insert(longest);
  const file = await workbook(request);
  await insert(`${longest}x`);
  await expect(workbook(request)).rejects.toMatchObject({
    code: "too_large",
    message: expect.stringContaining(
      "long:a has a text of more than the 32767 characters of a cell (column D)",
    ) as string,
    details: { limit: "SHEET_CELL_MAX_CHARACTERS" },
  });
  await take(file);
  expect(await transfer.query.rows(admin, "select note from /matrix/long")).toEqual([{ note: longest }]);
});

test.each([
  ["1900", "", { first: "1900-01-01", last: "1900-02-28", march: "1900-03-01", later: "2024-01-01" }],
  ["1904", ' date1904="1"', { first: "1904-01-02", last: "1904-02-29", march: "1904-03-02", later: "2028-01-02" }],
])("days are counted by the calendar of the workbook (%s)", async (year, property, days) => {
  const cells = [1, 59, 61, 45_292].map(
    (day, at) =>
      `<row r="${5 + at}"><c r="B${5 + at}" t="str"><v>${day}</v></c><c r="C${5 + at}"><v>${day}</v></c></row>`,
  );
  const book = `<workbook><workbookPr${property}/><sheets><sheet name="s" sheetId="1" r:id="rId9"/></sheets></workbook>`;
  const head =
    row(1, "class", `/matrix/days_${year}`) +
    row(2, "keys", "n") +
    row(3, "name", "n", "seen") +
    row(4, "type", "int", "date");
  await take(await saved(head + cells.join(""), { "xl/workbook.xml": book }));
  const found = await transfer.query.rows(admin, `select seen from /matrix/days_${year} order by n`);
  expect(found.map(({ seen }) => seen)).toEqual(Object.values(days));
});

test("the day that only the calendar of 1900 has is no day", async () => {
  const day = '<row r="5"><c r="B5" t="str"><v>a</v></c><c r="C5"><v>60</v></c></row>';
  await expect(take(await saved(HEAD + day))).rejects.toThrow(
    'sheet s cell C5: [Format] column seen: "60" is no timestamp.',
  );
});
