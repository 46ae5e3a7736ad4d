import { expect, test } from "vitest";
import { ExtensionPoint } from "./extension.ts";
import { openPoints } from "./points.ts";

class Counter {
  #count = 0;
  readonly kind = "counter";

  next(): number {
    return ++this.#count;
  }
}

const point = () => new ExtensionPoint<Counter>({ name: "counting", neededBy: "objects", filledBy: "triggers" });

test("a service that is used before it is filled is an error that names the circle", () => {
  const { offered } = point();
  expect(() => offered.next()).toThrow(
    'The extension point "counting" is used before it is filled: objects → triggers → objects.',
  );
});

test("what was offered works as the service itself once it is filled, which happens once", () => {
  const counting = point();
  const { offered } = counting;
  counting.fill(new Counter());
  const { next } = offered;
  expect([offered.next(), next(), offered.kind]).toEqual([1, 2, "counter"]);
  expect(() => counting.fill(new Counter())).toThrow("filled twice");
});

test("a point that nothing fills is an error at the end of the assembly", () => {
  const counting = point();
  expect(() => counting.requireFilled()).toThrow('The extension point "counting" is filled by nothing.');
  const points = openPoints();
  expect(() => points.requireFilled()).toThrow("is filled by nothing");
});

test("areas that are read before they are listed are an error", () => {
  const { areas } = openPoints();
  expect(() => areas.parts(({ classes }) => classes)()).toThrow("The areas are read before they are listed.");
  areas.list([{ name: "a" }, { name: "b" }]);
  expect(areas.parts(({ name }) => [name])()).toEqual(["a", "b"]);
  expect(() => areas.list([])).toThrow("The areas are listed twice.");
});
