import { expect, test } from "vitest";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { DataRule } from "../../permissions/index.ts";
import { confined } from "./effective-rights.ts";

test("a token that may not write objects reads what its user may write, by rules that are made once", () => {
  const own: DataRule = { class: "/matrix/box", access: "write", where: "owner = 'ann'", hidden: ["secret"] };
  const closed: DataRule = { class: "/matrix/vault", access: "none" };
  const writer = { ...testPrincipal(), data: [own, closed] };
  const reading = confined(writer, { scopes: ["objects:read"] });
  expect(reading).toMatchObject({ grants: ["objects:read"], byToken: "part" });
  expect(reading.data).toEqual([{ ...own, access: "read" }, closed]);
  expect(confined(writer, { scopes: ["objects:read"] }).data).toBe(reading.data);
  expect(confined(writer, { scopes: ["objects:*"] }).data).toBe(writer.data);
});
