import { Type } from "typebox";
import { UserCreateInput, UserUpdateInput } from "../../../common/api/users.ts";
import type { Value } from "../../../common/value.ts";
import { hostFunction, type HostObject, membersOf } from "../../scripting/index.ts";
import { requirePermission } from "../permissions/index.ts";
import type { UserDirectory } from "./directory/directory.ts";
import { changeUser, createNode } from "./directory/inputs.ts";

const UID = { name: "uid", schema: Type.String({ description: "Id of the user" }) } as const;
const USER = (description: string) => ({ name: "user", schema: Type.Object({}, { description }) }) as const;
const MADE = (name: string) =>
  `var uid = webcontext.addUser({ parent: "/", username: "${name}", passwd: "a long way to the sea" }); `;

/** The functions of `webcontext` for users. */
export function usersHostObject(directory: UserDirectory): HostObject {
  return {
    name: "webcontext",
    summary: "The user with whose rights the script runs",
    functions: [
      hostFunction({
        name: "addUser",
        summary: "Makes a user, or by otype org an organisation",
        parameters: [USER("Its members, as POST /admin/users/new takes them")],
        returns: "the id",
        example: `${MADE("example1")}OUTPUT = uid`,
        changes: true,
        call: async ({ principal, log }, user) => {
          requirePermission(principal, "users:write");
          return (
            await createNode(directory, principal, membersOf(UserCreateInput, { otype: "usr", ...user }, { log }))
          ).id;
        },
      }),
      hostFunction({
        name: "editUser",
        summary: "Changes the members of a user that are given",
        parameters: [UID, USER("Its members, as POST /admin/users/<id> takes them")],
        returns: "nothing",
        example: `${MADE("example2")}webcontext.editUser(uid, { firstname: "Ex", email: ["ex@example.com"] })`,
        changes: true,
        call: async ({ principal, log }, userid, user) => {
          requirePermission(principal, "users:write");
          await changeUser(directory, principal, membersOf(UserUpdateInput, { ...user, userid }, { log }));
          return undefined;
        },
      }),
      hostFunction({
        name: "deleteUser",
        summary: "Deletes a user, or an organisation with nothing in it",
        parameters: [UID],
        returns: "list of what stops with the user and of what goes on",
        example: `${MADE("example3")}OUTPUT = webcontext.deleteUser(uid)`,
        changes: true,
        call: async ({ principal }, uid) => (await directory.remove(principal, uid)) as Value,
      }),
    ],
  };
}
