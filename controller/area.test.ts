import { expect, test } from "vitest";
import { checkAreas, closeAreas, type Area } from "./area.ts";

test("an area is closed before those that stand before it, and each when the one behind it has closed", async () => {
  const said: string[] = [];
  const area = (name: string): Area => ({
    name,
    close: async () => {
      said.push(`${name} begins`);
      await Promise.resolve();
      said.push(`${name} ends`);
    },
  });
  await closeAreas([area("objects"), { name: "rules" }, area("jobs")]);
  expect(said).toEqual(["jobs begins", "jobs ends", "objects begins", "objects ends"]);
});

test("an area that is listed twice is refused by name", () => {
  expect(() => checkAreas([{ name: "jobs" }, { name: "hosts" }, { name: "jobs" }])).toThrow(
    "The area jobs is listed twice.",
  );
});
