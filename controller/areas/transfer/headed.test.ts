import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  IMPORT_FAULTS_MAX,
  IMPORT_PLAN_SHOWN_MAX,
  SHEET_HEADING_MAX_CHARACTERS,
  SHEET_ROW_MAX_CHARACTERS,
} from "../../../common/limits.ts";
import { zipOf } from "../../../test/helpers/archives.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engine.ts";
import { testPrincipal } from "../../../test/helpers/runtime.ts";
import { TestTransfer } from "../../../test/helpers/transfer.ts";
import type { Principal } from "../permissions/index.ts";
import type { SheetRequest } from "./headed/index.ts";

const admin = testPrincipal();
const CLASS = "/matrix/server";

let engine: TestEngine;
let transfer: TestTransfer;
beforeAll(async () => {
  engine = await openTestEngine();
  transfer = new TestTransfer(engine);
  await transfer.objects.createEdgeType(admin, { name: "runs_on", remedy: "" });
  await transfer.query.rows(
    admin,
    `create class ${CLASS} (host varchar 'Name of the host', rack_no int, note text, big bigint, ratio double, seen timestamp, bought date,
       up boolean, ports list<bigint>, marks map<varchar,varchar>, keys(host))`,
  );
});
afterAll(async () => {
  await transfer.close();
  await engine[Symbol.asyncDispose]();
});

type Asked = Partial<SheetRequest> & { readonly who?: Principal };

async function take(content: string | Uint8Array, { who = admin, ...request }: Asked = {}) {
  const path = join(engine.dir, "own.csv");
  await writeFile(path, content);
  return transfer.imports.sheet(who, { path, filename: "own.csv" }, { class: CLASS, ...request });
}

async function found(columns: string) {
  return transfer.query.rows(admin, `select ${columns} from ${CLASS} order by host`);
}

async function emptied(): Promise<void> {
  await transfer.query.rows(admin, `delete from ${CLASS}`);
}

/** The message that refuses a file, and that nothing of the file was written. */
async function refusal(content: string | Uint8Array, asked: Asked = {}): Promise<string> {
  await emptied();
  const error = await take(content, asked).then(
    () => "nothing",
    (thrown: unknown) => (thrown as Error).message,
  );
  expect(await found("host")).toEqual([]);
  return error;
}

