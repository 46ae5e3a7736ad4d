/** The text shown in place of a secret of a host or a group. */
export const MASK = "******";

/** True when a sent text means the stored secret: a mask of any length, or the empty text. */
export function isMask(text: string): boolean {
  return /^\**$/.test(text);
}
