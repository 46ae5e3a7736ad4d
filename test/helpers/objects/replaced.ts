import type { Objects, UnrestrictedObjects } from "../../../controller/areas/objects/index.ts";
import { visibleObjects } from "../../../controller/areas/query/index.ts";

/** The same objects, with some unrestricted calls replaced. Visible reads make the replaced calls. */
export function withReplaced<T extends Pick<Objects, "catalog" | "unrestricted">>(
  objects: T,
  replaced: Partial<UnrestrictedObjects>,
): T {
  const changed = withMembers(objects, { unrestricted: withMembers(objects.unrestricted, replaced) });
  return withMembers(changed, { visible: visibleObjects(changed) });
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
