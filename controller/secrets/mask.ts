/** What is shown in the place of a secret of a host or a group. */
export const MASK = "******";

/** Whether a text that was sent stands for the secret that is stored: a mask of any length, or nothing. */
export function isMask(text: string): boolean {
  return /^\**$/.test(text);
}
