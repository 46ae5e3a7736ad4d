const FRACTION_OF_ZEROS = /\.0+$/;

/**
 * Converts the text of a number to a `Value`. Beyond 2^53 and without an exponent it stays a text, so that no digit is
 * lost; only a plus sign and a fraction of zeros are removed. Otherwise it becomes a number.
 */
export function numberOf(text: string): number | string {
  const number = Number(text);
  if (Math.abs(number) <= Number.MAX_SAFE_INTEGER || !/^[+-]?\d/.test(text) || /[eE]/.test(text)) return number;
  return text.replace(/^\+/, "").replace(FRACTION_OF_ZEROS, "");
}
