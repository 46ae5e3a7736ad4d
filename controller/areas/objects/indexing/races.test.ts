import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Row } from "../../../../common/value.ts";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { onCluster } from "../../../../test/helpers/engines/engine.ts";
import { Interleaving, interleaved } from "../../../../test/helpers/engines/interleaving.ts";
import type { Pushdown } from "../index.ts";
import {
  admin,
  BOX,
  engine,
  useIndexes,
  controller,
  readAll,
  answered,
  unready,
  equals,
  addIndex,
} from "../../../../test/helpers/objects/index-world.ts";

useIndexes();

const HISTORIES = onCluster ? 3 : 10;

test("whatever two controllers write while indexes are made, dropped and made again, these have all of it in the end", {
  timeout: 300_000,
}, async () => {
  for (let seed = 1; seed <= HISTORIES; seed++) await history(seed);
});

/** Several objects, several writers: what they do and in which order it reaches the store is up to the seed. */
async function history(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const turns = new Interleaving(seededRandom(seed + 0x5eed));
  const path = `/matrix/h${seed}`;
  const [a, b] = [controller(interleaved(engine, turns)), controller(interleaved(engine, turns))];
  const plain = controller();
  await plain.createClass(admin, { ...BOX, path });
  await plain.unrestricted.insert(admin, path, [
    { id: "x", size: 1, parts: [1], note: "disk" },
    { id: "y", color: "red", note: "full disk" },
  ]);
  const dice = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)]!;
  const write = async (): Promise<void> => {
    const by = dice([a, b]);
    const id = dice(["x", "x", "y", "z"]);
    const row: Row = {
      size: dice([1, 2, 3]),
      parts: dice([[1], [2], [1, 3]]),
      note: dice(["disk", "full disk", "late"]),
      color: dice(["red", "blue"]),
    };
    const column = random.next() < 0.6 ? "size" : dice(Object.keys(row));
    const kind = random.next();
    if (kind < 0.15) await by.unrestricted.remove(admin, [{ id: `h${seed}:${id}` }]).catch(unknown);
    else if (kind < 0.4)
      await by.unrestricted.insert(admin, path, [{ id, [column]: row[column] ?? null }]).catch(unknown);
    else
      await by.unrestricted
        .update(admin, { id: `h${seed}:${id}` }, [{ column, operation: "set", value: row[column] }])
        .catch(unknown);
  };
  await addIndex(a, "size", path);
  await b.alterClass(admin, path, { kind: "set options", options: { autosearch: true } });
  const define = async (): Promise<void> => {
    await addIndex(b, "parts", path);
    if (random.next() < 0.5) {
      await a.alterClass(admin, path, { kind: "drop index", name: "size" });
      await addIndex(b, "size", path);
    }
    while ((await unready(plain)).length > 0) await setImmediate();
  };
  // Filling has begun, and waits for its turns like the writes.
  await turns.run([...Array.from({ length: 6 }, () => write), define, ...Array.from({ length: 6 }, () => write)]);
  const rows = await readAll({ class: path }, plain);
  for (const { id, values } of rows) {
    for (const where of conditions(values))
      expect(await answered(where, plain, path), `seed ${seed}: ${id} by ${JSON.stringify(where)}`).toContain(id);
  }
  await Promise.all([a.close(), b.close(), plain.close()]);
}

function unknown(error: unknown): void {
  if ((error as { code?: string }).code !== "unknown_outcome") throw error;
}

function conditions({ size, parts, note }: Row): Pushdown[] {
  const number =
    typeof size === "number"
      ? [equals("size", size), { kind: "range", column: "size", from: size, to: size } as const]
      : [];
  const elements = Array.isArray(parts) ? (parts as readonly number[]).map((part) => equals("parts", part)) : [];
  const words =
    typeof note === "string" ? note.split(" ").map((word): Pushdown => ({ kind: "words", words: [word] })) : [];
  return [...number, ...elements, ...words];
}
