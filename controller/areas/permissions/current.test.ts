import { expect, test } from "vitest";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { currentRights } from "./current.ts";
import type { Principal } from "./types.ts";

test("work that goes on is checked again when the rights of its user changed, and only then", async () => {
  let now: Principal | undefined = testPrincipal();
  const checked: Principal[] = [];
  let refuses = false;
  const isCurrent = currentRights(
    () => Promise.resolve(now),
    (principal) => {
      checked.push(principal);
      return refuses ? Promise.reject(new Error("refused")) : Promise.resolve();
    },
  );
  for (const next of [now, { ...now }, { ...now, grants: [] }, { ...now, data: [] }]) {
    now = next;
    await isCurrent();
    await isCurrent();
  }
  expect(checked.map(({ grants, data }) => [grants.length, data.length])).toEqual([
    [3, 1],
    [0, 1],
    [3, 0],
  ]);
  refuses = true;
  now = testPrincipal("viewer");
  await expect(isCurrent()).rejects.toThrow("refused");
  // A refusal is not cached as a successful check.
  await expect(isCurrent()).rejects.toThrow("refused");
  now = undefined;
  await expect(isCurrent()).rejects.toMatchObject({ code: "denied" });
});
