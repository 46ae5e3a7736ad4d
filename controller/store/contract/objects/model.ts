import { expect, test } from "vitest";
import { NUMBER_SLOTS } from "../../../../common/limits.ts";
import type { Random } from "../../../../common/time.ts";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { cellMap } from "../../cells.ts";
import type { EntityChange, EntityKey, ObjectStore } from "../../objects.ts";
import { again, all, bytes, seedOfRun, text, uniqueCid, type ContractSubject } from "../harness.ts";

const STEPS = 400;
const CHECK_EVERY = 40;
const ENTITIES = 4;
/** Few distinct times, so that many writes have the same one. */
const TIMES = 60;
/** Ends are far in the future, so that nothing ends, even if the clock of the tests is behind. */
const DAY_MS = 86_400_000;

interface Mark<T> {
  readonly timeUs: number;
  readonly value: T | undefined;
}

/** The rules of the seam in plain maps, without any implementation of a store. */
class EntityModel {
  birthUs = 0;
  deathUs = 0;
  end: { readonly timeUs: number; readonly atMs: number } | undefined;
  readonly cells = new Map<string, Mark<Uint8Array>>();
  readonly terms = new Map<string, Mark<Uint8Array>>();
  readonly numbers = new Map<number, Mark<Uint8Array>>();
  readonly edges = new Map<string, Mark<Uint8Array>>();
  readonly versions = new Map<number, string>();

  get alive(): boolean {
    return this.birthUs > this.deathUs;
  }

  apply(change: EntityChange): void {
    const { timeUs } = change;
    if (change.death) this.deathUs = Math.max(this.deathUs, timeUs);
    if (change.birth) this.birthUs = Math.max(this.birthUs, timeUs);
    if (change.endsAtMs !== undefined) this.#nameEnd(timeUs, change.endsAtMs);
    const put = <K>(marks: Map<K, Mark<Uint8Array>>, key: K, value: Uint8Array | undefined): void => {
      const current = marks.get(key);
      if (current === undefined || later({ timeUs, value }, current)) marks.set(key, { timeUs, value });
    };
    for (const [name, value] of change.cells ?? []) put(this.cells, name, value);
    for (const term of change.addTerms ?? []) put(this.terms, term, bytes(""));
    for (const term of change.dropTerms ?? []) put(this.terms, term, undefined);
    for (const [slot, value] of change.numbers ?? [])
      put(this.numbers, slot, value === undefined ? undefined : float(value));
    for (const edge of change.addEdges ?? []) put(this.edges, `${edge.type} ${edge.to.id}`, edge.value ?? bytes(""));
    for (const edge of change.dropEdges ?? []) put(this.edges, `${edge.type} ${edge.to.id}`, undefined);
    if (change.version !== undefined) this.versions.set(timeUs, text(change.version));
  }

  /** The end that the latest change after the death named. */
  get endsAtMs(): number | undefined {
    return this.end !== undefined && this.end.timeUs > this.deathUs ? this.end.atMs : undefined;
  }

  #nameEnd(timeUs: number, atMs: number): void {
    const { end } = this;
    if (end === undefined || timeUs > end.timeUs || (timeUs === end.timeUs && atMs > end.atMs))
      this.end = { timeUs, atMs };
  }

  visible<K>(marks: ReadonlyMap<K, Mark<Uint8Array>>): readonly (readonly [K, Mark<Uint8Array>])[] {
    return [...marks].filter(([, mark]) => mark.value !== undefined && mark.timeUs > this.deathUs);
  }
}

function later(incoming: Mark<Uint8Array>, current: Mark<Uint8Array>): boolean {
  if (incoming.timeUs !== current.timeUs) return incoming.timeUs > current.timeUs;
  if (current.value === undefined) return false;
  return incoming.value === undefined || Buffer.compare(incoming.value, current.value) > 0;
}

function float(value: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return new Uint8Array(view.buffer);
}

/**
 * Compares the store with the model after changes of a few entities at random times, some of them repeated, `atOnce` in
 * parallel.
 */
export function objectsModelTest(name: string, subject: () => ContractSubject, atOnce = 1): void {
  test("agrees with the model under random changes in random order", async () => {
    const random = seededRandom(seedOfRun(`ObjectStore ${name}`));
    const { store, clock } = subject();
    const world: World = {
      objects: store.objects,
      random,
      cid: uniqueCid(),
      baseUs: clock.nowMs() * 1_000,
      models: Array.from({ length: ENTITIES }, () => new EntityModel()),
      past: [],
    };
    for (let step = atOnce; step <= STEPS; step += atOnce) {
      await Promise.all(Array.from({ length: atOnce }, () => randomChange(world)));
      if (step % CHECK_EVERY < atOnce) await check(world);
    }
  });
}

interface World {
  readonly objects: ObjectStore;
  readonly random: Random;
  readonly cid: number;
  readonly baseUs: number;
  readonly models: readonly EntityModel[];
  readonly past: EntityChange[];
}

