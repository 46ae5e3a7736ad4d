import type { Row } from "../../../common/value.ts";
import { columns, textColumns, type SystemClass } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { UserNode } from "./types.ts";
import { objectIdOf, USER_CLASS_PATH } from "./directory/visible.ts";

/** The part of the user service that the class of users needs. */
interface NodeOwner {
  nodes(principal: Principal): AsyncIterable<readonly UserNode[]>;
}

/** Users and organisations as objects, read from the user service; passwords are not part of them. */
export function userClass(owner: NodeOwner): SystemClass {
  return {
    path: USER_CLASS_PATH,
    columns: [
      ...columns("varchar", "username", "fullname", "parent", "otype"),
      ...columns("boolean", "isadmin", "isactive"),
      ...columns("int", "status"),
      ...columns("varchar", "firstname", "lastname", "gender", "address", "wechat", "imaccount", "remark", "auth"),
      ...textColumns("list", "email", "mobile", "telephone", "grpset"),
      { name: "config", type: "map", elements: ["varchar", "text"] },
    ],
    keys: ["fullname"],
    options: { keyMode: "manu" },
    guard: { reading: { permission: "users:read", isOpenToGroups: true } },
    async *provide(principal) {
      for await (const nodes of owner.nodes(principal)) yield nodes.map((node) => rowOf(node, principal.ospace));
    },
  };
}

function rowOf({ nodes: _nodes, ...node }: UserNode, ospace: string): Row {
  return { ...node, id: objectIdOf(node.id), class: ospace + USER_CLASS_PATH };
}
