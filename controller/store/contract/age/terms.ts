import { ulid } from "ulid";
import { describe, expect, test } from "vitest";
import type { EntityChange, ObjectStore, TermsRequest } from "../../objects.ts";
import { again, all, type ContractSubject, counted, uniqueCid, uniqueName } from "../harness.ts";
import { Crowd, OBJECTS } from "./crowd.ts";

/** 10,000 changes in total. */
const ROUNDS = 20;
const QUESTIONS = 40;

/** The promises of engines for several terms together. */
export function severalTermsContract(subject: () => ContractSubject, { isExact = false } = {}): void {
  describe("several terms", () => {
    foundTogetherContract(subject, isExact);
    countedTermsContract(subject);
    estimatedTermsContract(subject);
  });
}

function foundTogetherContract(subject: () => ContractSubject, isExact: boolean): void {
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
}

function countedTermsContract(subject: () => ContractSubject): void {
  test("a class is counted as it is, whatever its objects went through", async () => {
    const { objects } = subject().store;
    const timeUs = subject().clock.nowMs() * 1_000;
    const [cid, term] = [uniqueCid(), `s${uniqueCid()}`];
    const keys = Array.from({ length: 150 }, (_, at) => ({ cid, id: `n${at}` }));
    const born = keys.map((key): EntityChange => ({ key, timeUs, birth: true, addTerms: [term] }));
    await again(() => objects.change(born));
    await again(() => objects.change(keys.slice(0, 60).map((key) => ({ key, timeUs: timeUs + 1, death: true }))));
    await again(() => objects.change(born.slice(0, 10).map((change) => ({ ...change, timeUs: timeUs + 2 }))));
    expect(await counted((cursor) => objects.countClass(term, cursor))).toBe(100);
    expect(await counted((cursor) => objects.countClass(`s${uniqueCid()}`, cursor))).toBe(0);
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
}

function estimatedTermsContract(subject: () => ContractSubject): void {
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