async function randomChange(world: World): Promise<void> {
  const { random, past } = world;
  const repeat = past.length > 0 && random.next() < 0.1;
  const change = repeat ? past[Math.floor(random.next() * past.length)]! : makeChange(world);
  past.push(change);
  world.models[indexOf(change.key)]!.apply(change);
  await again(() => world.objects.change([change]));
}

function makeChange({ random, cid, baseUs, models }: World): EntityChange {
  const pick = (count: number): number => Math.floor(random.next() * count);
  const chance = (rate: number): boolean => random.next() < rate;
  const index = pick(models.length);
  const timeUs = baseUs + 1 + pick(TIMES);
  const change = { key: keyOf(cid, index), timeUs };
  if (chance(0.06)) return { ...change, death: true };
  const edge = { type: `e${pick(2)}`, to: keyOf(cid, pick(models.length)) };
  return {
    ...change,
    ...(chance(0.2) ? { birth: true } : {}),
    ...(chance(0.3) ? { endsAtMs: chance(0.3) ? Infinity : Math.floor(baseUs / 1_000) + (1 + pick(5)) * DAY_MS } : {}),
    cells: new Map([
      [`${pick(4)}`, chance(0.25) ? undefined : bytes(`v${pick(9)}`)],
      [`9/${pick(3)}`, bytes("1")],
    ]),
    ...(chance(0.5) ? { addTerms: [termOf(cid, pick(4))] } : { dropTerms: [termOf(cid, pick(4))] }),
    ...(chance(0.4) ? { numbers: new Map([[pick(NUMBER_SLOTS), chance(0.25) ? undefined : pick(11) - 5]]) } : {}),
    ...(chance(0.4)
      ? { addEdges: [{ ...edge, value: bytes(`${pick(5)}`) }] }
      : chance(0.3)
        ? { dropEdges: [edge] }
        : {}),
    // One time means one write, so its version is always the same.
    ...(chance(0.3) ? { version: bytes(`${index} at ${timeUs}`) } : {}),
  };
}

async function check(world: World): Promise<void> {
  for (const [index, model] of world.models.entries()) {
    await checkEntity(world, index, model);
    await checkSides(world, index, model);
  }
  for (let term = 0; term < 4; term++) await checkTerm(world, termOf(world.cid, term));
}

async function checkEntity({ objects, cid }: World, index: number, model: EntityModel): Promise<void> {
  const [entity] = await again(() => objects.get([keyOf(cid, index)]));
  expect(entity !== undefined, `entity ${index} alive`).toBe(model.alive);
  if (entity === undefined) return;
  expect([entity.birthUs, entity.diedUs]).toEqual([model.birthUs, model.deathUs]);
  expect(entity.endsAtMs).toBe(model.endsAtMs);
  const expected = model
    .visible(model.cells)
    .map(([name, mark]) => [name, { timeUs: mark.timeUs, text: text(mark.value!) }] as const);
  expect(
    new Map([...cellMap(entity.cells)].map(([name, cell]) => [name, { timeUs: cell.timeUs, text: text(cell.value) }])),
  ).toEqual(new Map(expected));
  const numbers = new Map(
    model.visible(model.numbers).map(([slot, mark]) => [slot, Buffer.from(mark.value!).readDoubleBE()]),
  );
  expect(entity.numbers).toEqual(Array.from({ length: NUMBER_SLOTS }, (_, slot) => numbers.get(slot)));
}

async function checkSides({ objects, cid }: World, index: number, model: EntityModel): Promise<void> {
  const key = keyOf(cid, index);
  const edges = await all(2, (page) => objects.edges(key, "out", page));
  const expected = model.alive ? model.visible(model.edges).map(([name, mark]) => `${name} ${text(mark.value!)}`) : [];
  expect(edges.map((edge) => `${edge.type} ${edge.to.id} ${text(edge.value ?? bytes(""))}`).sort()).toEqual(
    expected.sort(),
  );
  for (const edge of edges) {
    const back = await all(3, (page) => objects.edges(edge.to, "in", { ...page, type: edge.type }));
    expect(back.some((other) => other.from.id === key.id)).toBe(true);
  }
  const versions = await all(3, (page) => objects.history(key, {}, page));
  expect(versions.map((version) => version.timeUs)).toEqual([...model.versions.keys()].sort((a, b) => b - a));
}

/** Checks `find` by one term. The store may find more entities than match, never fewer. */
async function checkTerm({ objects, models }: World, term: string): Promise<void> {
  const found = new Set(
    (await all(2, (page) => objects.find({ terms: [term] }, page))).map((entity) => indexOf(entity.key)),
  );
  for (const [index, model] of models.entries()) {
    if (!model.alive) expect(found.has(index), `${term} finds dead ${index}`).toBe(false);
    else if (model.visible(model.terms).some(([each]) => each === term))
      expect(found.has(index), `${term} finds ${index}`).toBe(true);
  }
}

function keyOf(cid: number, index: number): EntityKey {
  return { cid, id: `m${index}` };
}

function indexOf(key: EntityKey): number {
  return Number(key.id.slice(1));
}

function termOf(cid: number, term: number): string {
  return `model-${cid}-${term}`;
}
