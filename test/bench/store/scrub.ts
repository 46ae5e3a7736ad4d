import { ObjectService } from "../../../controller/areas/objects/index.ts";
import { ScrubService } from "../../../controller/areas/cluster/index.ts";
import { SCRUB_RATE_DEFAULT, SCRUB_RATE_MAX } from "../../../common/limits.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import type { Runtime } from "../../../controller/runtime.ts";
import { testPrincipal } from "../../helpers/time/runtime.ts";
import type { Figure } from "../driver/frame.ts";
import { visibleObjects } from "../../../controller/areas/query/index.ts";

const OBJECTS = 5_000;
const BATCH = 500;
const PATH = "/matrix/bench/scrubbed";
const INDEXES = ["host", "state", "owner"];

/** Comparisons per second of a scrub that only the store limits, beside its default rate. */
export async function scrubFigure(stores: Stores, runtime: Runtime): Promise<Figure> {
  const admin = testPrincipal();
  const objects = new ObjectService({ visible: visibleObjects, stores, runtime });
  const columns = INDEXES.map((name) => ({ name, type: "varchar" as const }));
  const options = { keyMode: "manu" as const, autosearch: true };
  await objects.createClass(admin, { path: PATH, columns, indexes: INDEXES, options });
  const row = (n: number) => ({ id: `o${n}`, host: `host-${n % 1_000}`, state: `state-${n % 5}`, owner: `owner ${n}` });
  for (let from = 0; from < OBJECTS; from += BATCH)
    await objects.unrestricted.insert(
      admin,
      PATH,
      Array.from({ length: BATCH }, (_, at) => row(from + at)),
    );
  let comparisons = 0;
  const scrubs = new ScrubService({
    stores,
    runtime,
    objects: {
      async scrubIndexes(...given) {
        const page = await objects.scrubIndexes(...given);
        comparisons += page.comparisons;
        return page;
      },
    },
    controllers: { own: "bench", has: () => true },
    bornMs: () => Promise.resolve(0),
  });
  const began = performance.now();
  await scrubs.begin(admin, { rate: SCRUB_RATE_MAX });
  await scrubs.settled();
  const seconds = (performance.now() - began) / 1_000;
  const { last } = await scrubs.status(admin);
  if (last?.state !== "done" || last.missing > 0) throw new Error(`The scrub was not sound: ${JSON.stringify(last)}`);
  await scrubs.close();
  await objects.close();
  return {
    name: `scrub of ${last.looked.objects} objects and ${last.looked.indexes} rows of indexes`,
    unit: "comparisons/s",
    ours: comparisons / seconds,
    against: SCRUB_RATE_DEFAULT,
    againstName: "the rate a scrub keeps to unless told otherwise",
    kind: "ratio",
    goal: 1,
  };
}