describe("headings", () => {
  test("are taken for columns by name or title, whatever their case, spaces, _ and -", async () => {
    await emptied();
    const report = await take("NAME-OF_the host,Rack No,Big\na,7,1\n");
    expect(report).toMatchObject({
      state: "done",
      total: 1,
      delimiter: ",",
      encoding: "utf-8",
      columns: [
        { heading: "NAME-OF_the host", column: "host", type: "varchar" },
        { heading: "Rack No", column: "rack_no", type: "int" },
        { heading: "Big", column: "big", type: "bigint" },
      ],
    });
    expect(await found("host, rack_no, big")).toEqual([{ host: "a", rack_no: 7, big: 1 }]);
  });

  test("are mapped by the request, to nothing as well", async () => {
    await emptied();
    const columns = { Computer: "host", Remark: "", Owner: null };
    expect(await take("Computer,Remark,Owner\na,b,c\n", { columns })).toMatchObject({
      columns: [
        { heading: "Computer", column: "host" },
        { heading: "Remark", column: "" },
        { heading: "Owner", column: "" },
      ],
    });
    expect(await found("host, note")).toEqual([{ host: "a", note: null }]);
  });

  test("that are wrong are told together, with the nearest column", async () => {
    const columns = { Bigg: "bik", Nothere: "host" };
    expect(await refusal("hots,host,host,Bigg,vtime\n1,2,3,4,5\n", { columns })).toBe(
      [
        '[Valid] columns= names the heading "Nothere", which the file does not have.',
        `[Valid] heading "hots" is no column of ${CLASS}; did you mean host? (say by columns= which column it is, or "" to leave it out)`,
        '[Valid] heading "host" is in the heading line twice.',
        `[Valid] heading "Bigg" is mapped to "bik", which ${CLASS} does not have; did you mean big?`,
        '[Valid] heading "vtime" names what the platform keeps itself: say by columns= which column it is, or "" to leave it out.',
        "Nothing was written.",
      ].join("\n"),
    );
  });

  test("have to cover the keys, and one column once", async () => {
    expect(await refusal("note\nx\n")).toContain(`[Valid] No heading stands for host, a key of ${CLASS}.`);
    expect(await refusal("host,HOST\na,b\n", { columns: { HOST: "host" } })).toContain(
      '[Valid] headings "host" and "HOST" both stand for host.',
    );
    expect(await refusal("host,x\na,b\n", { columns: { host: "", x: "" } })).toContain(
      "No heading stands for a column.",
    );
  });

  test("of any number and length are told up to the bound, and so are mappings", async () => {
    const many = Array.from({ length: 16_000 }, (_, at) => `heading_${at}`);
    const columns = Object.fromEntries(many.map((heading) => [`${heading}_x`, "host"]));
    await expect(take(`${many.join(",")}\n`, { columns })).rejects.toMatchObject({
      details: {
        limit: "IMPORT_FAULTS_MAX",
        faults: expect.objectContaining({ length: IMPORT_FAULTS_MAX }) as unknown,
      },
    });
    await expect(take(`${many.join(",")}\n`)).rejects.toMatchObject({ details: { limit: "IMPORT_FAULTS_MAX" } });
    await expect(take(`${"x".repeat(SHEET_HEADING_MAX_CHARACTERS + 1)}\n`)).rejects.toThrow(
      /^\[Valid\] heading "x{80}…" has more than 1000 characters\.$/m,
    );
    await expect(take(`host,${many.map(() => "").join(",")}\n`)).rejects.toThrow("no row below its heading line");
  });

  test("that fit two columns are told, not chosen", async () => {
    await transfer.query.rows(admin, "create class /matrix/twins (a_b int, ab int)");
    await expect(take("A-B\n1\n", { class: "/matrix/twins" })).rejects.toThrow('heading "A-B" may be a_b or ab');
    await take("ab\n1\n", { class: "/matrix/twins" });
    expect(await transfer.query.rows(admin, "select a_b, ab from /matrix/twins")).toEqual([{ a_b: null, ab: 1 }]);
  });

  test("of hidden columns are unknown", async () => {
    const bob = { ...testPrincipal(), data: [{ class: CLASS, access: "write" as const, hidden: ["note"] }] };
    const refused = await refusal("host,note\na,b\n", { who: bob });
    expect(refused).toContain(`heading "note" is no column of ${CLASS}`);
    const nora = { ...testPrincipal(), data: [{ class: CLASS, access: "write" as const, hidden: ["host"] }] };
    expect(await refusal("note\na\n", { who: nora })).toContain(`No heading stands for a hidden key of ${CLASS}: name`);
  });
});

