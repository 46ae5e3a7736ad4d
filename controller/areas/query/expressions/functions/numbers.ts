import type { Value } from "../../../../../common/value.ts";
import { numberValue } from "../arithmetic.ts";
import type { FunctionSpec } from "./function.ts";
import { NUMBER, numberOf } from "../kind.ts";

/** Decimal places that `round` takes. */
const PLACES_MAX = 15;

/** A number that stays exact: an integer that a double does not hold is a bigint. */
type Numeric = number | bigint;

export const NUMBER_FUNCTIONS: Readonly<Record<string, FunctionSpec>> = {
  abs: plain("abs(-3)", "The number without its sign.", Math.abs, (whole) => (whole < 0n ? -whole : whole)),
  floor: plain("floor(2.7)", "The greatest whole number that is not above it.", Math.floor, (whole) => whole),
  ceil: plain("ceil(2.1)", "The smallest whole number that is not below it.", Math.ceil, (whole) => whole),
  round: {
    accepts: ["exact", "number"],
    least: 1,
    result: NUMBER,
    example: "round(2.345, 2)",
    about: "The nearest whole number, or the nearest with so many decimal places; halves go away from 0.",
    make:
      () =>
      ([number, places = 0]) =>
        numberValue(rounded(numeric(number), Number(places))),
  },
  mod: {
    accepts: ["exact", "exact"],
    result: NUMBER,
    example: "mod(7, 3)",
    about: "What is left of the first when it is divided by the second; null where that is 0.",
    make:
      () =>
      ([number, by]) =>
        numberValue(remainder(numeric(number), numeric(by))),
  },
};

function plain(
  example: string,
  about: string,
  ofDouble: (number: number) => number,
  ofWhole: (whole: bigint) => bigint,
): FunctionSpec {
  return {
    accepts: ["exact"],
    result: NUMBER,
    about,
    example,
    make:
      () =>
      ([value]) => {
        const number = numeric(value);
        return numberValue(typeof number === "bigint" ? ofWhole(number) : ofDouble(number));
      },
  };
}

function numeric(value: Value | undefined): Numeric {
  return typeof value === "string" ? (numberOf(value) ?? NaN) : Number(value);
}

/** Exact if both are integers. */
function remainder(number: Numeric, by: Numeric): Numeric | undefined {
  if (typeof number === "number" && typeof by === "number") return number % by;
  if (![number, by].every((one) => typeof one === "bigint" || Number.isSafeInteger(one)))
    return Number(number) % Number(by);
  return by === 0 ? undefined : BigInt(number) % BigInt(by);
}

function rounded(number: Numeric, places: number): Numeric {
  const digits = Math.min(PLACES_MAX, Math.max(-PLACES_MAX, Math.trunc(places)));
  if (digits >= 0 && (typeof number === "bigint" || Number.isInteger(number))) return number;
  return typeof number === "bigint" ? roundedWhole(number, -digits) : roundedDouble(number, digits);
}

function roundedWhole(whole: bigint, zeros: number): bigint {
  const unit = 10n ** BigInt(zeros);
  const rest = whole % unit;
  const isUp = 2n * (rest < 0n ? -rest : rest) >= unit;
  return whole - rest + (isUp ? (whole < 0n ? -unit : unit) : 0n);
}

/** Rounds the decimal text of the number: 1.005 becomes 1.01, although the double is smaller. */
function roundedDouble(number: number, digits: number): number {
  const [mantissa = "", exponent = "0"] = Math.abs(number).toExponential().split("e");
  const shifted = Math.round(Number(`${mantissa}e${Number(exponent) + digits}`));
  const [whole = "", power = "0"] = shifted.toExponential().split("e");
  return Math.sign(number) * Number(`${whole}e${Number(power) - digits}`);
}
