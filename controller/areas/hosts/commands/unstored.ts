const PREFIX = "preview-";

/**
 * Id of a command whose output and result are passed to its caller only. They are never stored, so a message between
 * controllers that is lost is missing for good, and the caller waits until its deadline.
 */
export function unstoredId(id: string): string {
  return PREFIX + id;
}

/** Agents may send such ids, too: entries that no caller waits for are dropped. */
export function isUnstored(commandId: string): boolean {
  return commandId.startsWith(PREFIX);
}
