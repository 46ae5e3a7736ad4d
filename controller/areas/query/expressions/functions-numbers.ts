import { numberValue } from "./arithmetic.ts";
import type { FunctionSpec } from "./function.ts";
import { NUMBER } from "./kind.ts";

/** Decimal places that `round` takes. */
const PLACES_MAX = 15;

export const NUMBER_FUNCTIONS: Readonly<Record<string, FunctionSpec>> = {
  abs: plain("abs(-3)", "The number without its sign.", Math.abs),
  floor: plain("floor(2.7)", "The greatest whole number that is not above it.", Math.floor),
  ceil: plain("ceil(2.1)", "The smallest whole number that is not below it.", Math.ceil),
  round: {
    accepts: ["number", "number"],
    least: 1,
    result: NUMBER,
    example: "round(2.345, 2)",
    about: "The nearest whole number, or the nearest with so many decimal places; halves go away from 0.",
    make:
      () =>
      ([number, places = 0]) =>
        numberValue(rounded(Number(number), Number(places))),
  },
  mod: {
    accepts: ["number", "number"],
    result: NUMBER,
    example: "mod(7, 3)",
    about: "What is left of the first when it is divided by the second; null where that is 0.",
    make:
      () =>
      ([number, by]) =>
        numberValue(Number(number) % Number(by)),
  },
};

function plain(example: string, about: string, make: (number: number) => number): FunctionSpec {
  return {
    accepts: ["number"],
    result: NUMBER,
    about,
    example,
    make:
      () =>
      ([number]) =>
        numberValue(make(Number(number))),
  };
}

/** Through the decimal text of the number: 1.005 is written so, and becomes 1.01. */
function rounded(number: number, places: number): number {
  const digits = Math.min(PLACES_MAX, Math.max(-PLACES_MAX, Math.trunc(places)));
  const [mantissa = "", exponent = "0"] = Math.abs(number).toExponential().split("e");
  const shifted = Math.round(Number(`${mantissa}e${Number(exponent) + digits}`));
  const [whole = "", power = "0"] = shifted.toExponential().split("e");
  return Math.sign(number) * Number(`${whole}e${Number(power) - digits}`);
}
