import { describe, expect, test } from "vitest";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { ulid } from "ulid";
import type { EntityChange, EntityKey, ObjectStore, TermsRequest } from "../objects.ts";
import { again, all, seedOfRun, uniqueCid, uniqueName, type ContractSubject } from "./harness.ts";

const OBJECTS = 500;
/** 10,000 changes in total. */
const ROUNDS = 20;
const QUESTIONS = 40;
/** Approximate share of the objects that have each term. */
const SHARES = [0.9, 0.5, 0.2, 0.1, 0.1, 0.02] as const;

/** Objects that repeatedly added and removed terms, with the terms that they have now. */
class Crowd {
  readonly mark = uniqueName("a7=several");
  readonly keys: readonly EntityKey[];
  readonly #random = seededRandom(seedOfRun("several terms"));
  readonly #borne: readonly Set<string>[];
  readonly #objects: ObjectStore;
  #timeUs: number;

  constructor(objects: ObjectStore, baseUs: number) {
    const cid = uniqueCid();
    this.#objects = objects;
    this.#timeUs = baseUs;
    this.keys = Array.from({ length: OBJECTS }, (_, at) => ({ cid, id: `t${at}` }));
    this.#borne = this.keys.map(() => new Set());
  }

  term(at: number): string {
    return `${this.mark}-${at}`;
  }

