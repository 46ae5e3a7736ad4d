import { Type } from "typebox";
import {
  NewSecondFactorReply,
  OwnPasswordInput,
  RecoveryCodesReply,
  SecondFactorCodeInput,
  SecondFactorReply,
  UserIdInput,
} from "../../../../common/api/users.ts";
import { endpoint, type Endpoint } from "../../../http/interface/endpoint.ts";
import { requireSignedIn } from "../directory/routes.ts";
import type { UserService } from "../service.ts";

const PATH = "/user/secondfactor";

/** The caller's own second factor, which needs no permission, and the removal of another user's. */
export function factorRoutes(users: UserService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: PATH,
      permission: "public",
      signedIn: true,
      summary: "Whether one's own sign-in takes a one-time password",
      input: Type.Object({}),
      output: SecondFactorReply,
      handler: async ({ principal }) => {
        requireSignedIn(principal);
        const left = await users.secondFactors.codesLeft(principal);
        return { message: { active: left !== undefined, recoverycodes: left ?? 0 } };
      },
    }),
    ...enrolRoutes(users),
    endpoint({
      method: "POST",
      path: `${PATH}/remove`,
      permission: "public",
      signedIn: true,
      summary: "Sign in by password alone again; takes the password",
      input: OwnPasswordInput,
      output: Type.String(),
      body: "json",
      handler: async ({ principal, input: { password } }) => {
        requireSignedIn(principal);
        await users.secondFactors.remove(principal, password);
        return { message: "" };
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/admin/users/:userid/secondfactor",
      permission: "users:write",
      summary: "Remove the second factor of a user who lost the device",
      input: UserIdInput,
      output: Type.String(),
      handler: async ({ principal, input: { userid } }) => {
        await users.secondFactors.removeOf(principal, userid);
        return { message: "" };
      },
    }),
  ];
}

function enrolRoutes(users: UserService): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: PATH,
      permission: "public",
      signedIn: true,
      summary: "Begin a second factor: the secret for an authenticator, told once, without effect until confirmed",
      input: OwnPasswordInput,
      output: NewSecondFactorReply,
      body: "json",
      handler: async ({ principal, input: { password } }) => {
        requireSignedIn(principal);
        return { message: await users.secondFactors.begin(principal, password) };
      },
    }),
    endpoint({
      method: "POST",
      path: `${PATH}/confirm`,
      permission: "public",
      signedIn: true,
      summary: "Turn one's second factor on with a first code; answers recovery codes, told once",
      input: SecondFactorCodeInput,
      output: RecoveryCodesReply,
      body: "json",
      handler: async ({ principal, input: { code } }) => {
        requireSignedIn(principal);
        return { message: [...(await users.secondFactors.confirm(principal, code))] };
      },
    }),
  ];
}
