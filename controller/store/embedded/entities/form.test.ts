import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { NUMBER_SLOTS } from "../../../../common/limits.ts";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { TestClock } from "../../../../test/helpers/time/runtime.ts";
import { cellMap } from "../../cells.ts";
import { encodePacked } from "../../format.ts";
import type { Entity } from "../../objects.ts";
import { decodeEntity, encodeEntity } from "./form.ts";
import { EntityState } from "./state.ts";
import { EntityView } from "./view.ts";
import { Environment } from "../environment/environment.ts";
import { openEmbeddedEngine } from "../index.ts";
import { KeyLists } from "./key-lists.ts";
import { textBytes } from "../bytes/keys.ts";
import { entityKeyBytes, expiryKey, EXPIRY_KINDS } from "../bytes/object-keys.ts";
import { storeFolder } from "../../../../test/helpers/runs/folders.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const NOW_US = NOW_MS * 1_000;
const KEY = { cid: 7, id: "old" };
const text = (value: Uint8Array): string => Buffer.from(value).toString();
const bytes = (value: string): Uint8Array => Buffer.from(value);
const textsOf = (entity: Entity | undefined): object =>
  Object.fromEntries([...cellMap(entity!.cells)].map(([key, { value }]) => [key, text(value)]));

/**
 * Written by a version of format 2: born at `NOW_US` with the cells 17, 18 and 19/red. One millisecond later, 18 and a
 * term are removed and 20 is written. Another one later, 21 and a term are written that expire a minute after `NOW_MS`.
 */
const OLD =
  "ApnLQxkdIRiBAAAAAAAAy0J5t225JgAA3AAUojE3y0MZHSEYgQAAxAlzZXZlbnRlZW4AojE4y0MZHSEYgQ+gwMtCebqlpAAQAKYxOS9yZWTLQxkdIRiBAADEAXIAojIwy0MZHSEYgQ+g" +
  "xAZ6d8O2bGYAojIxy0MZHSEYgR9AxAdwYXNzaW5ny0J5t225JgAAxF4C3AAQomM3y0MZHSEYgQAAwwCtYTE3PXNldmVudGVlbstDGR0hGIEAAMMApGdvbmXLQxkdIRiBD6DAy0J5uqWk" +
  "ABAAp3Bhc3NpbmfLQxkdIRiBH0DDy0J5t225JgAAmADLQxkdIRiBAAAFAAHLQxkdIRiBD6DAy0J5uqWkABAA";

/** The store as that version left it: the entity with its index entries. */
async function leaveOld(folder: string, clock: TestClock): Promise<void> {
  const env = new Environment(folder, clock);
  const key = entityKeyBytes(KEY);
  await env.write(() => {
    env.tables.meta.putPlain(textBytes("format"), encodePacked(2));
    env.tables.objects.putPlain(key, Buffer.from(OLD, "base64"));
    for (const term of ["c7", "a17=seventeen", "passing"]) void env.tables.terms.put(term, key);
    void env.tables.expiry.put(expiryKey(NOW_MS + 60_000, EXPIRY_KINDS.entity, key), encodePacked(1));
  });
  await env.close();
}

test("what a version of format 2 wrote is read, found, written on, and vanishes when it is to", async () => {
  const dir = await storeFolder("odp-form-");
  const clock = new TestClock(NOW_MS);
  const open = () => openEmbeddedEngine({ dir, runtime: { clock, random: seededRandom(1) } });
  try {
    const first = await open();
    await first.createTenant("matrix");
    await first.close();
    await leaveOld(join(dir, "tenants", "matrix", "lmdb"), clock);
    const engine = await open();
    const { objects } = await engine.tenant("matrix");
    const [entity] = await objects.get([KEY]);
    expect(entity).toMatchObject({ key: KEY, birthUs: NOW_US, lastUs: NOW_US + 2_000 });
    expect(textsOf(entity)).toEqual({ "17": "seventeen", "19/red": "r", "20": "zwölf", "21": "passing" });
    expect(entity!.cells.get("20")).toMatchObject({ timeUs: NOW_US + 1_000 });
    expect(entity!.numbers).toEqual([5, ...new Array<undefined>(NUMBER_SLOTS - 1).fill(undefined)]);
    const find = async (...terms: readonly string[]) =>
      (await objects.find({ terms }, { limit: 5 })).items.map(textsOf);
    expect(await find("a17=seventeen", "passing")).toHaveLength(1);
    await objects.change([
      {
        key: KEY,
        timeUs: NOW_US + 500,
        cells: new Map([
          ["18", bytes("late")],
          ["17", bytes("17")],
        ]),
      },
    ]);
    clock.advance(60_000);
    expect(await find("c7")).toEqual([{ "17": "17", "19/red": "r", "20": "zwölf" }]);
    expect(await find("passing")).toEqual([]);
    await engine.close();
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});

test("entities of any size and any keys are what they were, seen in place and read again", () => {
  const random = seededRandom(7);
  const lists = new KeyLists();
  for (let round = 0; round < 120; round += 1) {
    const state = randomState((below) => Math.floor(random.next() * below));
    const stored = encodeEntity(state);
    expect(encodeEntity(decodeEntity(stored)).equals(stored)).toBe(true);
    const view = EntityView.of(KEY, stored, { lists, nowMs: NOW_MS + 1 });
    const living = [...state.cells].flatMap(([key, { timeUs, value }]) =>
      value === undefined ? [] : [[key, { timeUs, value: text(value) }] as const],
    );
    expect(
      new Map(Array.from(cellMap(view.cells), ([key, { timeUs, value }]) => [key, { timeUs, value: text(value) }])),
    ).toEqual(new Map(living));
    for (const [key, { value }] of living) expect(text(view.cells.get(key)!.value)).toBe(value);
    expect(view.lastUs).toBe(state.lastUs());
    for (const [term, { value }] of state.terms) expect(view.bears([textBytes(term)])).toBe(value === true);
  }
});

function randomState(pick: (below: number) => number): EntityState {
  const state = new EntityState();
  const word = (): string => ["", "a", "größer", "日本", "x".repeat(pick(300))][pick(5)]! + pick(40);
  for (let write = 0; write < 1 + pick(6); write += 1) {
    const cells = Array.from(
      { length: pick(pick(20) === 0 ? 200 : 8) },
      () => [word(), pick(5) === 0 ? undefined : bytes(word().repeat(pick(4)))] as const,
    );
    const numbers = new Map([[pick(NUMBER_SLOTS), pick(4) === 0 ? undefined : pick(1_000) - 500.5]]);
    state.apply(
      {
        key: KEY,
        timeUs: NOW_US + pick(9),
        birth: true,
        cells: new Map(cells),
        addTerms: [word(), word()],
        dropTerms: [word()],
        numbers,
      },
      NOW_MS,
    );
    if (pick(9) === 0) state.apply({ key: KEY, timeUs: NOW_US + pick(9), death: true }, NOW_MS);
  }
  return state;
}
