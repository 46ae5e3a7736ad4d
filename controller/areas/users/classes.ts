import type { Row } from "../../../common/value.ts";
import { columns, textColumns, type SystemClass } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { UserNode } from "./types.ts";
import { objectIdOf, USER_CLASS_PATH } from "./directory/visible.ts";

/** The part of the user service that the class of users needs. */
interface NodeOwner {
  nodes(principal: Principal): AsyncIterable<readonly UserNode[]>;
}

/** The class of users and organisations, read from the user service. Objects do not contain passwords. */
export function userClass(owner: NodeOwner): SystemClass {
  return {
    path: USER_CLASS_PATH,
    columns: [
      ...columns("varchar", {
        username: "Name of the user or organisation; / for the root",
        fullname: "Path from the root",
        parent: "Path of the organisation that it is in; empty for the root",
        otype: "usr for a user, org for an organisation",
      }),
      ...columns("boolean", {
        isadmin: "True if the user has the role of administrator",
        isactive: "False: the user, or who is below the organisation, cannot sign in",
      }),
      ...columns("int", { status: "Number to which clients give a meaning; without effect" }),
      ...columns("varchar", {
        firstname: "First name",
        lastname: "Last name",
        gender: "Gender, in the words of the client",
        address: "Address, in the words of the client",
        wechat: "The same as imaccount, under the name of earlier clients",
        imaccount: "Account for instant messages",
        remark: "Remark",
        auth: "Way to sign in that clients noted; without effect",
      }),
      ...textColumns("list", {
        email: "Addresses of electronic mail",
        mobile: "Numbers of mobile phones",
        telephone: "Telephone numbers",
        grpset: "Groups of the user; empty for an organisation",
      }),
      {
        name: "config",
        type: "map",
        elements: ["varchar", "text"],
        meaning: "Texts of clients by name; time_zone is the zone of the user's statements",
      },
    ],
    keys: ["fullname"],
    options: { keyMode: "manu" },
    guard: { reading: { permission: "users:read", isOpenToGroups: true } },
    async *provide(principal) {
      for await (const nodes of owner.nodes(principal)) yield nodes.map((node) => rowOf(node, principal.ospace));
    },
  };
}

function rowOf({ nodes: _nodes, revision: _revision, ...node }: UserNode, ospace: string): Row {
  return { ...node, id: objectIdOf(node.id), class: ospace + USER_CLASS_PATH };
}
