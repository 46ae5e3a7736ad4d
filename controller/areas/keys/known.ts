import type { MemberKeys } from "../cluster/index.ts";

/** Whether every controller opens what is sealed with the key. Those of earlier versions do not say: they are not asked. */
export function keysKnown(members: readonly { readonly keys?: MemberKeys }[]): (id: string) => boolean {
  return (id) => members.every(({ keys }) => keys === undefined || keys.opening.includes(id));
}
