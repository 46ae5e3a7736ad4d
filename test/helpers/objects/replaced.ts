import type { Unrestricted, UnrestrictedObjects } from "../../../controller/areas/objects/index.ts";

/** The same objects, with some unrestricted calls replaced. */
export function withReplaced<T extends Unrestricted<keyof UnrestrictedObjects>>(
  objects: T,
  replaced: Partial<UnrestrictedObjects>,
): T {
  return withMembers(objects, { unrestricted: withMembers(objects.unrestricted, replaced) });
}

/** Methods run on the original, because classes have private members. */
function withMembers<T extends object>(original: T, members: object): T {
  return new Proxy(original, {
    get(of, name) {
      if (name in members) return Reflect.get(members, name) as unknown;
      const member: unknown = Reflect.get(of, name, of);
      return typeof member === "function" ? (member.bind(of) as unknown) : member;
    },
  });
}
