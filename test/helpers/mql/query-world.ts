import { beforeEach } from "vitest";
import type { Row } from "../../../common/value.ts";
import { realClock } from "../time/clock.ts";
import { MemoryObjects } from "../objects/memory/objects.ts";
import { testPrincipal } from "../time/runtime.ts";
import type { AuditEntry } from "../../../controller/areas/audit/index.ts";
import type { DataRule, Principal } from "../../../controller/areas/permissions/index.ts";
import { QueryService } from "../../../controller/areas/query/index.ts";

export const admin = testPrincipal();
/** Reads only. */
export const viewer = testPrincipal("viewer");

/** Statement that makes the class of these tests. */
export const BOX =
  'create class /matrix/ent/box (host varchar "Host", size int, state enum {"1":["up","running"]}, seen timestamp, tags set<varchar>, keys(host), index(host, size)) with alias=\'b\'';

/** Objects of the running test. Pages have ten rows. */
export let objects: MemoryObjects;
/** Service of the running test over these objects. */
export let query: QueryService;
/** Audit entries of the running test, oldest first. */
export let audited: AuditEntry[];

/** Makes empty objects in memory and a service over them for each test of the calling file. */
export function openQueries(): void {
  beforeEach(() => {
    objects = new MemoryObjects({ nowMs: () => Date.UTC(2024, 0, 1), pageSize: 10 });
    audited = [];
    const audit = {
      ready: () => Promise.resolve(),
      record(entry: AuditEntry) {
        audited.push(entry);
        return Promise.resolve();
      },
    };
    query = new QueryService({ objects, runtime: { clock: realClock }, audit });
  });
}

/** Returns a user who reads every class, restricted by these data rules. */
export function ruled(...data: DataRule[]): Principal {
  return { ...admin, user: "ruled", grants: ["*:read"], data };
}

/** Makes the class and `count` boxes: hosts `h000000` and so on, sizes from zero. */
export async function boxes(count: number): Promise<void> {
  await query.run(admin, BOX);
  const rows = Array.from({ length: count }, (_, index) => ({
    host: `h${String(index).padStart(6, "0")}`,
    size: index,
  }));
  await objects.unrestricted.insert(admin, "/matrix/ent/box", rows);
}

/** Returns the rows of all pages. */
export async function collect(rows: AsyncIterable<readonly Row[]>): Promise<Row[]> {
  const all: Row[] = [];
  for await (const page of rows) all.push(...page);
  return all;
}
