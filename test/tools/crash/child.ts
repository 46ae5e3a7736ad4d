import { writeSync } from "node:fs";
import { join } from "node:path";
import { encodeTime } from "ulid";
import { isAppError } from "../../../common/errors.ts";
import { Outbox } from "../../../agent/outbox/outbox.ts";
import { openEmbeddedEngine } from "../../../controller/store/embedded/index.ts";
import type { EntityChange } from "../../../controller/store/objects.ts";
import type { TenantStore } from "../../../controller/store/engine.ts";
import { realClock, seededRandom } from "../../helpers/time/clock.ts";
import { OUTBOX, streamBytes, type Acknowledged } from "./acknowledged.ts";

/**
 * Writes to every store as fast as it can until it is killed, and prints every acknowledged write. Arguments: folder,
 * round, seed, and the number of acknowledgements after which it kills itself.
 */
const [dir = "", round = "0", seed = "1", last = "Infinity"] = process.argv.slice(2);
const random = seededRandom(Number(seed));
const encoder = new TextEncoder();
const WRITERS = 4;
const OBJECTS = 12;
let acknowledged = 0;

function acknowledge(what: Acknowledged): void {
  // Not through a stream, because data waiting in a stream is lost with the process.
  writeSync(1, `${JSON.stringify(what)}\n`);
  if (++acknowledged >= Number(last)) process.kill(process.pid, "SIGKILL");
}

/** Repeats a write with an unknown outcome, as every caller of a store does. */
async function again<T>(write: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (!isAppError(error, "unknown_outcome")) throw error;
    }
  }
}

const engine = await openEmbeddedEngine({ dir, runtime: { clock: realClock, random } });
await engine.createTenant("matrix");
const store = await engine.tenant("matrix");
const writers = Array.from({ length: WRITERS }, (_, writer) => [
  writeKeys(store, writer),
  writeObjects(store, writer),
  writeRecords(store, writer),
  writeBlobs(store, writer),
  writeStream(store, writer),
]);
await Promise.all([fillOutbox(), ...writers.flat()]);

async function writeKeys({ kv }: TenantStore, writer: number): Promise<never> {
  for (let n = 1; ; n++) {
    const [key, twin] = [`r${round}/w${writer}/${n % 7}`, `r${round}/w${writer}/${n % 7}/twin`];
    const value = encoder.encode(String(n));
    await again(() =>
      kv.txn({
        if: [],
        then: [
          { kind: "put", key, value },
          { kind: "put", key: twin, value },
        ],
      }),
    );
    acknowledge({ kind: "kv", key, n });
  }
}

async function writeObjects({ objects }: TenantStore, writer: number): Promise<never> {
  for (let n = 1; ; n++) {
    const key = { cid: 1 + (writer % 2), id: `r${round}-w${writer}-${n % OBJECTS}` };
    const dies = random.next() < 0.1;
    const before = n - OBJECTS;
    const change: EntityChange = {
      key,
      timeUs: n,
      version: encoder.encode(String(n)),
      ...(dies
        ? { death: true }
        : {
            birth: true,
            cells: new Map([
              ["n", encoder.encode(String(n))],
              ["pad", random.bytes(Math.floor(random.next() * 3_000))],
            ]),
            addTerms: [`n=${n}`, `class=${key.cid}`],
            dropTerms: [`n=${before}`],
            numbers: new Map([[0, n]]),
            addEdges: [{ type: "next", to: { cid: key.cid, id: `r${round}-w${writer}-${(n + 1) % OBJECTS}` } }],
          }),
    };
    await again(() => objects.change([change]));
    acknowledge({ kind: "object", cid: key.cid, id: key.id, n, alive: !dies });
  }
}

async function writeRecords({ objects }: TenantStore, writer: number): Promise<never> {
  for (let n = 1; ; n++) {
    const ids = [0, 1, 2].map(
      (i) => encodeTime(1_000_000 + n * 3 + i, 10) + `${round}`.padStart(8, "0") + `${writer}`.padStart(8, "0"),
    );
    const records = ids.map((id) => ({ cid: 9, id, value: encoder.encode(id), terms: [`w${writer}`, `r${round}`] }));
    await again(() => objects.append(records));
    acknowledge({ kind: "records", cid: 9, ids });
  }
}

async function writeBlobs({ blobs }: TenantStore, writer: number): Promise<never> {
  for (let n = 1; ; n++) {
    const content = random.bytes(1 + Math.floor(random.next() * 40_000));
    const { digest, size } = await again(() => blobs.put([content], `r${round}/w${writer}/${n}`));
    acknowledge({ kind: "blob", digest, size });
  }
}

async function writeStream({ blobs }: TenantStore, writer: number): Promise<never> {
  const stream = `r${round}/w${writer}`;
  for (let offset = 0; ; ) {
    const bytes = streamBytes(stream, offset, 1 + Math.floor(random.next() * 5_000));
    const { size } = await again(() => blobs.append(stream, offset, bytes));
    acknowledge({ kind: "stream", stream, size });
    offset = size;
  }
}

/** Appends one entry after the other with its number as a mark. All but the last few entries count as delivered. */
async function fillOutbox(): Promise<never> {
  const { folder, maxBytes, mark: key } = OUTBOX;
  const outbox = await Outbox.open({ folder: join(dir, folder), clock: realClock, random, maxBytes });
  for (let n = Number(outbox.mark(key) ?? 0) + 1; ; n++) {
    const body = {
      $case: "output" as const,
      value: {
        commandId: String(n),
        stderr: false,
        offset: 0,
        data: Buffer.from(random.bytes(Math.floor(random.next() * 2_000))),
      },
    };
    await outbox.append([{ body }], { marks: [{ key, value: String(n) }] });
    acknowledge({ kind: "outbox", n });
    if (n % 20 === 0) await outbox.acknowledge(n - 10);
  }
}