describe("values", () => {
  test("of each type are stored as they are written", async () => {
    await emptied();
    await take(
      [
        "host,big,ratio,seen,bought,up,ports,marks,note",
        'a,9223372036854775807,-0,2026-01-31T12:00:00+02:00,2026-01-31,TRUE,"[9007199254740993,null]","{""a"":""b""}","line 1',
        'line 2, ""quoted"""',
        "b,-9223372036854775808,1e308,0001-01-01,9999-12-31,0,[],{}, =1+1 ",
      ].join("\r\n"),
    );
    expect(await found("big, ratio, seen, bought, up, ports, marks, note")).toEqual([
      {
        big: "9223372036854775807",
        ratio: -0,
        seen: Date.UTC(2026, 0, 31, 10),
        bought: "2026-01-31",
        up: true,
        ports: ["9007199254740993", null],
        marks: { a: "b" },
        note: 'line 1\r\nline 2, "quoted"',
      },
      {
        big: "-9223372036854775808",
        ratio: 1e308,
        seen: -62_135_596_800_000,
        bought: "9999-12-31",
        up: false,
        ports: [],
        marks: {},
        note: " =1+1 ",
      },
    ]);
  });

  test("that are empty texts and those that are none stay apart; none clears the column", async () => {
    await emptied();
    await take('host,note,big\na,"",1\nb,,1\nc,x,1\n');
    expect(await found("note, big")).toEqual([
      { note: "", big: 1 },
      { note: null, big: 1 },
      { note: "x", big: 1 },
    ]);
    await take("host,note\nc,\n");
    expect((await found("note, big")).at(-1)).toEqual({ note: null, big: 1 });
  });

  test("that are empty in quotes are none where text is not the type", async () => {
    await emptied();
    await take('"host","big","ports","seen","note"\n"a","","","",""\n');
    expect(await found("big, ports, seen, note")).toEqual([{ big: null, ports: null, seen: null, note: "" }]);
  });

  test("of an id make keys unnecessary", async () => {
    await emptied();
    await take("host,note\na,x\n");
    await take("id,big\nserver:a,5\n");
    expect(await found("host, note, big")).toEqual([{ host: "a", note: "x", big: 5 }]);
  });

  test.each([
    ["rack_no", "many", '"many" is no int'],
    ["rack_no", "2147483648", '"2147483648" is no int'],
    ["big", "9223372036854775808", '"9223372036854775808" is no bigint'],
    ["big", "1.5", '"1.5" is no bigint'],
    ["ratio", "9007199254740993", '"9007199254740993" is no number that a double holds'],
    ["ratio", "1e-400", '"1e-400" is no number that a double holds'],
    ["ratio", "1e400", '"1e400" is no double'],
    ["ratio", '"1,5"', '"1,5" is no double'],
    ["seen", "1700000000", '"1700000000" is no time in ISO 8601, as 2026-01-31T12:00:00Z'],
    ["seen", "31.1.2026", '"31.1.2026" is no timestamp'],
    ["bought", "2026-02-30", '"2026-02-30" is no date'],
    ["up", "yes", '"yes" is no boolean'],
    ["ports", "80", '"80" is no list as JSON, as ["a","b"]'],
    ["ports", "[80", '"[80" is no JSON'],
    ["ports", '"[1.5]"', "[1.5] is no list<bigint>"],
    ["marks", "[]", '"[]" is no map as JSON, as {"a":1}'],
  ])("of %s are refused with their row, column and reason (%s)", async (column, value, reason) => {
    expect(await refusal(`host,${column}\nfine,\nwrong,${value}\n`)).toBe(
      `row 3 column ${JSON.stringify(column)}: [Format] column ${column}: ${reason}.\nNothing was written.`,
    );
  });

  test("that are wrong are told together, several of a row as well, up to a bound", async () => {
    const refused = take("host,rack_no,up\na,x,y\nb,1,2\nc,3,true\n");
    await expect(refused).rejects.toMatchObject({
      code: "invalid",
      details: {
        faults: [
          'row 2 column "rack_no": [Format] column rack_no: "x" is no int.',
          'row 2 column "up": [Format] column up: "y" is no boolean.',
          'row 3 column "up": [Format] column up: "2" is no boolean.',
        ],
      },
    });
    const many = Array.from({ length: IMPORT_FAULTS_MAX + 5 }, (_, at) => `h${at},x,y,z`).join("\n");
    const bounded = await take(`host,rack_no,up,big\n${many}`).catch(
      (error: unknown) => error as { readonly details: { faults: unknown[] } },
    );
    expect(bounded).toMatchObject({ details: { limit: "IMPORT_FAULTS_MAX" } });
    expect("details" in bounded && bounded.details.faults).toHaveLength(IMPORT_FAULTS_MAX);
  });

  test("of an id and of an edge type are taken; what leads nowhere is refused", async () => {
    await emptied();
    await take(
      'ID,host,runs_on\nserver:base,base,\nserver:top,top,"[""server:base""]"\nserver:side,side,server:base\n',
    );
    expect(await found("id")).toEqual([{ id: "server:base" }, { id: "server:side" }, { id: "server:top" }]);
    expect(await transfer.script(admin, { class: CLASS })).toContain("runs_on = ['server:base']");
    expect(await refusal("host,runs_on\na,none:1\n")).toContain("row 2: [NotExist] Not Found Class For ID none:1");
  });
});

