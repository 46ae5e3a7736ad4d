import type { ZipPart } from "../../../controller/archives/zip-writing.ts";
import type { Installation } from "../../e2e/installation.ts";
import { Calls, succeeding } from "../http/calls.ts";
import { quantile, type Figure } from "../driver/frame.ts";
import { importParts } from "./folders.ts";
import { lines, word } from "./words.ts";

const TEXTS = Number(process.env["ODP_BENCH_TEXTS"] ?? 5_000);
const FOLDERS = 50;
const TEXT_CHARACTERS = 1_000;
const SEARCHES = 300;
const SEARCH_GOAL_MS = 50;
const FOLDER = "/bench/texts";

/** Searches for whole words in the contents of many files, one after another. */
export async function searchFigures(odp: Installation, tell: (figure: Figure) => void): Promise<void> {
  const session = await odp.session();
  const calls = new Calls({ port: odp.port, atOnce: 1 });
  const unpacked = await rate(() => importParts(odp, texts()));
  const indexed = await rate(async () => {
    // A call has a deadline, so that one for all files would fail.
    for (let at = 0; at < FOLDERS; at += 1)
      await succeeding(calls.form(`/fs/index${FOLDER}/${at}?sessionid=${session}`, {}));
  });
  const beside = { against: unpacked, againstName: "the same files unpacked from an archive" };
  tell({ name: "files indexed", unit: "files/s", ours: indexed, ...beside, kind: "ratio", goal: 0 });
  const times: number[] = [];
  for (let at = 0; at < SEARCHES; at += 1) {
    const asked = performance.now();
    await succeeding(calls.get(`/fs/search${FOLDER}?query=${word()}&sessionid=${session}`));
    times.push(performance.now() - asked);
  }
  calls.close();
  tell({
    name: `p95 of a search for a word in ${TEXTS.toLocaleString("en")} files`,
    unit: "ms",
    ours: quantile(times, 0.95),
    against: SEARCH_GOAL_MS,
    againstName: "the goal",
    kind: "most",
    goal: 1,
  });
}

function texts(): readonly ZipPart[] {
  const modified = new Date(2024, 0, 1);
  return Array.from({ length: TEXTS }, (_, n) => {
    const content = lines(TEXT_CHARACTERS).join("\n");
    return { path: `${FOLDER.slice(1)}/${n % FOLDERS}/${n}.txt`, modified, content: { open: () => [content] } };
  });
}

async function rate(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return (TEXTS * 1_000) / (performance.now() - began);
}
