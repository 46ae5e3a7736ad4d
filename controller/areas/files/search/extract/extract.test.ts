import { describe, expect, test } from "vitest";
import { zipOf } from "../../../../../test/helpers/runs/archives.ts";
import { FILE_INDEX_MAX_CHARACTERS, FILE_SHARED_TEXTS_MAX } from "../../../../../common/limits.ts";
import { extractText, type Extracted } from "./extract.ts";

const KIB = 1_024;
const MIB = 1_024 * KIB;

function extract(content: Buffer | string): Promise<Extracted> {
  const bytes = Buffer.from(content);
  const shared = new SharedArrayBuffer(bytes.length);
  new Uint8Array(shared).set(bytes);
  return extractText({ bytes: shared });
}

async function linesOf(content: Buffer | string): Promise<readonly string[]> {
  const { passages } = await extract(content);
  return passages.flatMap(({ text, position }) => text.split("\n").map((line, at) => `${position + at} ${line}`));
}

const WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"';
const docx = (body: string, head = "") =>
  zipOf([
    { name: "[Content_Types].xml", content: "<Types/>" },
    {
      name: "word/document.xml",
      content: `<?xml version="1.0"?>${head}<w:document ${WORD}><w:body>${body}</w:body></w:document>`,
    },
  ]);
const paragraph = (text: string) => `<w:p><w:r><w:t>${text}</w:t></w:r></w:p>`;

const RELATIONS =
  '<Relationships><Relationship Id="r1" Target="worksheets/sheet1.xml"/><Relationship Id="r2" Target="/xl/worksheets/other.xml"/></Relationships>';
const xlsx = (shared: string, sheet: string, other = "") =>
  zipOf([
    {
      name: "xl/workbook.xml",
      content: '<workbook><sheets><sheet name="Hosts" r:id="r1"/><sheet name="Empty" r:id="r2"/></sheets></workbook>',
    },
    { name: "xl/_rels/workbook.xml.rels", content: RELATIONS },
    { name: "xl/sharedStrings.xml", content: `<sst>${shared}</sst>` },
    { name: "xl/worksheets/sheet1.xml", content: `<worksheet><sheetData>${sheet}</sheetData></worksheet>` },
    { name: "xl/worksheets/other.xml", content: `<worksheet><sheetData>${other}</sheetData></worksheet>` },
  ]);

describe("a text", () => {
  test("has its lines as positions, in UTF-8, UTF-16 with a mark, and GB18030", async () => {
    expect(await linesOf("one\r\n\ntwo 二\n")).toEqual(["1 one", "2 ", "3 two 二"]);
    expect(await linesOf(Buffer.from("\ufeffsixteen\nbits", "utf16le"))).toEqual(["1 sixteen", "2 bits"]);
    expect(await linesOf(Buffer.from([0xb4, 0xc5, 0xc5, 0xcc]))).toEqual(["1 磁盘"]);
    expect(await linesOf("")).toEqual([]);
  });

  test("that mentions the mark of another format is a text", async () => {
    expect(await linesOf("a %PDF-1.5\nPK\u0009")).toEqual(["1 a %PDF-1.5", "2 PK"]);
  });

  test("is no text with bytes that texts do not have", async () => {
    await expect(extract(Buffer.from([0x41, 0x00, 0x42]))).rejects.toMatchObject({ code: "invalid" });
    await expect(extract(Buffer.from([0xff, 0xff, 0xff, 0xff]))).rejects.toThrow("unknown encoding");
  });

  test("beyond the limit is cut, and says so", async () => {
    const { passages, note } = await extract(
      `${"word ".repeat(200)}\n`.repeat(FILE_INDEX_MAX_CHARACTERS / 1_000 + 200),
    );
    const characters = passages.reduce((sum, { text }) => sum + text.length, 0);
    expect(characters).toBeGreaterThan(FILE_INDEX_MAX_CHARACTERS - 10);
    expect(characters).toBeLessThan(FILE_INDEX_MAX_CHARACTERS + 3 * KIB);
    expect(note).toBe(`Only the first ${FILE_INDEX_MAX_CHARACTERS} characters are searched.`);
  });

  test("keeps characters of two units whole at every cut", async () => {
    const { passages } = await extract("😀".repeat(3_000));
    expect(passages.length).toBeGreaterThan(3);
    for (const { text } of passages) expect(text.isWellFormed()).toBe(true);
  });
});

