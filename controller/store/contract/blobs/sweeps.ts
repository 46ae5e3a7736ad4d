import { expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import type { BlobStore } from "../../blobs.ts";
import { again, type ContractSubject, same, uniqueName } from "../harness.ts";
import { put, readAll, unique } from "./content.ts";

const HOUR_MS = 3_600_000;

/** Marks of owners, and the sweep of content without one. */
export function sweepsContract(subject: () => ContractSubject): void {
  const blobs = (): BlobStore => subject().store.blobs;

  test("a sweep removes what nobody marks, and nothing else", async () => {
    const [first, second] = [uniqueName("first"), uniqueName("second")];
    const [kept, doomed] = [await put(blobs(), unique(50), first), await put(blobs(), unique(50), first)];
    await again(() => blobs().mark(kept.digest, second));
    await again(() => blobs().mark(kept.digest, second));
    await again(() => blobs().unmark(kept.digest, first));
    await again(() => blobs().unmark(doomed.digest, first));
    await again(() => blobs().unmark(doomed.digest, uniqueName("never")));
    await subject().advance?.(1_000);
    await again(() => blobs().sweep(HOUR_MS));
    expect(await again(() => blobs().stat(doomed.digest))).toBeDefined();
    expect(await again(() => blobs().sweep(0))).toBeGreaterThanOrEqual(1);
    expect(await again(() => blobs().stat(doomed.digest))).toBeUndefined();
    expect(await again(() => blobs().stat(kept.digest))).toEqual(kept);
    await again(() => blobs().unmark(kept.digest, second));
    await subject().advance?.(1_000);
    await again(() => blobs().sweep(0));
    expect(await again(() => blobs().stat(kept.digest))).toBeUndefined();
  });

  test("content is told before it is marked, and if that fails no mark is set", async () => {
    const [content, owner] = [unique(60), uniqueName("owner")];
    const told: unknown[] = [];
    const info = await again(() =>
      blobs().put([content], owner, (arrived) => Promise.resolve(void told.push(arrived))),
    );
    expect(told).toEqual([info]);
    await again(() => blobs().unmark(info.digest, owner));
    const refused = again(() => blobs().put([content], owner, () => Promise.reject(new AppError("conflict", "no"))));
    await expect(refused).rejects.toMatchObject({ code: "conflict" });
    await subject().advance?.(1_000);
    await again(() => blobs().sweep(0));
    expect(await again(() => blobs().stat(info.digest))).toBeUndefined();
  });

  test("content that was swept can come again", async () => {
    const content = unique(70);
    const owner = uniqueName("owner");
    const { digest } = await put(blobs(), content, owner);
    await again(() => blobs().unmark(digest, owner));
    await subject().advance?.(1_000);
    await again(() => blobs().sweep(0));
    await put(blobs(), content, owner);
    await again(() => blobs().sweep(0));
    expect(same(await readAll(blobs(), digest), content)).toBe(true);
  });
}
