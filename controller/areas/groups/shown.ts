import type { Group } from "./types.ts";

export function groupReply(group: Group) {
  const { id, name, fullname, parent, hasChildren, revision } = group;
  const { member, fields, readexps, readonly, writable, tags } = group;
  return {
    ...{ id, name, fullname, parent },
    fields: { ...fields },
    member: [...member],
    readexps: [...readexps],
    readonly: [...readonly],
    writable: [...writable],
    tags: [...tags],
    isParent: hasChildren,
    isldap: false,
    revision,
  };
}