describe("a docx", () => {
  test("has its paragraphs as positions, with tabs, and without deleted or repeated text", async () => {
    const body = [
      paragraph("First &amp; second"),
      "<w:p><w:r><w:t>Name</w:t><w:tab/><w:t>磁盘</w:t><w:br/><w:t>full</w:t></w:r></w:p>",
      "<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>",
      "<mc:AlternateContent><mc:Choice><w:p><w:t>box</w:t></w:p></mc:Choice><mc:Fallback><w:p><w:t>box</w:t></w:p></mc:Fallback></mc:AlternateContent>",
    ];
    expect(await linesOf(await docx(body.join("")))).toEqual(["1 First & second", "2 Name\t磁盘 full", "3 ", "4 box"]);
  });

  test("with a paragraph of megabytes is read in pieces", async () => {
    const { passages } = await extract(await docx(paragraph(`${"word ".repeat(200_000)}last`)));
    expect(passages.at(-1)).toMatchObject({ position: 1, text: expect.stringMatching(/last$/) });
  });

  test.each<[string, () => Promise<Buffer>, string]>([
    [
      "entities of its own",
      () =>
        docx(paragraph("&c;"), '<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>'),
      "document type, which is refused",
    ],
    ["an unknown entity", () => docx(paragraph("&c;")), "is no XML"],
    ["a part that unpacks to far too much", () => docx(paragraph(" ".repeat(11 * MIB))), "unpacks to"],
    ["a part that is cut off", () => docx("<w:p><w:r"), "is no XML"],
    ["a missing end", async () => (await docx(paragraph("a"))).subarray(0, 200), "cannot be unpacked"],
    ["other parts", () => zipOf([{ name: "a.txt", content: "a" }]), "neither docx nor xlsx"],
    ["one tag without an end", () => docx(`<w:p ${"a".repeat(2 * MIB)}`, ""), "tag of more than"],
  ])("with %s is told", async (_what, make, message) => {
    await expect(extract(await make())).rejects.toMatchObject({
      code: expect.stringMatching(/^(invalid|too_large)$/),
      message: expect.stringContaining(message),
    });
  });

  test("whose part unpacks to more than it declares is told", async () => {
    const bytes = await docx(paragraph("word ".repeat(1_000)));
    // The size in the central directory, behind its mark.
    const at = bytes.lastIndexOf("word/document.xml") - 46;
    bytes.writeUInt32LE(100, at + 24);
    await expect(extract(bytes)).rejects.toMatchObject({ code: "invalid" });
  });
});

describe("an xlsx", () => {
  test("has the names and rows of its sheets as lines, with shared, inline and computed texts", async () => {
    const shared = "<si><t>web-1</t></si><si><r><t>磁</t></r><r><t>盘</t></r><rPh><t>ci</t></rPh></si>";
    const rows = [
      '<row r="1"><c t="s"><v>0</v></c><c t="s"><v>1</v></c><c><v>12.5</v></c></row>',
      '<row r="5"><c t="inlineStr"><is><t>inline</t></is></c><c t="str"><f>A1</f><v>computed</v></c><c t="s"><v>99</v></c></row>',
    ];
    expect(await linesOf(await xlsx(shared, rows.join("")))).toEqual([
      "1 Hosts",
      "2 web-1\t磁盘\t12.5",
      "3 inline\tcomputed",
      "4 Empty",
    ]);
  });

  test("with a million shared texts is read or told, within its limits", async () => {
    const shared = "<si><t>x</t></si>".repeat(FILE_SHARED_TEXTS_MAX + 1);
    await expect(extract(await xlsx(shared, ""))).rejects.toMatchObject({ code: "too_large" });
  });

  test("whose cells repeat one long text is cut at the limit", async () => {
    const cell = '<c t="s"><v>0</v></c>';
    const sheet = `<row>${cell.repeat(2_000)}</row>`;
    const { note } = await extract(await xlsx(`<si><t>${"long ".repeat(6_000)}</t></si>`, sheet));
    expect(note).toContain("Only the first");
  });
});
