import { buffer, text } from "node:stream/consumers";
import { zipStream, type ZipPart } from "../../../controller/archives/zip-writing.ts";
import type { Installation } from "../../e2e/installation.ts";
import { median, type Figure } from "../driver/frame.ts";
import { FileCalls, formOf, odpWays, requireSuccess } from "./file-calls.ts";

const ENTRIES = Number(process.env["ODP_BENCH_ENTRIES"] ?? 100_000);
const ROUNDS = 5;
const FIRST_BYTE_GOAL_MS = 50;
const FOLDER = "/bench/many";
const MODIFIED = new Date(2024, 0, 1);

/** The first byte of the list of a large folder. */
export async function listingFigures(odp: Installation, tell: (figure: Figure) => void): Promise<void> {
  // Folders, so that the entries alone are measured.
  await importParts(
    odp,
    Array.from({ length: ENTRIES }, (_, n) => ({ path: `${FOLDER.slice(1)}/entry ${n}`, modified: MODIFIED })),
  );
  const session = await odp.session();
  const calls = new FileCalls({ port: odp.port, atOnce: 1, ways: odpWays("", session) });
  const firsts: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const began = performance.now();
    const answer = await calls.send("GET", `/fs${FOLDER}?type=dir&sessionid=${session}`);
    let entries = 0;
    for await (const piece of answer as AsyncIterable<Buffer>) {
      if (entries === 0) firsts.push(performance.now() - began);
      entries += piece.toString("latin1").split('"fullname":').length - 1;
    }
    if (Math.abs(entries - ENTRIES) > ENTRIES / 100) throw new Error(`The list has ${entries} entries.`);
  }
  calls.close();
  tell({
    name: `first byte of the list of ${ENTRIES.toLocaleString("en")} entries`,
    unit: "ms",
    ours: median(firsts),
    against: FIRST_BYTE_GOAL_MS,
    againstName: "the goal",
    kind: "most",
    goal: 1,
  });
}

/** Unpacks an archive of these parts in the users' space. */
export async function importParts(odp: Installation, parts: Iterable<ZipPart>): Promise<void> {
  const archive = await buffer(zipStream(parts));
  const session = await odp.session();
  const calls = new FileCalls({ port: odp.port, atOnce: 1, ways: odpWays("", session) });
  const form = formOf("bench.zip", { size: archive.length, pieces: () => [archive] });
  requireSuccess(await text(await calls.send("POST", `/fs/import?depth=1&sessionid=${session}`, form)));
  calls.close();
}