  /** Some terms in random order. */
  draw(): readonly string[] {
    const drawn = SHARES.map((_, at) => this.term(at)).filter(() => this.#random.next() < 0.5);
    return drawn.length > 1 ? drawn.sort(() => this.#random.next() - 0.5) : [this.term(3), this.term(4)];
  }

  limit(): number {
    return [3, 40, 1_000][Math.floor(this.#random.next() * 3)] ?? 40;
  }

  bearers(terms: readonly string[]): readonly string[] {
    return this.keys
      .filter((_, at) => terms.every((term) => this.#borne[at]?.has(term)))
      .map(({ id }) => id)
      .sort();
  }

  count(term: string): number {
    return this.bearers([term]).length;
  }

  /** Every object adds or removes one term. In the first round it is born with its terms. */
  async round(isFirst: boolean): Promise<void> {
    this.#timeUs += 1;
    const changes = this.keys.map((key, at): EntityChange => {
      const borne = this.#borne[at]!;
      const before = new Set(borne);
      const drawn = Math.floor(this.#random.next() * SHARES.length);
      for (const [n, share] of SHARES.entries()) {
        if (!isFirst && n !== drawn) continue;
        if (this.#random.next() < share) borne.add(this.term(n));
        else borne.delete(this.term(n));
      }
      return {
        key,
        timeUs: this.#timeUs,
        ...(isFirst ? { birth: true } : {}),
        addTerms: [...borne],
        dropTerms: [...before].filter((term) => !borne.has(term)),
      };
    });
    await again(() => this.#objects.change(changes));
  }
}

/** The promises of engines for several terms together. */
export function severalTermsContract(subject: () => ContractSubject, { isExact = false } = {}): void {
  describe("several terms", () => {
    test("of objects that were changed 10,000 times find those of a full scan, a few of each page and all", async () => {
      const { objects } = subject().store;
      const crowd = new Crowd(objects, subject().clock.nowMs() * 1_000);
      for (let round = 0; round < ROUNDS; round += 1) await crowd.round(round === 0);
      for (let question = 0; question < QUESTIONS; question += 1) {
        const terms = crowd.draw();
        const found = await all(crowd.limit(), (page) => objects.find({ terms }, page));
        const ids = found.map(({ key }) => key.id);
        expect(new Set(ids).size, "each once").toBe(ids.length);
        expect(ids, terms.join(" and ")).toEqual(expect.arrayContaining([...crowd.bearers(terms)]));
        if (isExact) expect(ids.sort(), terms.join(" and ")).toEqual(crowd.bearers(terms));
      }
    });

    test("between pages whose terms change, those that bore them all the while are found", async () => {
      const { objects } = subject().store;
      const crowd = new Crowd(objects, subject().clock.nowMs() * 1_000);
      await crowd.round(true);
      const terms = [crowd.term(1), crowd.term(2)];
      const staying = new Set(crowd.bearers(terms));
      const found: string[] = [];
      let cursor: string | undefined;
      do {
        const page = { limit: 5, ...(cursor === undefined ? {} : { cursor }) };
        const { items, cursor: next } = await again(() => objects.find({ terms }, page));
        found.push(...items.map(({ key }) => key.id));
        cursor = next;
        if (found.length < 30) await crowd.round(false);
        const bearers = new Set(crowd.bearers(terms));
        for (const id of staying) if (!bearers.has(id)) staying.delete(id);
      } while (cursor !== undefined);
      expect(new Set(found).size, "each once").toBe(found.length);
      expect(found).toEqual(expect.arrayContaining([...staying]));
    });

    test("a class is counted as it is, whatever its objects went through", async () => {
      const { objects } = subject().store;
      const timeUs = subject().clock.nowMs() * 1_000;
      const [cid, term] = [uniqueCid(), `s${uniqueCid()}`];
      const keys = Array.from({ length: 150 }, (_, at) => ({ cid, id: `n${at}` }));
      const born = keys.map((key): EntityChange => ({ key, timeUs, birth: true, addTerms: [term] }));
      await again(() => objects.change(born));
      await again(() => objects.change(keys.slice(0, 60).map((key) => ({ key, timeUs: timeUs + 1, death: true }))));
      await again(() => objects.change(born.slice(0, 10).map((change) => ({ ...change, timeUs: timeUs + 2 }))));
      expect(await counted(objects, term)).toBe(100);
      expect(await counted(objects, `s${uniqueCid()}`)).toBe(0);
    });

    test("are listed by their beginning, each once, of entities and of the records of a class", async () => {
      const { objects } = subject().store;
      const [cid, other] = [uniqueCid(), uniqueCid()];
      const mark = uniqueName("wlisted");
      const words = ["", "a", "ab", "abc", "b", "\u78c1\u76d8", "\u{1f600}", "zz".repeat(40)].map((end) => mark + end);
      const timeUs = subject().clock.nowMs() * 1_000;
      const keys = [0, 1].map((at) => ({ cid, id: `l${at}` }));
      await again(() => objects.change(keys.map((key) => ({ key, timeUs, birth: true, addTerms: words }))));
      const records = [cid, other].map((cid, at) => ({
        cid,
        id: `${ulid(subject().clock.nowMs()).slice(0, 25)}${at}`,
        value: new Uint8Array(),
        terms: at === 0 ? words : [`${mark}other`],
      }));
      await again(() => objects.append(records));
      for (const request of [{ beginning: mark }, { beginning: mark, cid }, { beginning: `${mark}a`, cid: other }]) {
        const wanted = request.cid === other ? [] : words;
        const found = await listed(objects, request);
        if (found !== undefined) expect(found.sort()).toEqual([...wanted].sort());
      }
      const some = await listed(objects, { beginning: `${mark}a`, cid });
      if (some !== undefined) expect(some.sort()).toEqual(["a", "ab", "abc"].map((end) => mark + end));
    });

    test("are led by the one that few bear, wherever it stands, however often it was taken and left", async () => {
      const { objects } = subject().store;
      const timeUs = subject().clock.nowMs() * 1_000;
      const cid = uniqueCid();
      const [frequent, rare] = [uniqueName("a3=frequent"), uniqueName("a4=rare")];
      const keys = Array.from({ length: 2 * OBJECTS }, (_, at) => ({ cid, id: `k${at}` }));
      const few = keys.filter((_, at) => at % (OBJECTS / 2) === 7).map(({ id }) => id);
      const change = (changes: readonly EntityChange[]): Promise<void> => again(() => objects.change(changes));
      await change(keys.map((key) => ({ key, timeUs, birth: true, addTerms: [frequent, rare] })));
      const leaving = keys.filter(({ id }) => !few.includes(id));
      await change(leaving.map((key) => ({ key, timeUs: timeUs + 1, dropTerms: [rare] })));
      for (const terms of [
        [frequent, rare],
        [rare, frequent],
      ]) {
        const { terms: estimates } = await again(() => objects.estimate({ terms }));
        expect(estimates[0]).toMatchObject({ term: rare, isRead: true });
        const found = await all(few.length, (page) => objects.find({ terms }, page));
        expect(found.map(({ key }) => key.id).sort()).toEqual([...few].sort());
      }
    });

    test("are estimated, the rarest first", async () => {
      const { objects } = subject().store;
      const crowd = new Crowd(objects, subject().clock.nowMs() * 1_000);
      await crowd.round(true);
      const terms = [crowd.term(0), crowd.term(2), crowd.term(5)];
      const estimate = await again(() => objects.estimate({ terms }));
      expect(estimate.terms.map(({ term }) => term)).toEqual([...terms].reverse());
      expect(estimate.terms[0]?.isRead).toBe(true);
      for (const { term, count = 0 } of estimate.terms) {
        expect(count).toBeGreaterThanOrEqual(crowd.count(term) / 2);
        expect(count).toBeLessThanOrEqual(crowd.count(term) * 2);
      }
    });
  });
}

/** All terms, page by page; `undefined` if the engine lists none. */
async function listed(objects: ObjectStore, request: TermsRequest): Promise<string[] | undefined> {
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await again(() => objects.terms(request, { limit: 2, ...(cursor === undefined ? {} : { cursor }) }));
    if (page === undefined) return undefined;
    found.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

async function counted(objects: ObjectStore, term: string): Promise<number> {
  let [sum, cursor] = [0, undefined as string | undefined];
  do {
    const part = await again(() => objects.countClass(term, cursor));
    sum += part.count;
    cursor = part.cursor;
  } while (cursor !== undefined);
  return sum;
}
