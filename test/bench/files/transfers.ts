import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Installation } from "../../e2e/installation.ts";
import { inTurns, perSecond, type Figure } from "../driver/frame.ts";
import { BARE_WAYS, FileCalls, odpWays, type Content } from "./file-calls.ts";
import { bareFileServer } from "./peer.ts";

const MIB = 2 ** 20;
const LARGE_MIB = Number(process.env["ODP_BENCH_MIB"] ?? 1_024);
const LARGE_ROUNDS = 3;
const LARGE_GOAL = 0.6;
const SMALL_BYTES = 16 * 1_024;
const SMALL_FILES = Number(process.env["ODP_BENCH_FILES"] ?? 2_000);
const AT_ONCE = 32;
const WRITES_GOAL = 1_500;
const READS_GOAL = 5_000;
export const SMALL_FOLDER = "/bench/small";

const block = randomBytes(MIB);
let contents = 0;

/** A content that no other one equals: equal ones are stored once. */
function newContent(size: number): Content {
  contents += 1;
  const head = Buffer.alloc(16, `${contents}`.padStart(16));
  return {
    size,
    *pieces() {
      yield head;
      for (let left = size - head.length; left > 0; left -= block.length)
        yield left < block.length ? block.subarray(0, left) : block;
    },
  };
}

export const largeContent = (): Content => newContent(LARGE_MIB * MIB);

interface Servers {
  readonly ours: FileCalls;
  readonly bare: FileCalls;
}

/** Large and small files over HTTP, beside a bare node:http server on the same disk. */
export async function transferFigures(odp: Installation, tell: (figure: Figure) => void): Promise<void> {
  const folder = await mkdtemp(join(odp.folder, "bare-"));
  const server = await bareFileServer(folder);
  const calls = async (place: string): Promise<Servers> => ({
    ours: new FileCalls({ port: odp.port, atOnce: AT_ONCE, ways: odpWays(place, await odp.session()) }),
    bare: new FileCalls({ port: server.port, atOnce: AT_ONCE, ways: BARE_WAYS }),
  });
  try {
    await largeFigures(await calls("/bench"), tell);
    await smallFigures(await calls(SMALL_FOLDER), tell);
  } finally {
    server.stop();
    await rm(folder, { recursive: true });
  }
}

async function largeFigures(servers: Servers, tell: (figure: Figure) => void): Promise<void> {
  const beside = { unit: "MB/s", againstName: "bare node:http", kind: "ratio", goal: LARGE_GOAL } as const;
  const rate = async (work: Promise<void>): Promise<number> => {
    const began = performance.now();
    await work;
    return (LARGE_MIB * MIB) / 1_000 / (performance.now() - began);
  };
  const up = (calls: FileCalls) => () => rate(calls.write("large.bin", largeContent()));
  const written = await inTurns(up(servers.ours), up(servers.bare), LARGE_ROUNDS);
  tell({ ...beside, name: `a file of ${LARGE_MIB} MiB is written`, ...written });
  const down = (calls: FileCalls) => () => rate(calls.read("large.bin", LARGE_MIB * MIB));
  const read = await inTurns(down(servers.ours), down(servers.bare), LARGE_ROUNDS);
  tell({ ...beside, name: `a file of ${LARGE_MIB} MiB is read`, ...read });
  close(servers);
}

async function smallFigures(servers: Servers, tell: (figure: Figure) => void): Promise<void> {
  const beside = { unit: "files/s", againstName: "bare node:http", kind: "ratio", goal: 0 } as const;
  let written = 0;
  const up = (calls: FileCalls) => () => {
    const from = written;
    written += SMALL_FILES;
    return perSecond(SMALL_FILES, AT_ONCE, (n) => calls.write(`${from + n}.bin`, newContent(SMALL_BYTES)));
  };
  const writes = await inTurns(up(servers.ours), up(servers.bare));
  const size = `${SMALL_BYTES / 1_024} KiB`;
  tell({ ...beside, name: `files of ${size} written, ${AT_ONCE} at once`, ...writes });
  tell(atLeast("the same", writes.ours, WRITES_GOAL));
  // The last rounds wrote theirs before ours.
  const down = (calls: FileCalls, from: number) => () =>
    perSecond(SMALL_FILES, AT_ONCE, (n) => calls.read(`${from + n}.bin`, SMALL_BYTES));
  const reads = await inTurns(down(servers.ours, written - SMALL_FILES), down(servers.bare, written - 2 * SMALL_FILES));
  tell({ ...beside, name: `files of ${size} read, ${AT_ONCE} at once`, ...reads });
  tell(atLeast("the same", reads.ours, READS_GOAL));
  close(servers);
}

function close({ ours, bare }: Servers): void {
  ours.close();
  bare.close();
}

function atLeast(name: string, ours: number, goal: number): Figure {
  return { name, unit: "files/s", ours, against: goal, againstName: "the goal", kind: "ratio", goal: 1 };
}
