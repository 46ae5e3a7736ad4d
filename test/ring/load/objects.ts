import type { Clock, Random } from "../../../common/time.ts";
import { uniqueCid } from "../../../controller/store/contract/harness.ts";
import type { TenantStore } from "../../../controller/store/engine.ts";
import type { EntityKey, StoredRecord } from "../../../controller/store/objects.ts";
import type { Calls } from "./calls.ts";
import { number, readNumber } from "./numbers.ts";

const ENTITIES_PER_WRITER = 6;
const RECORDS_PER_BATCH = 10;
const ULID_CHARACTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

interface ObjectLoadOptions {
  readonly calls: Calls;
  readonly clock: Clock;
  readonly random: Random;
}

/** Writers and readers of entities and records, and what was acknowledged to them. */
export class ObjectLoad {
  readonly #store: TenantStore;
  readonly #calls: Calls;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #cid = uniqueCid();
  readonly #recordCid = uniqueCid();
  /** Number of acknowledged writes of each entity. */
  readonly #entities = new Map<string, { writes: number; lastUs: number }>();
  readonly #records = new Set<string>();

  constructor(store: TenantStore, { calls, clock, random }: ObjectLoadOptions) {
    this.#store = store;
    this.#calls = calls;
    this.#clock = clock;
    this.#random = random;
  }

  async writeEntity(name: string, round: number): Promise<void> {
    const key = { cid: this.#cid, id: `${name}-${round % ENTITIES_PER_WRITER}` };
    const known = this.#entities.get(key.id);
    const timeUs = Math.max(this.#clock.nowMs() * 1_000, (known?.lastUs ?? 0) + 1);
    const writes = known?.writes ?? 0;
    const cells = new Map([
      ["1", number(writes)],
      [`2/${writes}`, number(writes)],
    ]);
    const birth = known === undefined ? ({ birth: true } as const) : {};
    await this.#calls.make("write", () =>
      this.#store.objects.change([
        { key, timeUs, ...birth, cells, addTerms: [`c${this.#cid}`], version: number(writes) },
      ]),
    );
    this.#entities.set(key.id, { writes: writes + 1, lastUs: timeUs });
  }

  async writeRecords(name: string): Promise<void> {
    const records = Array.from(
      { length: RECORDS_PER_BATCH },
      (): StoredRecord => ({ cid: this.#recordCid, id: this.#ulid(), value: number(1), terms: [name] }),
    );
    await this.#calls.make("write", () => this.#store.objects.append(records));
    for (const record of records) this.#records.add(record.id);
  }

  /** Reads entities by the index, then by key. */
  async readEntities(): Promise<void> {
    const expected = [...this.#entities.keys()];
    const found = new Set<string>();
    for await (const entity of this.#calls.pages((page) =>
      this.#store.objects.find({ terms: [`c${this.#cid}`] }, page),
    ))
      found.add(entity.key.id);
    const missing = expected.filter((id) => !found.has(id));
    if (missing.length > 0) this.#calls.complain(`The index does not find ${missing.join(", ")}.`);
    const known = [...this.#entities].map(([id, { writes }]) => ({ id, writes }));
    const entities = await this.#calls.make("read", () =>
      this.#store.objects.get(known.map(({ id }): EntityKey => ({ cid: this.#cid, id }))),
    );
    known.forEach(({ id, writes }, index) => {
      const seen = readNumber(entities[index]?.cells.get("1")?.value);
      if (seen === undefined || seen < writes - 1)
        this.#calls.complain(`${id} shows ${seen} after ${writes - 1} was acknowledged.`);
    });
  }

  async readTimeline(): Promise<void> {
    const expected = new Set(this.#records);
    const request = { cid: this.#recordCid, fromMs: 0, toMs: this.#clock.nowMs() + 60_000, terms: ["records-1"] };
    const page = await this.#calls.make("read", () => this.#store.objects.timeline(request, { limit: 50 }));
    const newest = [...expected].sort().reverse().slice(0, page.items.length);
    const oldest = page.items.at(-1)?.id ?? "";
    const missing = newest.filter((id) => id > oldest && !page.items.some((record) => record.id === id));
    if (missing.length > 0) this.#calls.complain(`The timeline lacks ${missing.length} records.`);
  }

  async checkEntities(): Promise<void> {
    for (const [id, { writes }] of this.#entities) {
      const key = { cid: this.#cid, id };
      const [entity] = await this.#calls.make("read", () => this.#store.objects.get([key]));
      const elements = [...(entity?.cells.keys ?? [])].filter((cell) => cell.startsWith("2/")).length;
      if (readNumber(entity?.cells.get("1")?.value) !== writes - 1 || elements !== writes)
        this.#calls.complain(`${id} has ${elements} of ${writes} elements.`);
      let versions = 0;
      for await (const version of this.#calls.pages((page) => this.#store.objects.history(key, {}, page)))
        versions += version.value.length > 0 ? 1 : 0;
      if (versions !== writes) this.#calls.complain(`${id} has ${versions} versions of ${writes} writes.`);
    }
  }

  async checkRecords(): Promise<void> {
    const request = { cid: this.#recordCid, fromMs: 0, toMs: this.#clock.nowMs() + 60_000 };
    const found: string[] = [];
    for await (const record of this.#calls.pages((page) => this.#store.objects.timeline(request, page)))
      found.push(record.id);
    const missing = [...this.#records].filter((id) => !found.includes(id));
    if (missing.length > 0 || found.length !== this.#records.size)
      this.#calls.complain(
        `Of ${this.#records.size} records ${missing.length} are missing and ${found.length} are found.`,
      );
  }

  #ulid(): string {
    let rest = this.#clock.nowMs();
    let time = "";
    for (let i = 0; i < 10; i++) {
      time = `${ULID_CHARACTERS[rest % 32] ?? ""}${time}`;
      rest = Math.floor(rest / 32);
    }
    return time + Array.from({ length: 16 }, () => ULID_CHARACTERS[Math.floor(this.#random.next() * 32)]).join("");
  }
}
