import { describe, expect, it } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { openTestEngine } from "../../../test/helpers/engines/engine.ts";
import { EVERYTHING_SENT, POLICY_RECORD_PATHS, TEST_KEYS } from "../../../test/helpers/areas/ingest.ts";
import { testRuntime } from "../../../test/helpers/time/runtime.ts";
import { realClock, seededRandom } from "../../../test/helpers/time/clock.ts";
import { testEntries } from "../../../test/helpers/areas/config.ts";
import { again } from "../../store/contract/harness.ts";
import { ObjectService, type Unrestricted } from "../objects/index.ts";
import type { Workers } from "../../workers/index.ts";
import { PatternService, RuleService, type RuleTasks } from "../rules/index.ts";
import { RULE_TASKS } from "../rules/tasks.ts";
import { IngestService, RecordWriter } from "./index.ts";
import {
  ADMIN,
  SOURCE,
  KEY,
  CLASSES,
  RUNTIME,
  engine,
  outbox,
  objects,
  rules,
  useIngest,
  prepared,
  newIngest,
  entry,
  rowsOf,
} from "../../../test/helpers/areas/ingest-world.ts";
import { visibleObjects } from "../query/index.ts";

useIngest();

/** Behind their times, of two entries of the stream; never to be changed, as an agent may have pinned entries and a controller stored them. */
const IDS_OF_FORMER_VERSIONS = ["FXBH2WZ062V00000", "FXBH2WZ062V00001", "D0AX9KZQE0K00000"];

