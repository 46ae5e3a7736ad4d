import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { IMPORT_FAULTS_MAX, SHEET_HEADING_MAX_CHARACTERS, SHEET_ROW_MAX_CHARACTERS } from "../../../common/limits.ts";
import { OwnSheets, SERVERS } from "../../../test/helpers/objects/own-sheets.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";

const admin = testPrincipal();
let sheets: OwnSheets;
beforeAll(async () => {
  sheets = await OwnSheets.open();
});
afterAll(() => sheets[Symbol.asyncDispose]());

describe("headings", () => {
  test("are taken for columns by name or title, whatever their case, spaces, _ and -", async () => {
    await sheets.emptied();
    const report = await sheets.take("NAME-OF_the host,Rack No,Big\na,7,1\n");
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
    expect(await sheets.found("host, rack_no, big")).toEqual([{ host: "a", rack_no: 7, big: 1 }]);
  });

  test("are mapped by the request, to nothing as well", async () => {
    await sheets.emptied();
    const columns = { Computer: "host", Remark: "", Owner: null };
    expect(await sheets.take("Computer,Remark,Owner\na,b,c\n", { columns })).toMatchObject({
      columns: [
        { heading: "Computer", column: "host" },
        { heading: "Remark", column: "" },
        { heading: "Owner", column: "" },
      ],
    });
    expect(await sheets.found("host, note")).toEqual([{ host: "a", note: null }]);
  });

  test("that are wrong are told together, with the nearest column", async () => {
    const columns = { Bigg: "bik", Nothere: "host" };
    expect(await sheets.refusal("hots,host,host,Bigg,vtime\n1,2,3,4,5\n", { columns })).toBe(
      [
        '[Valid] columns= names the heading "Nothere", which the file does not have.',
        `[Valid] heading "hots" is no column of ${SERVERS}; did you mean host? (say by columns= which column it is, or "" to leave it out)`,
        '[Valid] heading "host" is in the heading line twice.',
        `[Valid] heading "Bigg" is mapped to "bik", which ${SERVERS} does not have; did you mean big?`,
        '[Valid] heading "vtime" names what the platform keeps itself: say by columns= which column it is, or "" to leave it out.',
        "Nothing was written.",
      ].join("\n"),
    );
  });

  test("have to cover the keys, and one column once", async () => {
    expect(await sheets.refusal("note\nx\n")).toContain(`[Valid] No heading stands for host, a key of ${SERVERS}.`);
    expect(await sheets.refusal("host,HOST\na,b\n", { columns: { HOST: "host" } })).toContain(
      '[Valid] headings "host" and "HOST" both stand for host.',
    );
    expect(await sheets.refusal("host,x\na,b\n", { columns: { host: "", x: "" } })).toContain(
      "No heading stands for a column.",
    );
  });

  test("of any number and length are told up to the bound, and so are mappings", async () => {
    const many = Array.from({ length: 16_000 }, (_, at) => `heading_${at}`);
    const columns = Object.fromEntries(many.map((heading) => [`${heading}_x`, "host"]));
    await expect(sheets.take(`${many.join(",")}\n`, { columns })).rejects.toMatchObject({
      details: {
        limit: "IMPORT_FAULTS_MAX",
        faults: expect.objectContaining({ length: IMPORT_FAULTS_MAX }) as unknown,
      },
    });
    await expect(sheets.take(`${many.join(",")}\n`)).rejects.toMatchObject({ details: { limit: "IMPORT_FAULTS_MAX" } });
    await expect(sheets.take(`${"x".repeat(SHEET_HEADING_MAX_CHARACTERS + 1)}\n`)).rejects.toThrow(
      /^\[Valid\] heading "x{80}…" has more than 1000 characters\.$/m,
    );
    await expect(sheets.take(`host,${many.map(() => "").join(",")}\n`)).rejects.toThrow(
      "no row below its heading line",
    );
  });

  test("that fit two columns are told, not chosen", async () => {
    await sheets.transfer.query.rows(admin, "create class /matrix/twins (a_b int, ab int)");
    await expect(sheets.take("A-B\n1\n", { class: "/matrix/twins" })).rejects.toThrow('heading "A-B" may be a_b or ab');
    await sheets.take("ab\n1\n", { class: "/matrix/twins" });
    expect(await sheets.transfer.query.rows(admin, "select a_b, ab from /matrix/twins")).toEqual([
      { a_b: null, ab: 1 },
    ]);
  });

  test("of hidden columns are unknown", async () => {
    const bob = { ...testPrincipal(), data: [{ class: SERVERS, access: "write" as const, hidden: ["note"] }] };
    const refused = await sheets.refusal("host,note\na,b\n", { who: bob });
    expect(refused).toContain(`heading "note" is no column of ${SERVERS}`);
    const nora = { ...testPrincipal(), data: [{ class: SERVERS, access: "write" as const, hidden: ["host"] }] };
    expect(await sheets.refusal("note\na\n", { who: nora })).toContain(
      `No heading stands for a hidden key of ${SERVERS}: name`,
    );
  });
});

