import type { Row, Value } from "../../common/value.ts";
import { ObjectService } from "../../controller/areas/objects/index.ts";
import { QueryService, SearchService, visibleObjects } from "../../controller/areas/query/index.ts";
import { realClock } from "../helpers/time/clock.ts";
import { openTestEngine } from "../helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../helpers/time/runtime.ts";

export const ITEM = "/matrix/h/item";
export const WIDE = "/matrix/h/wide";
export const TEXTS = "/matrix/h/note";
export const LETTERS = "abcdefghij";
const WIDE_COLUMNS = 490;
const ITEMS = 2_000;
const WIDE_ROWS = 300;
const NOTES = 400;
const NOTE_CHARACTERS = 100_000;
const ROWS_AT_ONCE = 100;

const admin = testPrincipal();

/** Small objects that can be joined in any number of ways, wide ones, and some with long texts. */
export interface World extends AsyncDisposable {
  readonly query: QueryService;
  readonly search: SearchService;
}

export async function openWorld(): Promise<World> {
  const engine = await openTestEngine();
  const runtime = testRuntime(realClock);
  const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  const query = new QueryService({ objects, runtime, sortFolder: engine.dir });
  const search = new SearchService({ objects, runtime, sortFolder: engine.dir });
  await query.rows(admin, classes());
  for (const { path, rows } of batches()) await objects.unrestricted.insert(admin, path, rows);
  return {
    query,
    search,
    async [Symbol.asyncDispose]() {
      await objects.close();
      await engine[Symbol.asyncDispose]();
    },
  };
}

function classes(): string {
  const columns = Array.from({ length: WIDE_COLUMNS }, (_, at) => `c${at} varchar`).join(", ");
  return `create class ${ITEM} (host varchar, size int, grp varchar, tags list<varchar>, conf map<varchar,varchar>, index(size)) with autosearch=true;
    create class ${WIDE} (${columns});
    create class ${TEXTS} (name varchar, grp varchar, note text, keys(name))`;
}

/** Creates the same objects in a controller by MQL. */
export async function fillWorld(mql: (text: string, values: readonly (readonly Value[])[]) => Promise<unknown>) {
  await mql(classes(), []);
  for (const { path, rows } of batches()) {
    const names = Object.keys(rows[0] ?? {});
    const text = `insert into ${path} (${names.join(", ")}) values (${names.map(() => "?").join(", ")})`;
    await mql(
      text,
      rows.map((row) => names.map((name) => row[name] ?? null)),
    );
  }
}

interface Batch {
  readonly path: string;
  readonly rows: readonly Row[];
}

function* batches(): Generator<Batch> {
  yield* batchesOf(ITEM, ITEMS, (n) => ({ host: `h${n}`, size: n, grp: "all", tags: ["a"], conf: { k1: `v${n}` } }));
  yield* batchesOf(WIDE, WIDE_ROWS, (n) =>
    Object.fromEntries(Array.from({ length: WIDE_COLUMNS }, (_, at) => [`c${at}`, `value ${at} ${n}`])),
  );
  yield* batchesOf(TEXTS, NOTES, (n) => ({ name: `n${n}`, grp: `g${n % 4}`, note: `${n} ${noteOf(n)}` }));
}

function* batchesOf(path: string, count: number, rowOf: (n: number) => Row): Generator<Batch> {
  for (let from = 0; from < count; from += ROWS_AT_ONCE) {
    yield { path, rows: Array.from({ length: Math.min(ROWS_AT_ONCE, count - from) }, (_, at) => rowOf(from + at)) };
  }
}

/** One with words, one with a single letter only. */
function noteOf(n: number): string {
  return n % 2 === 0 ? "a".repeat(NOTE_CHARACTERS) : `some words of number ${n} `.repeat(NOTE_CHARACTERS / 24);
}