describe("ingest", () => {
  it("makes the same rows again when a batch comes again, whole or cut elsewhere", async () => {
    const ingest = await prepared();
    const entries = [entry(1, ["a,1", "b,2"]), entry(2, ["c,3"]), entry(3, ["d,4"])];
    await outbox.send(ingest, entries);
    const restarted = newIngest(objects);
    await outbox.send(restarted, entries);
    outbox.forget();
    await outbox.send(restarted, entries.slice(0, 2));
    await outbox.send(restarted, entries.slice(2));
    expect(await rowsOf("/matrix/line")).toHaveLength(4);
  });

  it("makes of a batch that was pinned before an upgrade the ids that were made of it then", async () => {
    const ingest = await prepared();
    await outbox.send(ingest, [entry(1, ["a,1", "b,2"]), entry(2, ["c,3"])]);
    const found = await Promise.all(
      ["a", "b", "c"].map(async (name) => {
        for await (const page of objects.unrestricted.read(ADMIN, { class: "/matrix/line", subtree: false }))
          for (const { id, values } of page) if (values["name"] === name) return id;
        return undefined;
      }),
    );
    expect(found.map((id) => id?.slice("line:".length + 10))).toEqual(IDS_OF_FORMER_VERSIONS);
  });

  it("repeats what was begun with the rule text it was begun with, and takes the new text afterwards", async () => {
    const ingest = await prepared();
    await ingest.acknowledged(SOURCE);
    await outbox.send(ingest, [entry(1, ["a,1"])]);
    // The mark is written, the rows are not all: as when the controller dies in the middle.
    await expect(outbox.send(newIngest(failing()), [entry(2, ["b,2"])])).rejects.toThrow("away");
    await rules.put(ADMIN, KEY, "--class=/matrix/line\n--parser=csv\n--fields=n,name\n");
    const restarted = newIngest(objects);
    await restarted.acknowledged(SOURCE);
    await outbox.send(restarted, [entry(2, ["b,2"])]);
    await outbox.send(restarted, [entry(3, ["3,c"])]);
    expect(await rowsOf("/matrix/line")).toEqual([
      { name: "a", n: 1 },
      { name: "b", n: 2 },
      { name: "c", n: 3 },
    ]);
  });

  it("repeats what was begun with the patterns and the table it was begun with, on every controller", async () => {
    const ingest = await prepared();
    await ingest.acknowledged(SOURCE);
    const second = new RuleService({ stores: engine, entries: testEntries(engine), objects });
    const patterns = new PatternService({ stores: engine, runtime: { ...RUNTIME, random: seededRandom(1) } });
    const putPattern = (pattern: string) => patterns.put(ADMIN, { name: "OWN", pattern, eg: "" });
    await putPattern("(?:a|b)");
    await rules.put(
      ADMIN,
      KEY,
      "--class=/matrix/line\n--parser=grok\n--pattern_1=^%{OWN:name}$\n--var_n=lookup name\n",
    );
    await rules.putExtension(ADMIN, KEY, "key:a\tval:1\nkey:b\tval:2\n");
    const first = await second.load(ADMIN, KEY);
    await outbox.send(ingest, [entry(1, ["a"])]);
    await expect(outbox.send(newIngest(failing()), [entry(2, ["b", "c"])])).rejects.toThrow("away");
    await putPattern("(?:b|c)");
    await rules.putExtension(ADMIN, KEY, "key:b\tval:20\nkey:c\tval:30\n");
    const next = await second.load(ADMIN, KEY);
    expect(next.digest).not.toBe(first.digest);
    const restarted = newIngest(objects);
    await restarted.acknowledged(SOURCE);
    await outbox.send(restarted, [entry(2, ["b", "c"])]);
    await outbox.send(restarted, [entry(3, ["c"])]);
    expect(await rowsOf("/matrix/line")).toEqual([
      { name: "a", n: 1 },
      { name: "b", n: 2 },
      { name: "c", n: 30 },
    ]);
  });

  it.each([1, 2, 3])(
    "stores each record once on a store that fails and loses answers, when the agent repeats what is not acknowledged (seed %i)",
    async (seed) => {
      await using nasty = await openTestEngine({ faultySeed: seed });
      const over = new ObjectService({
        visible: visibleObjects,
        stores: nasty,
        runtime: { ...testRuntime(realClock), random: seededRandom(seed) },
      });
      for (const definition of CLASSES) over.registerSystemClass(definition);
      const records = new RecordWriter({
        objects: over,
        classes: POLICY_RECORD_PATHS,
        clock: RUNTIME.clock,
      });
      const texts = new RuleService({ stores: nasty, entries: testEntries(nasty), objects: over });
      const columns = [
        { name: "name", type: "varchar" },
        { name: "n", type: "int" },
      ] as const;
      await over.createClass(ADMIN, { path: "/matrix/line", kind: "record", columns }, { ifNotExists: true });
      await again(() => texts.put(ADMIN, KEY, "--class=/matrix/line\n--parser=csv\n--fields=name,n\n"));
      const controller = () =>
        new IngestService({
          stores: nasty,
          runtime: RUNTIME,
          keys: TEST_KEYS,
          rules: texts,
          records,
          commands: { accept: () => Promise.resolve(new Set()) },
          sent: EVERYTHING_SENT,
          ospaceOf: () => Promise.resolve("/matrix"),
        });
      const entries = Array.from({ length: 120 }, (_, at) => entry(at + 1, [`a${at},${at}`, `b${at},${at}`]));
      let failures = 0;
      for (let ingest = controller(), done = 0; done < entries.length; ) {
        try {
          done = await outbox.send(ingest, entries.slice(done, done + 3));
        } catch {
          failures++;
          // Every other time it is another controller that goes on.
          if (failures % 2 === 0) ingest = controller();
          const known = await again(() => ingest.acknowledged(SOURCE));
          expect(known).toBeLessThanOrEqual(done);
        }
      }
      // With every seed, some of forty batches fail.
      expect(failures).toBeGreaterThan(0);
      const rows: unknown[] = [];
      for await (const page of over.unrestricted.read(ADMIN, { class: "/matrix/line", subtree: false }))
        rows.push(...page.map((row) => row.values["name"]));
      expect(rows.sort()).toEqual(entries.flatMap((_, at) => [`a${at}`, `b${at}`]).sort());
      const gaps: unknown[] = [];
      for await (const page of over.unrestricted.read(ADMIN, { class: "/matrix/system/policygap", subtree: false }))
        gaps.push(...page);
      expect(gaps).toEqual([]);
      await over.close();
    },
  );

  it("acknowledges nothing of a batch whose thread ended, and stores it once when it is repeated", async () => {
    const tenants: string[] = [];
    let broken = true;
    const run: Workers<{ parseRecords: RuleTasks["parseRecords"] }>["run"] = (name, input, { tenant }) => {
      tenants.push(tenant);
      if (broken) return Promise.reject(new AppError("internal", "The thread ended."));
      return Promise.resolve(RULE_TASKS[name](input) as never);
    };
    const ingest = await prepared({ run: run });
    await rules.put(ADMIN, KEY, "--class=/matrix/line\n--parser=grok\n--pattern_1=^%{WORD:name},%{INT:n:int}\n");
    const batch = [entry(1, ["a,1"]), entry(2, ["b,2"]), entry(3, [`c,3${" ".repeat(9_000)}`, "d,4"])];
    await expect(outbox.send(ingest, batch)).rejects.toMatchObject({ code: "internal" });
    broken = false;
    expect(await outbox.send(ingest, batch)).toBe(3);
    expect((await rowsOf("/matrix/line")).map(({ name, n }) => [name, n])).toEqual([
      ["a", 1],
      ["b", 2],
      ["c", 3],
      ["d", 4],
    ]);
    expect(tenants).toEqual(["matrix", "matrix"]);
  });
});

/** Takes no rows. */
function failing(): Unrestricted<"ingest"> {
  return { unrestricted: { ingest: () => Promise.reject(new AppError("unavailable", "away")) } };
}
