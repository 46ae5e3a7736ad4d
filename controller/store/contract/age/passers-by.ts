import { expect, test } from "vitest";
import { mapLimited } from "../../../../common/concurrency.ts";
import type { EntityChange, EntityKey } from "../../objects.ts";
import { again, passTime, uniqueCid, uniqueName } from "../harness.ts";
import { AGE, type AgeSubject, BATCH, TIMEOUT_MS, TTL_MS } from "./subject.ts";

const PASSERS_BY = 3_000 * AGE;
const STAYING = 40;
const AT_ONCE = 32;

/** Values that most of their former objects no longer have. */
export function passersByContract({ subject, objects, baseUs, write, find }: AgeSubject): void {
  test(
    "objects that took a value once and left it, by a change, by their removal or by their end, do not hide those that have it",
    async () => {
      const cid = uniqueCid();
      const [value, next] = [uniqueName("a5=here"), uniqueName("a5=gone")];
      const keys = Array.from({ length: PASSERS_BY }, (_, n) => ({ cid, id: `p${n}` }));
      const inBatches = async (some: readonly EntityKey[], change: (key: EntityKey) => EntityChange): Promise<void> => {
        const batches = Array.from({ length: Math.ceil(some.length / AT_ONCE) }, (_, n) =>
          some.slice(n * AT_ONCE, (n + 1) * AT_ONCE),
        );
        await mapLimited(batches, 2, (batch) => write(...batch.map(change)));
      };
      await inBatches(keys, (key) => ({ key, timeUs: baseUs() + 1, birth: true, addTerms: [value, `c${cid}`] }));
      expect(await find([value], 1_000)).toEqual(keys.map(({ id }) => id).sort());
      const third = Math.ceil(PASSERS_BY / 3);
      const [leaving, removed] = [keys.slice(STAYING, third), keys.slice(third, 2 * third)];
      const ended = keys.slice(2 * third);
      await inBatches(leaving, (key) => ({ key, timeUs: baseUs() + 2, addTerms: [next], dropTerms: [value] }));
      await inBatches(removed, (key) => ({ key, timeUs: baseUs() + 2, death: true, dropTerms: [value] }));
      await inBatches(ended, (key) => ({
        key,
        timeUs: baseUs() + 2,
        birth: true,
        addTerms: [value, `c${cid}`],
        expiresAtMs: subject().clock.nowMs() + TTL_MS,
      }));
      await passTime(subject(), TTL_MS + 1_000, async () => {
        const left = await again(() => objects().get(ended.slice(-BATCH)));
        return left.every((entity) => entity === undefined);
      });
      const staying = keys
        .slice(0, STAYING)
        .map(({ id }) => id)
        .sort();
      for (const limit of [7, 1_000]) expect(await find([value], limit)).toEqual(staying);
      expect(await find([value, `c${cid}`])).toEqual(staying);
      const living = [...staying, ...leaving.map(({ id }) => id)].sort();
      expect(await find([`c${cid}`], 1_000)).toEqual(living);
    },
    TIMEOUT_MS,
  );
}
