import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { open, type Database } from "lmdb";
import { decodeStored, encodePacked } from "../../controller/store/format.ts";
import type { ObjectStore } from "../../controller/store/objects.ts";
import { openTestEngine } from "../helpers/engine.ts";
import { inTurns, perSecond, type Bench, type Figure } from "./frame.ts";
import { benchCells, benchChange, benchTerms, BENCH_CID } from "./rows.ts";

const ROWS_PER_ROUND = 20_000;
const ROWS_PER_BATCH = 500;
const FINDS_PER_ROUND = 2_000;
const AT_ONCE = 8;

/** ObjectStore beside bare lmdb that puts the same object bytes and the same term entries, flushed as durably. */
export const embeddedStoreBench: Bench = {
  name: "store-embedded",
  async run() {
    const engine = await openTestEngine();
    const dir = await mkdtemp(join(tmpdir(), "odp-bench-"));
    const bare = new BareStore(dir);
    try {
      const { objects } = await engine.tenant("matrix");
      return [await putFigure(objects, bare), await findFigure(objects, bare)];
    } finally {
      await bare.close();
      await engine[Symbol.asyncDispose]();
      await rm(dir, { recursive: true, force: true });
    }
  },
};

async function putFigure(objects: ObjectStore, bare: BareStore): Promise<Figure> {
  let ours = 0;
  let theirs = 0;
  const batches = ROWS_PER_ROUND / ROWS_PER_BATCH;
  const measured = await inTurns(
    () => perSecond(batches, AT_ONCE, () => objects.change(range(ours, (ours += ROWS_PER_BATCH)).map((n) => benchChange(n, 1_700_000_000_000_000 + n)))),
    () => perSecond(batches, AT_ONCE, () => bare.put(range(theirs, (theirs += ROWS_PER_BATCH)))),
  );
  return { name: "put with 13 terms, durable", unit: "objects/s", ...perRow(measured), againstName: "bare lmdb", kind: "ratio", goal: 0.5 };
}

async function findFigure(objects: ObjectStore, bare: BareStore): Promise<Figure> {
  const term = (): string => `a1=host-${randomBytes(2).readUInt16LE() % 1_000}`;
  const measured = await inTurns(
    () => perSecond(FINDS_PER_ROUND, AT_ONCE, () => objects.find({ terms: [term()] }, { limit: 20 })),
    () => perSecond(FINDS_PER_ROUND, AT_ONCE, () => Promise.resolve(bare.find(term(), 20))),
  );
  return { name: "find 20 by one term", unit: "queries/s", ...measured, againstName: "bare lmdb", kind: "ratio", goal: 0.4 };
}

function perRow({ ours, against }: { ours: number; against: number }): { ours: number; against: number } {
  return { ours: ours * ROWS_PER_BATCH, against: against * ROWS_PER_BATCH };
}

class BareStore {
  readonly #root;
  readonly #objects: Database<Uint8Array, string>;
  readonly #terms: Database<string, string>;

  constructor(dir: string) {
    this.#root = open({ path: join(dir, "bare.mdb"), maxDbs: 4 });
    this.#objects = this.#root.openDB({ name: "objects", encoding: "binary" });
    this.#terms = this.#root.openDB({ name: "terms", dupSort: true, encoding: "ordered-binary" });
  }

  async put(rows: readonly number[]): Promise<void> {
    await this.#root.transaction(() => {
      for (const n of rows) {
        const key = `${BENCH_CID}:row-${n}`;
        void this.#objects.put(key, encodePacked([...benchCells(n)]));
        for (const term of new Set(benchTerms(n))) void this.#terms.put(term, key);
      }
    });
    await this.#root.flushed;
  }

  /** Decoded, as whoever asks needs the values. */
  find(term: string, limit: number): readonly unknown[] {
    const found: unknown[] = [];
    for (const key of this.#terms.getValues(term, { limit })) {
      const bytes = this.#objects.get(key);
      if (bytes) found.push(decodeStored(bytes));
    }
    return found;
  }

  async close(): Promise<void> {
    await this.#root.close();
  }
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index);
}
