import { describe, expect, test } from "vitest";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { testEntries } from "../../../test/helpers/areas/config.ts";
import {
  EVERYTHING_SENT,
  POLICY_RECORD_PATHS,
  recordsEntry,
  TEST_KEYS,
  TestOutbox,
} from "../../../test/helpers/areas/ingest.ts";
import { onCluster } from "../../../test/helpers/engines/engine.ts";
import { testRuntime } from "../../../test/helpers/time/runtime.ts";
import { TIMES } from "../../../test/helpers/time/times.ts";
import {
  admin,
  bound,
  BOXES,
  Controller,
  engine,
  mortalController,
  type MortalOptions,
  opened,
  openTriggers,
} from "../../../test/helpers/areas/trigger-world.ts";
import { AppError } from "../../../common/errors.ts";
import type { Unrestricted } from "../objects/index.ts";
import { PIN_REFUSED } from "../hosts/index.ts";
import { IngestService, RecordWriter } from "../ingest/index.ts";
import { RuleService } from "../rules/index.ts";

openTriggers();

/** On a busy machine a run takes longer than the patience of triggers; `isHasty` makes that certain. */
const DEATHS: readonly MortalOptions[] = [
  { isWritten: true, isHasty: false },
  ...(onCluster ? [] : [{ isWritten: false, isHasty: true }]),
];

test.each(DEATHS)(
  "at whatever write its controller dies, a change reaches its trigger by another one (that write came to pass: $isWritten)",
  async (options) => {
    const survivor = await opened();
    await survivor.put("copy", "odb.mql('insert into /matrix/copy of=?, size=?', OBJECT.name, OBJECT.size)", {
      before: "false",
    });
    const copies = "select of, size from /matrix/copy order by of";
    let deaths = 0;
    for (; ; deaths += 1) {
      const dying = mortalController(options);
      const { controller } = dying;
      await controller.mql(BOXES);
      const died = dying.dieAt(deaths);
      const name = `box${deaths}`;
      const lived = controller
        .mql(`insert into /matrix/box name='${name}', size=${deaths}`)
        .then(() =>
          controller.until(
            () => controller.mql(copies),
            (rows) => rows.some(({ of }) => of === name),
          ),
        )
        .then(() => controller.close())
        .then(() => true);
      lived.catch(() => undefined);
      if (await Promise.race([lived, died.then(() => false)])) break;
      await dying.bury();
      await survivor.triggers.maintain("matrix");
      const boxes = await survivor.mql(BOXES);
      const wanted = boxes.map(({ name, size }) => ({ of: name, size }));
      await survivor.until(
        () => survivor.mql(copies),
        (rows) => rows.length >= wanted.length,
      );
      expect(await survivor.mql(copies), `dead at write ${deaths}`).toEqual(wanted);
    }
    // At least: the intent, the object, the copy and the end of the intent.
    expect(deaths).toBeGreaterThanOrEqual(4);
    // On a busy machine the survivor may still be at changes that it took over.
    await survivor.until(
      () => survivor.mql("select id from /matrix/system/triggerevent"),
      (rows) => rows.length === 0,
    );
  },
);

/** Each life takes a second on the cluster, and a fifth of it on the embedded engine. */
const WRITES_BETWEEN = TIMES > 1 ? 1 : onCluster ? 5 : 3;

