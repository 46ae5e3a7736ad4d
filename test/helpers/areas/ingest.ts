import type { Batch, Entry, Records, ToldTime } from "../../../proto/gen/agent/v1/agent.ts";
import type { Row } from "../../../common/value.ts";
import { CONSOLE_LOG_CLASSES } from "../../../controller/areas/consolelog/index.ts";
import { IngestService, RecordWriter, type SentPolicies } from "../../../controller/areas/ingest/index.ts";
import type { CommandEntrySink } from "../../../controller/areas/ingest/types.ts";
import { ObjectService, type Unrestricted } from "../../../controller/areas/objects/index.ts";
import { POLICY_GAP_PATH, POLICY_RUN_PATH, policyClasses } from "../../../controller/areas/policies/index.ts";
import type { EntrySource } from "../../../controller/areas/hosts/index.ts";
import { RuleService } from "../../../controller/areas/rules/index.ts";
import { secretBox } from "../../../controller/secrets/index.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import type { Clock } from "../../../common/time.ts";
import { realClock } from "../time/clock.ts";
import { testEntries } from "./config.ts";
import { openTestEngine } from "../engines/engine.ts";
import { noReports } from "../hosts/named-hosts.ts";
import { testPrincipal, testRuntime } from "../time/runtime.ts";
import { visibleObjects } from "../../../controller/areas/query/index.ts";

/** Today, because records expire. */
export const BASE_MS = Date.now();

/** The classes of runs and gaps of policies. */
export const POLICY_RECORD_CLASSES = policyClasses({
  all: () => Promise.resolve([]),
  remove: () => Promise.resolve(),
  states: { rows: () => noReports() },
}).filter(({ kind }) => kind === "record");
export const POLICY_RECORD_PATHS = { runs: POLICY_RUN_PATH, gaps: POLICY_GAP_PATH };

const ADMIN = testPrincipal();
const RUNTIME = testRuntime(realClock);
const COLUMNS = [
  { name: "name", type: "varchar" },
  { name: "n", type: "int" },
] as const;

/** An entry of an agent with these lines as raw records. */
export function recordsEntry(sequence: number, lines: readonly string[], rule: string): Entry {
  const records: Records = {
    policy: "p",
    policyRevision: 1,
    source: "/var/log/a",
    generation: "g",
    offset: 0,
    groups: {},
    rule,
    cut: [],
    malformed: [],
    raw: Buffer.alloc(0),
    rawLengths: [],
    records: lines.map((line) => Buffer.from(line)),
  };
  return { sequence, timeMs: BASE_MS + sequence, traceparent: "", body: { $case: "records", value: records } };
}

/** The key of all controllers. */
export const TEST_KEYS = secretBox([new Uint8Array(32).fill(1)]);

/** Pins entries as an agent does, and sends them again with the same pin. */
export class TestOutbox {
  readonly #source: EntrySource;
  #batches: Batch[] = [];
  #nextUs = 0;
  #last: ToldTime | undefined;

  constructor(source: EntrySource) {
    this.#source = source;
  }

