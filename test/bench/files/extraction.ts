import { extractText } from "../../../controller/areas/files/search/extract/extract.ts";
import { median, type Figure } from "../driver/frame.ts";
import { documents } from "./words.ts";

const TEXT_CHARACTERS = 1_000_000;
const ROUNDS = 3;
const RATE_GOAL = 5;

/** Extraction of the text of one document of each format, by processor time of this process. */
export async function extractionFigures(tell: (figure: Figure) => void): Promise<void> {
  for (const [format, document] of await documents(TEXT_CHARACTERS)) {
    const bytes = new SharedArrayBuffer(document.length);
    new Uint8Array(bytes).set(document);
    await processorSeconds(bytes);
    const seconds: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) seconds.push(await processorSeconds(bytes));
    tell({
      name: `text of a ${format} extracted, by bytes of the file`,
      unit: "MB/s",
      ours: document.length / 1e6 / median(seconds),
      against: RATE_GOAL,
      againstName: "the goal",
      kind: "ratio",
      goal: 1,
    });
  }
}

async function processorSeconds(bytes: SharedArrayBuffer): Promise<number> {
  const before = process.cpuUsage();
  const { passages } = await extractText({ bytes });
  const { user, system } = process.cpuUsage(before);
  if (passages.length === 0) throw new Error("No text was extracted.");
  return (user + system) / 1e6;
}
