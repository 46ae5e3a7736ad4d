import { truncateSync } from "node:fs";
import { appendFile, mkdtemp, open, rm, writeFile, type FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { compileCutter } from "../../../common/agent/records.ts";
import type { LogPolicySpec } from "../../../common/api/policies.ts";
import { compilePattern } from "../../../common/regex/pattern.ts";
import { realClock, seededRandom } from "../../../test/helpers/clock.ts";
import { createExec } from "../../exec.ts";
import { createHost } from "../../host.ts";
import { Outbox } from "../../outbox.ts";
import { LogFiles } from "./files.ts";
import { Switches } from "./switches.ts";

/** Each look is taken by the test, so that it knows what was compared when the file is cut off. */

const SIGNAL = new AbortController().signal;
const LINE = `${"x".repeat(99)}\n`;

let folder: string;
let log: string;
let outbox: Outbox;
let files: LogFiles;
let writer: FileHandle;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-copies-"));
  log = join(folder, "app.log");
  outbox = await Outbox.open({ folder: join(folder, "outbox"), clock: realClock, random: seededRandom(1) });
  const host = createHost({
    log: () => undefined,
    clock: realClock,
    random: seededRandom(1),
    exec: createExec({ clock: realClock, folder: join(folder, "running"), environment: {} }),
    depots: { folder: () => undefined, ensure: () => Promise.reject(new Error("no depots here")) },
    outbox,
  });
  const spec: LogPolicySpec = { kind: "log", name: "p", rule: "/matrix/rules/a", dir: folder, match: "^app\\.log$" };
  const policy = { name: "p", revision: 1, spec: JSON.stringify(spec), depot: undefined, conf: "" };
  const work = { policy, spec, host, match: compilePattern(spec.match), filter: undefined, endsWithNext: false };
  files = new LogFiles({ ...work, cutter: compileCutter(spec) }, new Switches());
  await files.load();
  writer = await open(log, "a");
});

afterEach(async () => {
  await writer.close();
  await files.closeAll();
  await outbox.close();
  await rm(folder, { recursive: true });
});

test("what is written between a copy and the truncation is counted to the byte when the copy was compared to its end", async () => {
  await writer.appendFile(LINE.repeat(50));
  await look();
  await writeFile(`${log}.1`, LINE.repeat(20));
  await look();
  await appendFile(`${log}.1`, LINE.repeat(30));
  await files.compareCopies();
  await writer.appendFile(LINE.repeat(3));
  await read();
  await writer.appendFile(LINE.repeat(4));
  truncateSync(log);
  await look();
  await look();
  expect(await gapCounts()).toEqual([4 * LINE.length]);
});

test("what of a copy was not compared counts as well, and no byte less", async () => {
  await writer.appendFile(LINE.repeat(50));
  await look();
  await writeFile(`${log}.1`, LINE.repeat(20));
  await look();
  await appendFile(`${log}.1`, LINE.repeat(30));
  await writer.appendFile(LINE.repeat(3));
  await read();
  await writer.appendFile(LINE.repeat(4));
  truncateSync(log);
  await look();
  await look();
  const [count, ...others] = await gapCounts();
  expect(others).toEqual([]);
  expect(count).toBeGreaterThanOrEqual(4 * LINE.length);
  expect(count).toBeLessThanOrEqual((30 + 4) * LINE.length);
});

test("a life that was cut off is not read on in the next one, though that begins alike", async () => {
  const heading = `${"#".repeat(99)}\n`.repeat(5);
  await writer.appendFile(heading);
  await look();
  truncateSync(log);
  // Its copy was made and is in no look yet.
  await files.scan(SIGNAL);
  await writeFile(`${log}.1`, heading);
  await writer.appendFile(`${heading}one\ntwo\n`);
  await read();
  for (let count = 0; count < 5; count++) await look();
  expect((await lines()).filter((line) => !line.startsWith("#"))).toEqual(["one", "two"]);
});

async function look(): Promise<void> {
  await files.scan(SIGNAL);
  await read();
}

async function read(): Promise<void> {
  files.touch("app.log");
  for (const file of files.dirtyLogs().flat()) if (file.dirty) await file.read(SIGNAL);
}

async function gapCounts(): Promise<readonly number[]> {
  return (await entries()).flatMap(({ body }) => (body?.$case === "gap" ? [body.value.count] : []));
}

async function lines(): Promise<readonly string[]> {
  return (await entries()).flatMap(({ body }) =>
    body?.$case === "records" ? body.value.records.map((record) => record.toString()) : [],
  );
}

async function entries() {
  const reader = outbox.reader(1);
  const found = await reader.next(1_000, 1 << 20);
  await reader.close();
  return found;
}