  /**
   * Returns the batches of these entries. Those without a batch become a new one, pinned by this controller's values.
   */
  async batches(ingest: Pick<IngestService, "told">, entries: readonly Entry[], missing = 0): Promise<Batch[]> {
    const rules = new Set(entries.flatMap(({ body }) => (body?.$case === "records" ? body.value.rule : [])));
    const told = await ingest.told(this.#source, { rules: [...rules].filter((rule) => rule !== ""), last: this.#last });
    const fresh = entries.filter(({ sequence }) => this.#of(sequence) === undefined);
    if (fresh.length > 0) {
      const { time, rules: pinned } = told;
      const writeUs = Math.max(this.#nextUs, time?.us ?? 0);
      const records = fresh.map(({ body }) => (body?.$case === "records" ? body.value.records.length : 0));
      this.#nextUs = writeUs + records.reduce((sum, count) => sum + Math.max(1, count), 0);
      this.#last = time;
      const pin = { writeUs, told: time, rules: pinned };
      this.#batches.push({ streamId: this.#source.streamId, entries: fresh, pin, missing });
    }
    const wanted = new Set(entries.map(({ sequence }) => sequence));
    return this.#batches.filter((batch) => batch.entries.some(({ sequence }) => wanted.has(sequence)));
  }

  /** Returns the last sequence. */
  async send(
    ingest: Pick<IngestService, "told" | "accept">,
    entries: readonly Entry[],
    missing?: number,
  ): Promise<number> {
    await ingest.accept(this.#source, await this.batches(ingest, entries, missing));
    return entries.at(-1)?.sequence ?? 0;
  }

  /** Forgets the pins, as after a controller refused them. */
  forget(): void {
    this.#batches = [];
  }

  #of(sequence: number): Batch | undefined {
    return this.#batches.find((batch) => batch.entries.some((entry) => entry.sequence === sequence));
  }
}

/** Policies that count as sent to every host: any policy and rule that a test names. */
export const EVERYTHING_SENT: Pick<SentPolicies, "missing" | "look" | "needs" | "zones"> = {
  zones: () => Promise.resolve({}),
  missing: () => Promise.resolve({ policies: new Set<string>(), rules: new Set<string>() }),
  look: () => undefined,
  needs: () => Promise.resolve(false),
};

/** Replacements for the real stores and objects, for commands that accept everything, and for `EVERYTHING_SENT`. */
interface TestIngestOptions {
  readonly stores?: Stores;
  readonly objects?: Unrestricted<"ingest">;
  readonly commands?: CommandEntrySink;
  readonly sent?: Pick<SentPolicies, "missing" | "look" | "needs" | "zones">;
  readonly clock?: Clock;
}

/**
 * Ingest over a real engine, with the record classes `/matrix/line`, `/matrix/other` and `/matrix/keyed` (key `name`).
 */
export async function openTestIngest() {
  const engine = await openTestEngine();
  const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: RUNTIME });
  for (const definition of [...POLICY_RECORD_CLASSES, ...CONSOLE_LOG_CLASSES]) objects.registerSystemClass(definition);
  const rules = new RuleService({ stores: engine, entries: testEntries(engine), objects });
  const writer = (over: Unrestricted<"ingest">) =>
    new RecordWriter({ objects: over, classes: POLICY_RECORD_PATHS, clock: RUNTIME.clock });
  for (const path of ["/matrix/line", "/matrix/other"])
    await objects.createClass(ADMIN, { path, kind: "record", columns: COLUMNS });
  await objects.createClass(ADMIN, { path: "/matrix/keyed", columns: COLUMNS, keys: ["name"] });
  return {
    engine,
    objects,
    rules,
    /** Creates the ingest of one controller. */
    controller: (over: TestIngestOptions = {}) =>
      new IngestService({
        stores: over.stores ?? engine,
        runtime: { ...RUNTIME, ...(over.clock && { clock: over.clock }) },
        keys: TEST_KEYS,
        rules,
        records: writer(over.objects ?? objects),
        commands: over.commands ?? { accept: () => Promise.resolve(new Set<string>()) },
        sent: over.sent ?? EVERYTHING_SENT,
        ospaceOf: (tenant) => Promise.resolve(`/${tenant}`),
      }),
    rows: async (path: string): Promise<readonly Row[]> => {
      const rows: Row[] = [];
      for await (const page of objects.unrestricted.read(ADMIN, { class: path, subtree: false }))
        rows.push(...page.map((row) => row.values));
      return rows.sort((a, b) => String(a["name"]).localeCompare(String(b["name"])));
    },
    async [Symbol.asyncDispose]() {
      await objects.close();
      await engine[Symbol.asyncDispose]();
    },
  };
}
