import { expect, test } from "vitest";
import { Organizations, ROOT_ID } from "./organizations.ts";

test("the height of an organisation counts the levels below it, and no others", () => {
  const one = (id: string, parent: string) => ({ id, parent, username: `o${id}` });
  const tree = new Organizations([one("1", ROOT_ID), one("2", "1"), one("3", ROOT_ID), one("4", "3"), one("5", "4")]);
  expect(["1", "2", "3", "4", "5"].map((id) => tree.heightOf(id))).toEqual([2, 1, 3, 2, 1]);
});
