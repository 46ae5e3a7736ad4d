import type { MemberKeys } from "../cluster/index.ts";

/**
 * Returns a function from a key id: true if every controller can open what that key sealed. Controllers of earlier
 * versions do not announce their keys and are not checked.
 */
export function keysKnown(members: readonly { readonly keys?: MemberKeys }[]): (id: string) => boolean {
  return (id) => members.every(({ keys }) => keys === undefined || keys.opening.includes(id));
}
