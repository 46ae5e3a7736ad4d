import { AppError } from "../../../common/errors.ts";

const VERSION = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})$/;

/** A depot's version: three numbers separated by dots. */
export function depotVersion(text: string): string {
  if (VERSION.test(text)) return text;
  throw new AppError("invalid", `The version ${JSON.stringify(text.slice(0, 50))} is not of the form 1.0.0.`);
}

/** Orders versions ascending by their three numbers. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [numbers(a), numbers(b)];
  for (let at = 0; at < 3; at++) {
    const difference = (left[at] ?? 0) - (right[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return a < b ? -1 : a > b ? 1 : 0;
}

function numbers(version: string): readonly number[] {
  return version.split(".").map(Number);
}
