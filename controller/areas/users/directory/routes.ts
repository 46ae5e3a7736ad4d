import { Type, type Static } from "typebox";
import {
  HomeInput,
  PasswordCheckInput,
  PasswordCheckReply,
  UserCreateInput,
  UserIdInput,
  UserIdReply,
  UserMoveInput,
  UserNodeReply,
  UserTreeInput,
  UserUpdateInput,
} from "../../../../common/api/users.ts";
import { HTTP_SMALL_BODY_MAX_BYTES } from "../../../../common/limits.ts";
import { AppError } from "../../../../common/errors.ts";
import { endpoint, type Endpoint } from "../../../http/interface/endpoint.ts";
import type { Principal } from "../../permissions/index.ts";
import type { UserDirectory } from "./directory.ts";
import { ROOT_PATH } from "./organizations.ts";
import { changeUser, createNode } from "./inputs.ts";
import type { PasswordPolicy } from "../credentials/password-policy.ts";

export interface DirectoryRouteServices {
  readonly directory: UserDirectory;
  readonly setTenantHome: (principal: Principal, home: string) => Promise<void>;
  readonly passwordFault: PasswordPolicy;
}

export function directoryRoutes(services: DirectoryRouteServices): readonly Endpoint[] {
  return [...treeRoutes(services), ...nodeRoutes(services), ...homeRoutes(services), ...passwordRoutes(services)];
}

function treeRoutes({ directory }: DirectoryRouteServices): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/admin/users",
      permission: "users:read",
      summary: "Users and organisations as a tree, from a path downwards",
      input: UserTreeInput,
      output: UserNodeReply,
      revised: true,
      handler: async ({ principal, input: { fullname = ROOT_PATH } }) => {
        const node = await directory.reader.subtree(principal, fullname);
        const message = node as unknown as Static<typeof UserNodeReply>;
        return { message, revision: node.revision };
      },
    }),
    endpoint({
      method: "GET",
      path: "/admin/users/:userid",
      permission: "users:write",
      summary: "Move a user or an organisation to another organisation; answers the id",
      input: UserMoveInput,
      output: UserIdReply,
      handler: async ({ principal, input: { userid, to } }) => ({
        message: await directory.move(principal, userid, to),
      }),
    }),
  ];
}

/** Routes that make, change and delete users and organisations. */
function nodeRoutes({ directory }: DirectoryRouteServices): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/admin/users/new",
      bodyMaxBytes: HTTP_SMALL_BODY_MAX_BYTES,
      permission: "users:write",
      summary: "Make a user or an organisation; answers its id",
      input: UserCreateInput,
      output: UserIdReply,
      body: "json",
      revised: true,
      handler: async ({ principal, input, expected }) => {
        const { id, warnings, revision } = await createNode(directory, principal, input, expected);
        return { message: id, warnings, revision };
      },
    }),
    endpoint({
      method: "POST",
      path: "/admin/users/:userid",
      bodyMaxBytes: HTTP_SMALL_BODY_MAX_BYTES,
      permission: "users:write",
      summary: "Change the members that are sent; warnings tell what goes on with rights that are lost",
      input: UserUpdateInput,
      output: Type.String(),
      body: "json",
      revised: true,
      handler: async ({ principal, input, expected }) => ({
        message: "",
        ...(await changeUser(directory, principal, input, expected)),
      }),
    }),
    endpoint({
      method: "DELETE",
      path: "/admin/users/:userid",
      permission: "users:write",
      summary:
        "Delete a user, or an organisation with nothing in it; warnings tell what stops with the user and what goes on",
      input: UserIdInput,
      output: Type.String(),
      revised: true,
      handler: async ({ principal, input: { userid }, expected }) => ({
        message: "",
        warnings: await directory.remove(principal, userid, expected),
        revision: undefined,
      }),
    }),
  ];
}

function homeRoutes({ directory, setTenantHome }: DirectoryRouteServices): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/admin/users/home",
      permission: "users:write",
      summary: "Set the start page of users without one of their own",
      input: HomeInput,
      output: Type.String(),
      body: "form",
      content: () => ["home"],
      handler: async ({ principal, input: { home = "" } }) => {
        await setTenantHome(principal, home);
        return { message: "" };
      },
    }),
    endpoint({
      method: "POST",
      path: "/user/settings/home",
      permission: "public",
      signedIn: true,
      summary: "Set one's own start page; for any signed-in user",
      input: HomeInput,
      output: Type.String(),
      body: "form",
      content: () => ["home"],
      handler: async ({ principal, input: { home = "" } }) => {
        requireSignedIn(principal);
        await directory.setOwnHome(principal, home);
        return { message: "" };
      },
    }),
  ];
}

function passwordRoutes({ passwordFault }: DirectoryRouteServices): readonly Endpoint[] {
  const define = (of: Pick<Endpoint, "path" | "permission" | "summary">): Endpoint =>
    endpoint({
      ...of,
      method: "POST",
      input: PasswordCheckInput,
      output: PasswordCheckReply,
      body: "raw",
      text: { summary: "The password", example: "correct horse battery staple", optional: true },
      handler: ({ principal, text = "" }) =>
        Promise.resolve({ message: passwordFault(text, [principal.user, principal.tenant]) }),
    });
  return [
    define({
      path: "/user/vali_password",
      permission: "public",
      summary: "Whether a password is acceptable: an empty message, or why it is not",
    }),
    define({
      path: "/admin/users",
      permission: "users:read",
      summary: "Whether a password is acceptable, as /user/vali_password",
    }),
  ];
}

export function requireSignedIn({ user }: Principal): void {
  if (user === "") throw new AppError("signin", "Nobody is signed in.");
}
