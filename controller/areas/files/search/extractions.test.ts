import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { bundle } from "../../../../test/helpers/programs/bundle.ts";
import { zipOf } from "../../../../test/helpers/runs/archives.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { TestClock, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { FILE_EXTRACT_DEADLINE_MS, FILE_INDEX_MAX_BYTES } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import type { ControllerTasks } from "../../../worker.ts";
import { WorkerPool } from "../../../workers/index.ts";
import { Extractions, Unreadable } from "./extractions.ts";

/** Extraction in real threads of the built worker. A content that is too much for a thread fails alone. */

const SMALL_HEAP_BYTES = 12 * 1_048_576;

let engine: TestEngine;
let file: string;
beforeAll(async () => {
  engine = await openTestEngine();
  file = await bundle("controller/worker.ts", `workers/extractions-${process.pid}.mjs`);
});
afterAll(() => engine.close());

async function within<T>(
  options: { readonly clock?: Clock; readonly heapBytes?: number; readonly threads?: number },
  work: (extract: (content: Buffer | string) => Promise<unknown>, pool: WorkerPool<ControllerTasks>) => Promise<T>,
): Promise<T> {
  const { clock = realClock, heapBytes, threads = 1 } = options;
  const { log } = testRuntime();
  const pool = new WorkerPool<ControllerTasks>({
    file,
    threads,
    clock,
    log,
    ...(heapBytes && { limits: { heapBytes } }),
  });
  const extractions = new Extractions({ stores: engine, workers: pool });
  const { signal } = new AbortController();
  const extract = async (content: Buffer | string): Promise<unknown> => {
    const { blobs } = await engine.tenant("matrix");
    const bytes = Buffer.from(content);
    const { digest, size } = await blobs.put([bytes], "file/test");
    return extractions.extract({ tenant: "matrix", digest, size, signal });
  };
  try {
    return await work(extract, pool);
  } finally {
    await pool.close(0);
  }
}

test("texts, and a Chinese pdf by the tables of its package, are extracted in a thread", async () => {
  await within({}, async (extract) => {
    expect(await extract("one\ntwo")).toEqual({ passages: [{ position: 1, text: "one\ntwo" }], unit: "line" });
    expect(await extract(PDF)).toEqual({ passages: [{ position: 1, text: "磁盘空间" }], unit: "page" });
  });
});

test("a content that needs more memory than a thread has is told, and the next one is extracted", async () => {
  const bytes = await sharedTexts(300_000);
  await within({ heapBytes: SMALL_HEAP_BYTES }, async (extract) => {
    expect(await extract(bytes)).toMatchObject({ reason: expect.stringContaining("bytes that a thread's heap has") });
    expect(await extract("next")).toMatchObject({ passages: [{ text: "next" }] });
  });
});

test("an extraction that reaches its deadline is told", async () => {
  const clock = new TestClock();
  await within({ clock, threads: 0 }, async (extract, pool) => {
    const extraction = extract("never begun");
    while (pool.waiting === 0) await setImmediate();
    clock.advance(FILE_EXTRACT_DEADLINE_MS);
    expect(await extraction).toEqual(
      new Unreadable(`Its text was not extracted within ${FILE_EXTRACT_DEADLINE_MS} ms.`),
    );
  });
});

test("an extraction that runs at its deadline is ended, and the next content is extracted", async () => {
  const clock = new TestClock();
  const long = await sharedTexts(400_000);
  await within({ clock }, async (extract, pool) => {
    const extraction = extract(long);
    while (pool.running === 0) await setImmediate();
    clock.advance(FILE_EXTRACT_DEADLINE_MS);
    expect(await extraction).toBeInstanceOf(Unreadable);
    expect(await extract("next")).toMatchObject({ passages: [{ text: "next" }] });
  });
});

test("a larger file is told without being read", async () => {
  const extractions = new Extractions({ stores: engine });
  const size = FILE_INDEX_MAX_BYTES + 1;
  const { signal } = new AbortController();
  expect(await extractions.extract({ tenant: "matrix", digest: "none", size, signal })).toEqual(
    new Unreadable(`The file has more than ${FILE_INDEX_MAX_BYTES} bytes.`),
  );
});

/** An xlsx of many shared texts, which takes long and much memory. */
function sharedTexts(count: number): Promise<Buffer> {
  const texts = Array.from({ length: count }, (_, at) => `<si><t>text ${at}</t></si>`);
  return zipOf([
    { name: "xl/workbook.xml", content: "<workbook/>" },
    { name: "xl/sharedStrings.xml", content: `<sst>${texts.join("")}</sst>` },
  ]);
}

/** One page in the encoding UniGB-UCS2-H, with a font that has no table to Unicode. Readers find the objects without a table. */
const PDF = `%PDF-1.5
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj
3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources << /Font << /F1 4 0 R >> >> /Contents 6 0 R >> endobj
4 0 obj << /Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /UniGB-UCS2-H /DescendantFonts [5 0 R] >> endobj
5 0 obj << /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light
  /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 2 >> /FontDescriptor << /Type /FontDescriptor
  /FontName /STSong-Light /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 /Ascent 800 /Descent -200 /StemV 80 >> >> endobj
6 0 obj << /Length 53 >> stream
BT /F1 12 Tf 50 700 Td <78C176D87A7A95F4> Tj ET      
endstream endobj
trailer << /Size 7 /Root 1 0 R >>
%%EOF
`;