describe("values", () => {
  test("of each type are stored as they are written", async () => {
    await sheets.emptied();
    await sheets.take(
      [
        "host,big,ratio,seen,bought,up,ports,marks,note",
        'a,9223372036854775807,-0,2026-01-31T12:00:00+02:00,2026-01-31,TRUE,"[9007199254740993,null]","{""a"":""b""}","line 1',
        'line 2, ""quoted"""',
        "b,-9223372036854775808,1e308,0001-01-01,9999-12-31,0,[],{}, =1+1 ",
      ].join("\r\n"),
    );
    expect(await sheets.found("big, ratio, seen, bought, up, ports, marks, note")).toEqual([
      {
        big: "9223372036854775807",
        ratio: 0,
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
    await sheets.emptied();
    await sheets.take('host,note,big\na,"",1\nb,,1\nc,x,1\n');
    expect(await sheets.found("note, big")).toEqual([
      { note: "", big: 1 },
      { note: null, big: 1 },
      { note: "x", big: 1 },
    ]);
    await sheets.take("host,note\nc,\n");
    expect((await sheets.found("note, big")).at(-1)).toEqual({ note: null, big: 1 });
  });

  test("that are empty in quotes are none where text is not the type", async () => {
    await sheets.emptied();
    await sheets.take('"host","big","ports","seen","note"\n"a","","","",""\n');
    expect(await sheets.found("big, ports, seen, note")).toEqual([{ big: null, ports: null, seen: null, note: "" }]);
  });

  test("of an id make keys unnecessary", async () => {
    await sheets.emptied();
    await sheets.take("host,note\na,x\n");
    await sheets.take("id,big\nserver:a,5\n");
    expect(await sheets.found("host, note, big")).toEqual([{ host: "a", note: "x", big: 5 }]);
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
    expect(await sheets.refusal(`host,${column}\nfine,\nwrong,${value}\n`)).toBe(
      `row 3 column ${JSON.stringify(column)}: [Format] column ${column}: ${reason}.\nNothing was written.`,
    );
  });

  test("that are wrong are told together, several of a row as well, up to a bound", async () => {
    const refused = sheets.take("host,rack_no,up\na,x,y\nb,1,2\nc,3,true\n");
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
    const bounded = await sheets
      .take(`host,rack_no,up,big\n${many}`)
      .catch((error: unknown) => error as { readonly details: { faults: unknown[] } });
    expect(bounded).toMatchObject({ details: { limit: "IMPORT_FAULTS_MAX" } });
    expect("details" in bounded && bounded.details.faults).toHaveLength(IMPORT_FAULTS_MAX);
  });

  test("of an id and of an edge type are taken; what leads nowhere is refused", async () => {
    await sheets.emptied();
    await sheets.take(
      'ID,host,runs_on\nserver:base,base,\nserver:top,top,"[""server:base""]"\nserver:side,side,server:base\n',
    );
    expect(await sheets.found("id")).toEqual([{ id: "server:base" }, { id: "server:side" }, { id: "server:top" }]);
    expect(await sheets.transfer.script(admin, { class: SERVERS })).toContain("runs_on = ['server:base']");
    expect(await sheets.refusal("host,runs_on\na,none:1\n")).toContain(
      "row 2: [NotExist] Not Found Class For ID none:1",
    );
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
      `row 2 column "host": [Valid] class ${SERVERS}: the key column host is not set.`,
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
    expect(await sheets.refusal(content)).toContain(message);
  });

  test("that are empty, and columns without a heading that are, are passed over", async () => {
    await sheets.emptied();
    await sheets.take("\n\nhost,,\r\n\r\na,,\r,,\nb,,");
    expect(await sheets.found("host")).toEqual([{ host: "a" }, { host: "b" }]);
  });

  test("are read the same however the file comes in pieces", async () => {
    await sheets.emptied();
    const note = 'é"\r\n,'.repeat(20_000);
    const path =
      "host,note\r\n" + ["a", "b", "c"].map((host) => `${host},"${note.replaceAll('"', '""')}"\r\n`).join("");
    await sheets.take(path);
    expect((await sheets.found("note")).map((row) => row["note"] === note)).toEqual([true, true, true]);
  });
});