describe("rows", () => {
  test.each([
    ["a row with too few values", "host,note\na\n", "row 2: [Format] it has 1 value where the heading line has 2."],
    ["a row with too many", "host,note\na,b,c\n", "row 2: [Format] it has 3 values where the heading line has 2."],
    ["a value below no heading", "host,\na,b\n", "row 2 value 2: [Format] it stands below no heading."],
    [
      "a missing key",
      "host,note\n,b\n",
      `row 2 column "host": [Valid] class ${CLASS}: the key column host is not set.`,
    ],
    ["the same object twice", "host\na\nb\na\n", "row 4: [Valid] it is the same object as row 2: server:a."],
    ["open quotes", 'host,note\na,"x\n\n', "row 2: [Format] value 2: its quotes are not closed."],
    ["text behind quotes", 'host,note\na,"x"y\nb,c\n', "row 2: [Format] value 2: text follows its closing quote"],
    [
      "a fault behind a value of several lines",
      'host,rack_no,note\na,1,"x\ny"\nb,z,\n',
      'row 3 (line 4) column "rack_no": ',
    ],
    ["no heading line", "\n\n", "[Format] The file has no heading line."],
    ["no row", "host\n", "[Format] The file has no row below its heading line."],
    [
      "a row without an end",
      `host,note\na,"${"x".repeat(SHEET_ROW_MAX_CHARACTERS)}`,
      "row 2: [Format] it has more than 4194304 characters",
    ],
  ])("%s is refused", async (_what, content, message) => {
    expect(await refusal(content)).toContain(message);
  });

  test("that are empty, and columns without a heading that are, are passed over", async () => {
    await emptied();
    await take("\n\nhost,,\r\n\r\na,,\r,,\nb,,");
    expect(await found("host")).toEqual([{ host: "a" }, { host: "b" }]);
  });

  test("are read the same however the file comes in pieces", async () => {
    await emptied();
    const note = 'é"\r\n,'.repeat(20_000);
    const path =
      "host,note\r\n" + ["a", "b", "c"].map((host) => `${host},"${note.replaceAll('"', '""')}"\r\n`).join("");
    await take(path);
    expect((await found("note")).map((row) => row["note"] === note)).toEqual([true, true, true]);
  });
});

