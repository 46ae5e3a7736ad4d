import type { MemberKeys } from "../cluster/index.ts";

/**
 * Answers a test that is true if every controller can open what the key of an id sealed. Controllers of earlier
 * versions do not announce their keys and are not checked.
 */
export function keysKnown(members: readonly { readonly keys?: MemberKeys }[]): (id: string) => boolean {
  return (id) => members.every(({ keys }) => keys === undefined || keys.opening.includes(id));
}
