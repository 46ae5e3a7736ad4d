import { expect, test } from "vitest";
import { again, bytes, put, uniqueName } from "../../harness.ts";
import { listAll } from "../reading.ts";
import { type ExpirySubject, MINUTE_MS } from "./subject.ts";

/** Rounds of a race between a reader and a writer. */
const RACES = 40;

/** Controllers whose clocks differ. */
export function differingClocksContract({ subject, now, later, expiring }: ExpirySubject): void {
  test("clocks that differ: what was not found expired is prolonged by the slower controller, for both", async () => {
    const [slow, fast] = [now(), later()];
    const { key, revision, createRevision } = await expiring(uniqueName("slow"));
    const expiresAtMs = subject().clock.nowMs() + 10 * MINUTE_MS;
    expect((await put(slow, key, bytes("prolonged"), { ifRevision: revision, expiresAtMs })).ok).toBe(true);
    expect(await again(() => fast.get(key))).toMatchObject({ value: bytes("prolonged"), createRevision });
  });

  test("clocks that differ: who finds it absent and who prolongs it never both win", async () => {
    const finders: ((key: string) => Promise<boolean>)[] = [
      async (key) => (await again(() => later().get(key))) !== undefined,
      async (key) => (await listAll(later(), key, 10)).length > 0,
    ];
    for (let round = 0; round < RACES; round++) {
      const { key, revision } = await expiring(uniqueName("race"));
      const find = () => finders[round % 2]!(key);
      const prolong = async () => (await put(now(), key, bytes("prolonged"), { ifRevision: revision })).ok;
      const race = round % 4 < 2 ? [find(), prolong()] : [prolong(), find()];
      const [first, second] = await Promise.all(race);
      expect(first).toBe(second);
    }
  });
}
