import { Type } from "typebox";
import type { Value } from "../../../common/value.ts";
import { hostFunction, type HostObject, refusedFunction } from "../../scripting/index.ts";
import { pathAllowed } from "../permissions/index.ts";
import type { GroupService } from "./service.ts";
import { groupReply } from "./shown.ts";

/** `perm`: reads groups, and tests the rights of the script's user. */
export function permHostObject(groups: GroupService): HostObject {
  return {
    name: "perm",
    summary: "Permission groups, and what the script's user may open",
    functions: [
      hostFunction({
        name: "ui",
        summary: "Whether a grant opens a page, a script or another file to the user",
        parameters: [{ name: "file", schema: Type.String({ description: "Its path, as /app/shop/index.html" }) }],
        returns: "boolean",
        example: 'OUTPUT = perm.ui("/app/shop/index.html")',
        call: ({ principal }, file) => Promise.resolve(pathAllowed(principal, file)),
      }),
      hostFunction({
        name: "getGroupList",
        summary: "Groups below a group",
        parameters: [
          { name: "parent", schema: Type.String({ description: "Its full name; those below none" }), optional: true },
        ],
        returns: "list of groups",
        example: 'OUTPUT = _.pluck(perm.getGroupList(), "fullname")',
        call: async ({ principal }, parent) => valueOf((await groups.list(principal, parent)).map(groupReply)),
      }),
      hostFunction({
        name: "getGroup",
        summary: "One group",
        parameters: [{ name: "id", schema: Type.String({ description: "Its id or full name" }) }],
        returns: "{id, name, fullname, parent, member, readonly, writable, readexps, fields, tags, …}",
        example: 'OUTPUT = perm.getGroup("/everyone").name',
        call: async ({ principal }, id) => valueOf(groupReply(await groups.find(principal, id))),
      }),
      refusedFunction("set", {
        object: "perm",
        why: "rights are those of groups, not of single objects",
        example: '"/matrix/box", ["box:1"], ["/everyone"]',
      }),
    ],
  };
}

function valueOf(answer: object): Value {
  return answer as Value;
}