describe("delimiters and encodings", () => {
  test.each([
    ["semicolons", 'host;"a, note, with, commas"\na;x\n', {}, ";"],
    ["tabs", "host\tnote\na\tx\n", { columns: {} }, "tab"],
    ["one column", "host\na\n", {}, ","],
    ["another character", "host|note\na|x\n", { delimiter: "|" }, "|"],
    ["the word tab", "host\tnote;x\na\tx\n", { delimiter: "tab", columns: { "note;x": "" } }, "tab"],
  ])("%s are found or named", async (_what, content, asked, delimiter) => {
    await emptied();
    const columns = { ...(content.includes("commas") && { "a, note, with, commas": "note" }) };
    expect(await take(content, { columns, ...asked })).toMatchObject({ delimiter });
    expect(await found("host")).toEqual([{ host: "a" }]);
  });

  test("a heading line that leaves it open is refused, and so is a name of no delimiter", async () => {
    expect(await refusal("host;note,big\na;b,1\n")).toContain("has , as often as ;: say by delimiter=");
    expect(await refusal("host\na\n", { delimiter: "::" })).toContain('delimiter="::": it is one character');
  });

  test("marks are passed over, and other encodings are read by name", async () => {
    const text = "host,note\n主机,žlutý\n";
    for (const [content, encoding] of [
      [Buffer.from(`\ufeff${text}`), undefined],
      [Buffer.from(`\ufeff${text}`, "utf16le"), "utf-16le"],
      [Buffer.from(text, "utf16le"), "utf-16le"],
    ] as const) {
      await emptied();
      await take(content, { encoding });
      expect(await found("host, note")).toEqual([{ host: "主机", note: "žlutý" }]);
    }
    await emptied();
    await take(Buffer.from("host,note\na,\x80 \xe9\n", "latin1"), { encoding: "cp1252" });
    expect(await found("note")).toEqual([{ note: "€ é" }]);
  });

  test("bytes that are no text are refused by name, never replaced", async () => {
    expect(await refusal(Buffer.from("host,note\na,\xe9\n", "latin1"))).toContain(
      "is no utf-8 text after its first 0 bytes: name its encoding by encoding=",
    );
    expect(await refusal(Buffer.from("\ufeffhost\na\n", "utf16le"))).toContain(
      "begins with the mark of utf-16le, and is read as utf-8: name it by encoding=utf-16le.",
    );
    expect(await refusal(Buffer.from("host\na\n", "utf16le"))).toContain("name the encoding of the file");
    expect(await refusal("\ufeffhost\na\n", { encoding: "gbk" })).toContain("name it by encoding=utf-8.");
    expect(await refusal("host\na\n", { encoding: "utf-9" })).toContain('encoding="utf-9": there is none of that name');
  });
});

describe("a plan", () => {
  test("tells the mapping and what would be done, and writes nothing", async () => {
    await emptied();
    await take("host,big\na,1\n");
    const sheet = "host,big\nb,2\na,3\n";
    expect(await take(sheet, { plan: true })).toEqual({
      id: "",
      state: "planned",
      total: 2,
      done: 0,
      message: "",
      delimiter: ",",
      encoding: "utf-8",
      columns: [
        { heading: "host", column: "host", type: "varchar" },
        { heading: "big", column: "big", type: "bigint" },
      ],
      created: 1,
      updated: 1,
      changes: [
        { row: 2, id: "server:b", action: "create" },
        { row: 3, id: "server:a", action: "update" },
      ],
    });
    expect(await found("host, big")).toEqual([{ host: "a", big: 1 }]);
    expect(
      await transfer.query.rows(admin, "select count(*) from /matrix/system/transfer where state = 'running'"),
    ).toEqual([{ count: 0 }]);
    await take(sheet);
    expect(await found("host, big")).toEqual([
      { host: "a", big: 3 },
      { host: "b", big: 2 },
    ]);
  });

  test("counts all rows and tells the first ones", async () => {
    await emptied();
    const rows = Array.from({ length: IMPORT_PLAN_SHOWN_MAX + 10 }, (_, at) => `h${at}`);
    await take("host\nh0\nh1005\n");
    const { created, updated, changes } = await take(["host", ...rows].join("\n"), { plan: true });
    expect([created, updated, changes?.length]).toEqual([rows.length - 2, 2, IMPORT_PLAN_SHOWN_MAX]);
    expect(changes?.slice(0, 2)).toEqual([
      { row: 2, id: "server:h0", action: "update" },
      { row: 3, id: "server:h1", action: "create" },
    ]);
  });

  test("of objects that get their ids when they are written tells no ids", async () => {
    await transfer.query.rows(admin, "create class /matrix/loose (n int)");
    expect(await take("n\n1\n1\n", { class: "/matrix/loose", plan: true })).toMatchObject({
      created: 2,
      updated: 0,
      changes: [
        { row: 2, action: "create" },
        { row: 3, action: "create" },
      ],
    });
  });

  test("is refused for what the import would be refused for", async () => {
    expect(await refusal("host,big\na,x\n", { plan: true })).toContain('row 2 column "big"');
    await expect(take("host\na\n", { plan: true, who: testPrincipal("viewer") })).rejects.toMatchObject({
      code: "denied",
    });
  });
});