test.each(DEATHS)(
  "at whatever write its controller dies, a batch is counted once in each object, and told (that write came to pass: $isWritten)",
  async (options) => {
    const survivor = await opened();
    await survivor.put("count", 'if ACTION ~= "DELETE" then OBJECT.size = ((OLD and OLD.size) or 0) + 1 end');
    await survivor.put("tell", "odb.mql('insert into /matrix/copy of=?', ACTION .. OBJECT.name .. OBJECT.size)", {
      before: "false",
    });
    const copies = "select of from /matrix/copy limit 10000";
    const wanted: string[] = [];
    let deaths = 0;
    for (let lived = false; !lived; deaths += WRITES_BETWEEN) {
      const dying = mortalController(options);
      const { controller } = dying;
      await controller.mql(BOXES);
      const died = dying.dieAt(deaths);
      const [a, b] = [`a${deaths}_`, `b${deaths}_`];
      const batch = `begin insert into /matrix/box (name) values ('${a}'), ('${b}');
        update /matrix/box set owner='x', notes = notes + ['n'] where name in ('${a}', '${b}'); delete from /matrix/box where name='${b}'; end`;
      const made = controller.mql(batch).then(() => true);
      made.catch(() => undefined);
      lived = await Promise.race([made, died.then(() => false)]);
      await dying.bury();
      await survivor.query.maintain("matrix");
      await survivor.triggers.maintain("matrix");
      expect(
        await survivor.mql(`select size, owner, notes from /matrix/box where name like '%${deaths}_'`),
        `dead at write ${deaths}`,
      ).toEqual([{ size: 2, owner: "x", notes: ["n"] }]);
      wanted.push(`INSERT${a}1`, `INSERT${b}1`, `UPDATE${a}2`, `UPDATE${b}2`, `DELETE${b}2`);
      await survivor.until(
        () => survivor.mql(copies),
        (rows) => wanted.every((name) => rows.some(({ of }) => of === name)),
      );
    }
    const told = (await survivor.mql(copies)).map(({ of }) => String(of));
    // An insert made before its controller died exists when it is repeated, so it is reported again as an update.
    expect(told.filter((one) => !/^UPDATE.*_1$/.test(one)).sort()).toEqual([...wanted].sort());
    expect(deaths).toBeGreaterThan(5);
  },
);

