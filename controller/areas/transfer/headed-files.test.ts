import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { IMPORT_PLAN_SHOWN_MAX, SHEET_ROW_MAX_CHARACTERS } from "../../../common/limits.ts";
import { OwnSheets, SERVERS, cells, workbook } from "../../../test/helpers/objects/own-sheets.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";

const admin = testPrincipal();
let sheets: OwnSheets;
beforeAll(async () => {
  sheets = await OwnSheets.open();
});
afterAll(() => sheets[Symbol.asyncDispose]());

describe("delimiters and encodings", () => {
  test.each([
    ["semicolons", 'host;"a, note, with, commas"\na;x\n', {}, ";"],
    ["tabs", "host\tnote\na\tx\n", { columns: {} }, "tab"],
    ["one column", "host\na\n", {}, ","],
    ["another character", "host|note\na|x\n", { delimiter: "|" }, "|"],
    ["the word tab", "host\tnote;x\na\tx\n", { delimiter: "tab", columns: { "note;x": "" } }, "tab"],
  ])("%s are found or named", async (_what, content, asked, delimiter) => {
    await sheets.emptied();
    const columns = { ...(content.includes("commas") && { "a, note, with, commas": "note" }) };
    expect(await sheets.take(content, { columns, ...asked })).toMatchObject({ delimiter });
    expect(await sheets.found("host")).toEqual([{ host: "a" }]);
  });

  test("a heading line that leaves it open is refused, and so is a name of no delimiter", async () => {
    expect(await sheets.refusal("host;note,big\na;b,1\n")).toContain("has , as often as ;: say by delimiter=");
    expect(await sheets.refusal("host\na\n", { delimiter: "::" })).toContain('delimiter="::": it is one character');
  });

  test("marks are passed over, and other encodings are read by name", async () => {
    const text = "host,note\n主机,žlutý\n";
    for (const [content, encoding] of [
      [Buffer.from(`\ufeff${text}`), undefined],
      [Buffer.from(text), ""],
      [Buffer.from(`\ufeff${text}`, "utf16le"), "utf-16le"],
      [Buffer.from(text, "utf16le"), "utf-16le"],
    ] as const) {
      await sheets.emptied();
      await sheets.take(content, { encoding });
      expect(await sheets.found("host, note")).toEqual([{ host: "主机", note: "žlutý" }]);
    }
    await sheets.emptied();
    await sheets.take(Buffer.from("host,note\na,\x80 \xe9\n", "latin1"), { encoding: "cp1252" });
    expect(await sheets.found("note")).toEqual([{ note: "€ é" }]);
  });

  test("bytes that are no text are refused by name, never replaced", async () => {
    expect(await sheets.refusal(Buffer.from("host,note\na,\xe9\n", "latin1"))).toContain(
      "is no utf-8 text at byte 13: name its encoding by encoding=",
    );
    expect(await sheets.refusal(Buffer.from("\ufeffhost\na\n", "utf16le"))).toContain(
      "begins with the mark of utf-16le, and is read as utf-8: name it by encoding=utf-16le.",
    );
    expect(await sheets.refusal(Buffer.from("host\na\n", "utf16le"))).toContain("name the encoding of the file");
    expect(await sheets.refusal("\ufeffhost\na\n", { encoding: "gbk" })).toContain("name it by encoding=utf-8.");
    expect(await sheets.refusal("host\na\n", { encoding: "utf-9" })).toContain(
      'encoding="utf-9" is no encoding that is read here',
    );
  });
});

