import { describe, expect, test } from "vitest";
import { FILE_PDF_PAGES_MAX } from "../../../../../common/limits.ts";
import { PDF_LATIN, pdfOf, pdfPages, pdfStream } from "../../../../../test/helpers/runs/pdf.ts";
import { extractText, type Extracted } from "./extract.ts";

function extract(bytes: Buffer): Promise<Extracted> {
  const shared = new SharedArrayBuffer(bytes.length);
  new Uint8Array(shared).set(bytes);
  return extractText({ bytes: shared });
}

/** A font of the standard Chinese characters, without a table of its own from characters to Unicode. */
const chinese = (encoding: string) =>
  `<< /Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /${encoding} /DescendantFonts [<< /Type /Font ` +
  "/Subtype /CIDFontType0 /BaseFont /STSong-Light /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 2 >> " +
  "/FontDescriptor << /Type /FontDescriptor /FontName /STSong-Light /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 " +
  "/Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >> >>] >>";

const shown = (text: string) => `BT /F1 12 Tf 50 700 Td ${text} Tj ET`;

describe("a pdf", () => {
  test("has its pages as positions", async () => {
    const two = `BT /F1 12 Tf 50 700 Td (second page) Tj 0 -20 Td (its next line) Tj ET`;
    expect(await extract(pdfPages([shown("(Disk is full)"), "", two]))).toEqual({
      unit: "page",
      passages: [
        { position: 1, text: "Disk is full" },
        { position: 3, text: "second page\nits next line" },
      ],
    });
  });

  test.each([
    ["UniGB-UCS2-H", "<78C176D87A7A95F4>"],
    ["GBK-EUC-H", "<B4C5C5CCBFD5BCE4>"],
  ])("in the Chinese encoding %s without a table to Unicode gives its text", async (encoding, codes) => {
    const { passages } = await extract(pdfPages([shown(codes)], { font: chinese(encoding) }));
    expect(passages).toEqual([{ position: 1, text: "磁盘空间" }]);
  });

  test("that is encrypted is told", async () => {
    const key = "00".repeat(32);
    const trailer = `/Encrypt << /Filter /Standard /V 1 /R 2 /O <${key}> /U <${key}> /P -4 >> /ID [<00> <00>]`;
    await expect(extract(pdfPages([shown("(a)")], { trailer }))).rejects.toMatchObject({
      code: "invalid",
      message: "The pdf is encrypted.",
    });
  });

  test("that is cut off or damaged is told", async () => {
    await expect(extract(Buffer.from("%PDF-1.5\nnothing"))).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("The pdf cannot be read"),
    });
    const whole = pdfPages([shown("(kept text)")]);
    await expect(extract(whole.subarray(0, 200))).rejects.toMatchObject({ code: "invalid" });
  });

  test("of a hundred thousand pages is told", async () => {
    const kids = "4 0 R ".repeat(100_000);
    const bytes = pdfOf([
      "<< /Type /Catalog /Pages 2 0 R >>",
      `<< /Type /Pages /Kids [${kids}] /Count 100000 >>`,
      PDF_LATIN,
      "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>",
      pdfStream(shown("(x)")),
    ]);
    await expect(extract(bytes)).rejects.toMatchObject({
      code: "too_large",
      message: `The pdf has 100000 pages; at most ${FILE_PDF_PAGES_MAX} are read.`,
    });
  });
});
