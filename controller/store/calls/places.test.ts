import { expect, test } from "vitest";
import { Places } from "./places.ts";

test("there are as many places as were made, and one that was left is taken again", () => {
  const places = new Places(2);
  expect([places.tryTake(), places.tryTake(), places.tryTake()]).toEqual([true, true, false]);
  places.leave();
  expect([places.tryTake(), places.tryTake()]).toEqual([true, false]);
});

test("a place that is left goes to who has waited longest, and to nobody who gave up", () => {
  const places = new Places(1);
  places.tryTake();
  const taken: string[] = [];
  places.queue(() => taken.push("first"));
  const giveUp = places.queue(() => taken.push("second"));
  places.queue(() => taken.push("third"));
  giveUp();
  places.leave();
  expect(taken).toEqual(["first"]);
  places.leave();
  expect(taken).toEqual(["first", "third"]);
  expect(places.tryTake()).toBe(false);
  places.leave();
  expect(places.tryTake()).toBe(true);
});