describe("a batch that is repeated", () => {
  const BOX_RULE = "/matrix/rules/box";
  const LINE_RULE = "/matrix/rules/line";
  const RULES: readonly (readonly [string, string])[] = [
    [BOX_RULE, "--class=/matrix/box\n--parser=json\n"],
    [LINE_RULE, "--class=/matrix/line\n--parser=json\n"],
  ];
  const source = { tenant: "matrix", host: "web-1", streamId: "stream-0001" };

  /** Ingest of the controller. `failing`: only the first rows of each class are stored, then the store fails. */
  function ingestOf({ objects }: Controller, rules: RuleService, failing = false): IngestService {
    const partly: Unrestricted<"ingest"> = {
      unrestricted: {
        ingest: async (principal, path, records, options) => {
          await objects.unrestricted.ingest(principal, path, records.slice(0, 5), options);
          throw new AppError("unavailable", "away");
        },
      },
    };
    const over = failing ? partly : objects;
    return new IngestService({
      stores: engine,
      runtime: testRuntime(realClock),
      keys: TEST_KEYS,
      rules,
      records: new RecordWriter({ objects: over, classes: POLICY_RECORD_PATHS, clock: realClock }),
      commands: { accept: () => Promise.resolve(new Set<string>()) },
      sent: EVERYTHING_SENT,
      ospaceOf: (tenant) => Promise.resolve(`/${tenant}`),
    });
  }

  async function ruled(controller: Controller): Promise<RuleService> {
    const rules = new RuleService({ stores: engine, entries: testEntries(engine), objects: controller.objects });
    for (const [key, text] of RULES) await rules.put(admin, key, text);
    return rules;
  }

  const numbers = Array.from({ length: 12 }, (_, at) => String(at).padStart(2, "0"));
  const boxes = (letter: string) => numbers.map((at) => JSON.stringify({ name: letter + at, text: at, extra: "e" }));
  const lines = numbers.map((at) => JSON.stringify({ text: at }));

  test("makes the rows of the first time, whatever was edited meanwhile", async () => {
    const controller = await opened();
    const { mql } = bound(controller);
    await mql("alter class /matrix/box add column text varchar");
    await mql("alter class /matrix/box add column spare varchar");
    const rules = await ruled(controller);
    await controller.put("mark", "OBJECT.owner = 'z' OBJECT.size = 1 OBJECT.spare = 's'");
    await controller.put("add", "OBJECT.text = OBJECT.text .. ' first'");
    await controller.put("stamp", "OBJECT.text = OBJECT.text .. ' first'", { of: "/matrix/line" });
    await controller.put("tell", "odb.mql('insert into /matrix/copy of=?', OBJECT.name)", { before: "false" });
    const entries = [recordsEntry(1, boxes("b"), BOX_RULE), recordsEntry(2, lines, LINE_RULE)];
    const outbox = new TestOutbox(source);
    await expect(outbox.send(ingestOf(controller, rules, true), entries)).rejects.toThrow("away");
    const copied = (writer: Controller, count: number) =>
      writer.until(
        () => mql("select of from /matrix/copy limit 1000"),
        (rows) => rows.length === count,
      );
    await copied(controller, 5);

    await controller.put("mark", "OBJECT.owner = 'a' OBJECT.size = 2");
    await controller.triggers.remove(admin, { class: "/matrix/box", name: "add" });
    await controller.put("stamp", "OBJECT.text = OBJECT.text .. ' second'", { of: "/matrix/line" });
    await controller.put("note", "OBJECT.notes = {'new'}");
    await mql("alter class /matrix/box add column extra varchar");
    await mql("alter class /matrix/box drop column spare");
    await mql("alter class /matrix/box add key text");
    const second = new Controller("second");
    const ingest = ingestOf(
      second,
      new RuleService({ stores: engine, entries: testEntries(engine), objects: second.objects }),
    );
    await outbox.send(ingest, entries);
    await outbox.send(ingest, entries);

    const read = "select id, owner, size, text, notes, extra from /matrix/box order by id limit 1000";
    expect(await mql(read)).toEqual(
      numbers.map((at) => ({ id: `box:b${at}`, owner: "z", size: 1, text: `${at} first`, notes: null, extra: null })),
    );
    const told = await mql("select text from /matrix/line limit 1000");
    expect(told.map(({ text }) => String(text)).sort()).toEqual(numbers.map((at) => `${at} first`));
    expect(await mql("select msg from /matrix/consolelog/rule limit 10")).toEqual([]);
    await copied(second, numbers.length);

    await outbox.send(ingest, [recordsEntry(3, boxes("c").slice(0, 1), BOX_RULE)]);
    expect((await mql(read)).filter(({ id }) => String(id).startsWith("box:c"))).toEqual([
      { id: "box:c00:00", owner: "a", size: 2, text: "00", notes: ["new"], extra: "e" },
    ]);
  });

  test("is counted once in each object by a trigger before it; one with a time of its own is a write of its own", async () => {
    const controller = await opened();
    const { mql } = bound(controller);
    const rules = await ruled(controller);
    await controller.put("count", "OBJECT.size = ((OLD and OLD.size) or 0) + 1 OBJECT.notes = {tostring(OBJECT.size)}");
    const entries = [recordsEntry(1, boxes("b"), BOX_RULE)];
    const outbox = new TestOutbox(source);
    await expect(outbox.send(ingestOf(controller, rules, true), entries)).rejects.toThrow("away");
    for (let time = 0; time < 2; time += 1) await outbox.send(ingestOf(controller, rules), entries);
    const counted = () => mql("select size, notes from /matrix/box limit 1000");
    expect(await counted()).toEqual(numbers.map(() => ({ size: 1, notes: ["1"] })));
    await outbox.send(ingestOf(controller, rules), [recordsEntry(2, boxes("b"), BOX_RULE)]);
    expect(await counted()).toEqual(numbers.map(() => ({ size: 2, notes: ["2"] })));
  });

  test("is asked for anew where its class was dropped and made again", async () => {
    const controller = await opened();
    const { mql } = bound(controller);
    const rules = await ruled(controller);
    const entries = [recordsEntry(1, lines, LINE_RULE)];
    const outbox = new TestOutbox(source);
    const ingest = ingestOf(controller, rules);
    const pinned = await outbox.batches(ingest, entries);
    await mql("drop class /matrix/line; create class /matrix/line (text varchar) with kind='record'");
    await expect(ingest.accept(source, pinned)).rejects.toMatchObject({ details: { reason: PIN_REFUSED } });
    outbox.forget();
    await outbox.send(ingest, entries);
    expect(await mql("select text from /matrix/line limit 1000")).toHaveLength(numbers.length);
  });
});