test("classes that are not there, hidden or the platform's take no sheet", async () => {
  await expect(take("host\na\n", { class: "/matrix/sever" })).rejects.toMatchObject({
    code: "not_found",
    message: "[NotExist] class : /matrix/sever not find ! did you mean /matrix/server?",
  });
  await expect(take("name\na\n", { class: "/matrix/system/transfer" })).rejects.toMatchObject({ code: "unsupported" });
  const bob = { ...testPrincipal(), data: [{ class: CLASS, access: "read" as const }] };
  await expect(take("host\na\n", { who: bob })).rejects.toMatchObject({ code: "denied" });
});

/** A workbook with sheets of these rows; `Other` is an empty one. */
function workbook(sheets: Readonly<Record<string, string>>, property = ""): Promise<Buffer> {
  const names = Object.keys(sheets);
  const part = (at: number) => `xl/worksheets/${at}.xml`;
  const of = (text: (name: string, at: number) => string): string => names.map(text).join("");
  return zipOf([
    {
      name: "xl/workbook.xml",
      content: `<workbook><workbookPr${property}/><sheets>${of((name, at) => `<sheet name="${name}" r:id="r${at}"/>`)}</sheets></workbook>`,
    },
    {
      name: "xl/_rels/workbook.xml.rels",
      content: `<Relationships>${of((_, at) => `<Relationship Id="r${at}" Target="/${part(at)}"/>`)}</Relationships>`,
    },
    {
      name: "xl/styles.xml",
      content:
        '<styleSheet><numFmts><numFmt numFmtId="164" formatCode="[$-409]d/m/yy\\ h:mm"/><numFmt numFmtId="165" formatCode="0.00&quot; days&quot;"/></numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs></styleSheet>',
    },
    { name: "xl/sharedStrings.xml", content: "<sst><si><t>host</t></si><si><t>shared</t></si></sst>" },
    ...Object.values(sheets).map((rows, at) => ({
      name: part(at),
      content: `<worksheet><sheetData>${rows}</sheetData></worksheet>`,
    })),
  ]);
}

function cells(number: number, ...contents: readonly string[]): string {
  const made = contents.map((content, at) => {
    const place = `${String.fromCharCode(65 + at)}${number}`;
    return content.startsWith("<")
      ? content.replace("<c", `<c r="${place}"`)
      : `<c r="${place}" t="str"><v>${content}</v></c>`;
  });
  return `<row r="${number}">${made.join("")}</row>`;
}

