import { afterAll, beforeAll } from "vitest";
import type { Row } from "../../../common/value.ts";
import { bundle } from "../programs/bundle.ts";
import { realClock } from "../time/clock.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { testPrincipal, testRuntime } from "../time/runtime.ts";
import { ThreadScripts } from "../../../controller/scripting/index.ts";
import type { AuditEntry } from "../../../controller/areas/audit/index.ts";
import { ObjectService } from "../../../controller/areas/objects/index.ts";
import type { DataRule, Principal } from "../../../controller/areas/permissions/index.ts";
import { QueryService, visibleObjects } from "../../../controller/areas/query/index.ts";
import { SearchService } from "../../../controller/areas/query/search/index.ts";

/** Objects, records and versions to search for. */

export const admin = testPrincipal();
export const HOUR_MS = 3_600_000;
export const NOON_MS = Date.UTC(2024, 1, 28, 12);
export const runtime = testRuntime(realClock);
export const audited: AuditEntry[] = [];

/** Classes that are searched by themselves: box, rack, log, doc; not: vault. */
const CLASSES = `create class /matrix/ent/box (host varchar "Host", note text, size int, seen timestamp, config map<varchar,varchar>, free map, keys(host), index(host, size, seen, tags)) with autosearch=true;
  create class /matrix/ent/box/rack (slots int) with autosearch=true;
  create class /matrix/vault (host varchar, note text, keys(host));
  create class /matrix/log (line varchar, level varchar, index(level)) with kind='record', autosearch=true;
  create class /matrix/file (name varchar, fullname varchar, parent varchar, ftype varchar, keys(fullname), index(parent));
  create edge type contain;
  create class /matrix/doc (name varchar, state varchar, keys(name), index(state)) with version=true, autosearch=true`;

const BOXES: readonly Row[] = [
  {
    host: "web-1",
    note: "Disk full: ERROR on /dev/sda1",
    size: 10,
    seen: NOON_MS,
    tags: ["red", "blue"],
    config: { os: "linux" },
    free: { n: 5 },
  },
  { host: "web-2", note: "all quiet", size: 20, seen: NOON_MS - HOUR_MS, tags: ["red"], free: { n: "5" } },
  { host: "db-1", note: "磁盘空间不足 on disk two", size: 30, seen: NOON_MS - 48 * HOUR_MS },
];

let engine: TestEngine;
export let objects: ObjectService;
export let search: SearchService;
let scripts: ThreadScripts;

/** Opens the stores, with objects in them, and a search for all tests of the calling file. */
export function useSearch(): void {
  beforeAll(async () => {
    engine = await openTestEngine();
    objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
    const audit = {
      ready: () => Promise.resolve(),
      record(entry: AuditEntry) {
        audited.push(entry);
        return Promise.resolve();
      },
    };
    const file = await bundle("controller/script-worker.ts", `search-${process.pid}.mjs`);
    scripts = new ThreadScripts({ ...testRuntime(realClock), file, languages: ["lua"], functions: () => [] });
    search = new SearchService({ objects, runtime, audit, engine: () => scripts });
    await new QueryService({ objects, runtime }).rows(admin, CLASSES);
    await objects.unrestricted.insert(admin, "/matrix/ent/box", BOXES);
    await objects.unrestricted.insert(admin, "/matrix/ent/box/rack", [
      { host: "rack-1", note: "ERROR in slot", size: 5, slots: 4 },
    ]);
    await objects.unrestricted.insert(admin, "/matrix/vault", [{ host: "hidden", note: "ERROR nobody searches" }]);
    const lines = ["ERROR disk one", "fine", "ERROR kernel"].map((line, at) => ({
      values: { line, level: at === 1 ? "info" : "error" },
      timeMs: NOON_MS + at * HOUR_MS,
      identity: `s/${at}`,
    }));
    await objects.unrestricted.ingest(admin, "/matrix/log", lines);
    for (const [at, state] of ["draft", "ERROR", "done"].entries())
      await objects.unrestricted.insert(admin, "/matrix/doc", [{ name: "plan", state }], {
        atMs: NOON_MS + at * HOUR_MS,
      });
  });
  afterAll(async () => {
    await scripts.close();
    await objects.close();
    await engine.close();
  });
}

/** Returns the rows of all pages. */
export async function rows(text: string, principal: Principal = admin): Promise<readonly Row[]> {
  const found: Row[] = [];
  const result = await search.search(principal, text);
  for await (const page of result.rows) found.push(...page);
  return found;
}

/** A principal who may read by these rules alone. */
export function ruled(...data: DataRule[]): Principal {
  return { ...admin, user: "ruled", grants: ["*:read"], data };
}
