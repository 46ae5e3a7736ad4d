import { randomBytes } from "node:crypto";
import type { ObjectStore } from "../../../controller/store/objects.ts";
import { openTestEngine } from "../../helpers/engines/engine.ts";
import { BareLmdb, type BareRow } from "./bare-lmdb.ts";
import { inTurns, perSecond, type Bench, type Figure } from "../driver/frame.ts";
import { benchCells, benchChange, benchTerms, BENCH_CID } from "./rows.ts";

const ROWS_PER_ROUND = 20_000;
const ROWS_PER_BATCH = 500;
const FINDS_PER_ROUND = 2_000;
const AT_ONCE = 8;

/** ObjectStore beside bare lmdb that puts the same object bytes and term entries with the same durability. */
export const embeddedStoreBench: Bench = {
  name: "store-embedded",
  async run() {
    const engine = await openTestEngine();
    const bare = await BareLmdb.open();
    try {
      const { objects } = await engine.tenant("matrix");
      return [await putFigure(objects, bare), await findFigure(objects, bare)];
    } finally {
      await bare.close();
      await engine[Symbol.asyncDispose]();
    }
  },
};

async function putFigure(objects: ObjectStore, bare: BareLmdb): Promise<Figure> {
  let ours = 0;
  let theirs = 0;
  const batches = ROWS_PER_ROUND / ROWS_PER_BATCH;
  const measured = await inTurns(
    () =>
      perSecond(batches, AT_ONCE, () =>
        objects.change(range(ours, (ours += ROWS_PER_BATCH)).map((n) => benchChange(n, 1_700_000_000_000_000 + n))),
      ),
    () => perSecond(batches, AT_ONCE, () => bare.put(range(theirs, (theirs += ROWS_PER_BATCH)).map(bareRow))),
  );
  return {
    name: "put with 13 terms, durable",
    unit: "objects/s",
    ...perRow(measured),
    againstName: "bare lmdb",
    kind: "ratio",
    goal: 0.5,
  };
}

async function findFigure(objects: ObjectStore, bare: BareLmdb): Promise<Figure> {
  const term = (): string => `a1=host-${randomBytes(2).readUInt16LE() % 1_000}`;
  const measured = await inTurns(
    () => perSecond(FINDS_PER_ROUND, AT_ONCE, () => objects.find({ terms: [term()] }, { limit: 20 })),
    () => perSecond(FINDS_PER_ROUND, AT_ONCE, () => Promise.resolve(bare.find(term(), 20))),
  );
  return {
    name: "find 20 by one term",
    unit: "queries/s",
    ...measured,
    againstName: "bare lmdb",
    kind: "ratio",
    goal: 0.4,
  };
}

function perRow({ ours, against }: { ours: number; against: number }): { ours: number; against: number } {
  return { ours: ours * ROWS_PER_BATCH, against: against * ROWS_PER_BATCH };
}

function bareRow(n: number): BareRow {
  return { key: `${BENCH_CID}:row-${n}`, cells: benchCells(n), terms: benchTerms(n) };
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index);
}