describe("a workbook", () => {
  const head = cells(1, '<c t="s"><v>0</v></c>', "big", "seen", "bought", "note", "up", "ratio");

  test("is read with its types: numbers, times by their format, texts, truths, empty texts", async () => {
    await emptied();
    const file = await workbook({
      Own:
        head +
        cells(
          2,
          '<c t="s"><v>1</v></c>',
          "9223372036854775807",
          '<c s="2"><v>45292.5</v></c>',
          '<c s="1"><v>45292</v></c>',
          "<c><v>1.1000000000000001</v></c>",
          '<c t="b"><v>1</v></c>',
          '<c s="3"><v>0.5</v></c>',
        ) +
        cells(
          4,
          "second",
          "<c><v>-999999999999999</v></c>",
          "2026-01-31 12:00",
          "2026-01-31",
          '<c s="1"><v>45292</v></c>',
          "false",
          "<c><v>1E+300</v></c>",
        ) +
        cells(5, "third", "<c/>", "<c/>", "<c/>", '""'),
      Empty: "",
    });
    expect(await take(file)).toMatchObject({ sheet: "Own", total: 3 });
    expect(await found("host, big, seen, bought, note, up, ratio")).toEqual([
      {
        host: "second",
        big: -999_999_999_999_999,
        seen: Date.UTC(2026, 0, 31, 12),
        bought: "2026-01-31",
        note: "2024-01-01",
        up: false,
        ratio: 1e300,
      },
      {
        host: "shared",
        big: "9223372036854775807",
        seen: Date.UTC(2024, 0, 1, 12),
        bought: "2024-01-01",
        note: "1.1",
        up: true,
        ratio: 0.5,
      },
      { host: "third", big: null, seen: null, bought: null, note: "", up: null, ratio: null },
    ]);
  });

  test("counts days by its calendar", async () => {
    await emptied();
    await take(
      await workbook({ Own: cells(1, "host", "bought") + cells(2, "a", '<c s="1"><v>0</v></c>') }, ' date1904="true"'),
    );
    expect(await found("bought")).toEqual([{ bought: "1904-01-01" }]);
  });

  test("has its faults told by sheet and cell, formulas, errors and rounded numbers among them", async () => {
    const file = await workbook({
      Own:
        head +
        cells(
          2,
          "a",
          "<c><v>1000000000000000</v></c>",
          "<c><v>45292</v></c>",
          '<c s="1"><v>60</v></c>',
          "<c><f>1+1</f><v>2</v></c>",
          '<c t="e"><v>#REF!</v></c>',
          "x",
        ) +
        cells(3, "b", "", "", "", "", "", "", "stray"),
    });
    expect((await refusal(file)).split("\n")).toEqual([
      'sheet Own cell B2: [Format] column big: "1000000000000000" is a number of more than 15 digits, which spreadsheet programs round: make it a text.',
      'sheet Own cell C2: [Format] column seen: "45292" is a number: give its cell the format of a date, or write it in ISO 8601.',
      "sheet Own cell D2: [Format] it shows a time that is on no day.",
      "sheet Own cell E2: [Format] a formula is not taken in: put its value there.",
      "sheet Own cell F2: [Format] the error #REF! is no value.",
      'sheet Own cell G2: [Format] column ratio: "x" is no double.',
      "sheet Own row 3: [Format] it has 8 values where the heading line has 7.",
      "Nothing was written.",
    ]);
  });

  test("whose cells share a long text is refused by its row, before that is repeated", async () => {
    const long = "x".repeat(SHEET_ROW_MAX_CHARACTERS / 2);
    const row = cells(2, "a", long, long, long);
    const file = await workbook({ Own: cells(1, "host", "note", "x", "y") + row });
    await expect(take(file, { columns: { x: "", y: "" } })).rejects.toMatchObject({
      code: "too_large",
      message: expect.stringMatching(/^sheet Own cell C2: .* its row has more than 4194304 characters/) as string,
      details: { limit: "SHEET_ROW_MAX_CHARACTERS" },
    });
  });

  test("of several sheets with rows takes the one that is named", async () => {
    const one = (host: string) => cells(1, "host") + cells(2, host);
    const file = await workbook({ Own: one("a"), Other: one("b") });
    expect(await refusal(file)).toContain("Several sheets have rows: name one of Own, Other by sheet=.");
    expect(await refusal(file, { sheet: "Third" })).toContain("sheet=Third: the workbook has Own, Other.");
    expect(await refusal(file, { delimiter: ";" })).toContain("delimiter= is for a CSV file, and this is a workbook.");
    expect(await refusal("host\na\n", { sheet: "Own" })).toContain("sheet= is for a workbook, and this is a CSV file.");
    expect(await refusal(Buffer.from("d0cf11e0a1b11ae1", "hex"))).toContain("form of xls are not read");
    await take(file, { sheet: "Other" });
    expect(await found("host")).toEqual([{ host: "b" }]);
  });
});
