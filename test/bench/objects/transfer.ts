import { createReadStream, createWriteStream } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import { openTestEngine } from "../../helpers/engines/engine.ts";
import { testPrincipal } from "../../helpers/time/runtime.ts";
import { TestTransfer } from "../../helpers/objects/transfer.ts";
import { scriptParts } from "../../../controller/areas/transfer/source.ts";
import type { Bench, Figure } from "../driver/frame.ts";
import { anonymousMb } from "../driver/process.ts";

const OBJECTS = 100_000;
const SAMPLE_MS = 100;
const MEMORY_MAX_MB = 300;
const IMPORT_MAX_S = 60;
const EXPORT_MAX_S = 20;

/** Imports and exports a script of classes and related objects, on embedded, in one process. */
export const transferBench: Bench = {
  name: "transfer",
  async run() {
    const engine = await openTestEngine();
    const transfer = new TestTransfer(engine);
    const principal = testPrincipal();
    const [given, written] = [join(engine.dir, "given.mql"), join(engine.dir, "written.mql")];
    try {
      await pipeline(Readable.from(script()), createWriteStream(given));
      const content = (): AsyncIterable<Uint8Array> => createReadStream(given) as AsyncIterable<Uint8Array>;
      const upload = { name: "given.mql", content, parts: () => scriptParts(content()) };
      const taken = await measured(() => transfer.imports.import(principal, upload));
      const exported = await measured(async () => {
        await pipeline(
          Readable.from(await transfer.exports.script(principal, { class: "/matrix/ent/", relations: true })),
          createWriteStream(written),
        );
      });
      return [...figures("import", taken, IMPORT_MAX_S), ...figures("export", exported, EXPORT_MAX_S)];
    } finally {
      await transfer.close();
      await engine[Symbol.asyncDispose]();
    }
  },
};

function* script(): Generator<string> {
  yield "create edge type contain; create class /matrix/ent/box (host varchar, size bigint, note text, tags set<varchar>, config map<varchar,varchar>, seen timestamp, keys(host), index(host, size));\n";
  for (let n = 0; n < OBJECTS; n += 1) {
    const row = `host='h${n}', size=${n % 1_000}, note='an ordinary note of the box ${n}', tags=['a${n % 7}','b${n % 5}'], config={'os':'linux','rack':'r${n % 40}'}, seen=${1_700_000_000_000 + n}`;
    yield `insert into /matrix/ent/box set ${row}, contain=['box:h${(n * 31) % OBJECTS}'];\n`;
  }
}

interface Measured {
  readonly seconds: number;
  readonly memoryMb: number;
}

async function measured(work: () => Promise<unknown>): Promise<Measured> {
  let memoryMb = 0;
  const sample = (): void => void (memoryMb = Math.max(memoryMb, anonymousMb(process.pid)));
  const timer = setInterval(sample, SAMPLE_MS);
  const started = performance.now();
  await work();
  const seconds = (performance.now() - started) / 1_000;
  clearInterval(timer);
  sample();
  return { seconds, memoryMb };
}

function figures(what: string, { seconds, memoryMb }: Measured, maxSeconds: number): readonly Figure[] {
  return [
    {
      name: `${what} of ${OBJECTS.toLocaleString("en")} objects with relations`,
      unit: "s",
      ours: seconds,
      against: maxSeconds,
      againstName: "goal",
      kind: "most",
      goal: 1,
    },
    {
      name: `anonymous memory during the ${what}, whole process`,
      unit: "MB",
      ours: memoryMb,
      against: MEMORY_MAX_MB,
      againstName: "goal",
      kind: "most",
      goal: 1,
    },
  ];
}