describe("a plan", () => {
  test("tells the mapping and what would be done, and writes nothing", async () => {
    await sheets.emptied();
    await sheets.take("host,big\na,1\n");
    const sheet = "host,big\nb,2\na,3\n";
    expect(await sheets.take(sheet, { plan: true })).toEqual({
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
    expect(await sheets.found("host, big")).toEqual([{ host: "a", big: 1 }]);
    expect(
      await sheets.transfer.query.rows(admin, "select count(*) from /matrix/system/transfer where state = 'running'"),
    ).toEqual([{ count: 0 }]);
    await sheets.take(sheet);
    expect(await sheets.found("host, big")).toEqual([
      { host: "a", big: 3 },
      { host: "b", big: 2 },
    ]);
  });

  test("counts all rows and tells the first ones", async () => {
    await sheets.emptied();
    const rows = Array.from({ length: IMPORT_PLAN_SHOWN_MAX + 10 }, (_, at) => `h${at}`);
    await sheets.take("host\nh0\nh1005\n");
    const { created, updated, changes } = await sheets.take(["host", ...rows].join("\n"), { plan: true });
    expect([created, updated, changes?.length]).toEqual([rows.length - 2, 2, IMPORT_PLAN_SHOWN_MAX]);
    expect(changes?.slice(0, 2)).toEqual([
      { row: 2, id: "server:h0", action: "update" },
      { row: 3, id: "server:h1", action: "create" },
    ]);
  });

  test("of objects that get their ids when they are written tells no ids", async () => {
    await sheets.transfer.query.rows(admin, "create class /matrix/loose (n int)");
    expect(await sheets.take("n\n1\n1\n", { class: "/matrix/loose", plan: true })).toMatchObject({
      created: 2,
      updated: 0,
      changes: [
        { row: 2, action: "create" },
        { row: 3, action: "create" },
      ],
    });
  });

  test("does not tell whether an object is there that rules hide", async () => {
    await sheets.emptied();
    await sheets.take("host\nseen\nvault\n");
    const who = {
      ...admin,
      data: [{ class: SERVERS, access: "write" as const, where: "host not in ('vault', 'none')" }],
    };
    const told = async (host: string) =>
      sheets.take(`host\nseen\n${host}\n`, { plan: true, who }).then(
        ({ changes = [] }) => changes.map(({ action }) => action),
        (error: Error) => error.message,
      );
    expect(await told("vault")).toBe(await told("none"));
    expect(await told("vault")).toContain("it does not fulfil the row condition");
    expect(await told("new")).toEqual(["update", "create"]);
  });

  test("is refused for what the import would be refused for", async () => {
    expect(await sheets.refusal("host,big\na,x\n", { plan: true })).toContain('row 2 column "big"');
    await expect(sheets.take("host\na\n", { plan: true, who: testPrincipal("viewer") })).rejects.toMatchObject({
      code: "denied",
    });
  });
});

test("classes that are not there, hidden or the platform's take no sheet", async () => {
  await expect(sheets.take("host\na\n", { class: "/matrix/sever" })).rejects.toMatchObject({
    code: "not_found",
    message: "[NotExist] class : /matrix/sever not find ! did you mean /matrix/server?",
  });
  await expect(sheets.take("name\na\n", { class: "/matrix/system/transfer" })).rejects.toMatchObject({
    code: "unsupported",
  });
  const bob = { ...testPrincipal(), data: [{ class: SERVERS, access: "read" as const }] };
  await expect(sheets.take("host\na\n", { who: bob })).rejects.toMatchObject({ code: "denied" });
});

describe("a workbook", () => {
  const head = cells(1, '<c t="s"><v>0</v></c>', "big", "seen", "bought", "note", "up", "ratio");

  test("is read with its types: numbers, times by their format, texts, truths, empty texts", async () => {
    await sheets.emptied();
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
    expect(await sheets.take(file)).toMatchObject({ sheet: "Own", total: 3 });
    expect(await sheets.found("host, big, seen, bought, note, up, ratio")).toEqual([
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
    await sheets.emptied();
    await sheets.take(
      await workbook({ Own: cells(1, "host", "bought") + cells(2, "a", '<c s="1"><v>0</v></c>') }, ' date1904="true"'),
    );
    expect(await sheets.found("bought")).toEqual([{ bought: "1904-01-01" }]);
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
    expect((await sheets.refusal(file)).split("\n")).toEqual([
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
    await expect(sheets.take(file, { columns: { x: "", y: "" } })).rejects.toMatchObject({
      code: "too_large",
      message: expect.stringMatching(/^sheet Own cell C2: .* its row has more than 4194304 characters/) as string,
      details: { limit: "SHEET_ROW_MAX_CHARACTERS" },
    });
  });

  test("of several sheets with rows takes the one that is named", async () => {
    const one = (host: string) => cells(1, "host") + cells(2, host);
    const file = await workbook({ Own: one("a"), Other: one("b") });
    expect(await sheets.refusal(file)).toContain("Several sheets have rows: name one of Own, Other by sheet=.");
    expect(await sheets.refusal(file, { sheet: "Third" })).toContain("sheet=Third: the workbook has Own, Other.");
    expect(await sheets.refusal(file, { delimiter: ";" })).toContain(
      "delimiter= is for a CSV file, and this is a workbook.",
    );
    expect(await sheets.refusal("host\na\n", { sheet: "Own" })).toContain(
      "sheet= is for a workbook, and this is a CSV file.",
    );
    expect(await sheets.refusal(Buffer.from("d0cf11e0a1b11ae1", "hex"))).toContain("form of xls are not read");
    await sheets.take(file, { sheet: "Other" });
    expect(await sheets.found("host")).toEqual([{ host: "b" }]);
  });
});
