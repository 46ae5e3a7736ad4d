/** The text shown in place of a secret of a host or a group. */
export const MASK = "******";

/** True if a received text means that the stored secret stays: asterisks of any number, or the empty text. */
export function isMask(text: string): boolean {
  return /^\**$/.test(text);
}
