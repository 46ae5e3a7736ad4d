const FRACTION_OF_ZEROS = /\.0+$/;

/**
 * The number that a text of a number means, in the form of `Value`: as it is written, without a plus sign or a fraction
 * of zeros, where it is beyond 2^53 and has no exponent. A type takes it exactly from there, or rounds it. A text with
 * an exponent means a double.
 */
export function numberOf(text: string): number | string {
  const number = Number(text);
  if (Math.abs(number) <= Number.MAX_SAFE_INTEGER || !/^[+-]?\d/.test(text) || /[eE]/.test(text)) return number;
  return text.replace(/^\+/, "").replace(FRACTION_OF_ZEROS, "");
}
