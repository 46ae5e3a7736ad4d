import { Type } from "typebox";
import { HTTP_SMALL_BODY_MAX_BYTES } from "../../../common/limits.ts";
import { SignInPolicyChange, SignInPolicyReply } from "../../../common/api/users.ts";
import { endpoint, type Endpoint } from "../../http/endpoint.ts";
import type { SignInPolicy } from "./duties.ts";
import type { UserService } from "./service.ts";

const PATH = "/admin/signinpolicy";

/** What a tenant asks of its users at sign-in, besides a password. */
export function policyRoutes(users: UserService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: PATH,
      permission: "users:read",
      summary: "Whom a second factor is required of, and whether first passwords are for once",
      input: Type.Object({}),
      output: SignInPolicyReply,
      handler: async ({ principal }) => ({ message: told(await users.signInPolicy(principal)) }),
    }),
    endpoint({
      method: "POST",
      path: PATH,
      bodyMaxBytes: HTTP_SMALL_BODY_MAX_BYTES,
      permission: "perms:write",
      summary:
        "Change the members that are sent; users who lack what it requires can do nothing else until they have it",
      input: SignInPolicyChange,
      output: SignInPolicyReply,
      body: "json",
      handler: async ({ principal, input: { secondfactor, firstpasswords } }) => ({
        message: told(
          await users.setSignInPolicy(principal, { secondFactor: secondfactor, firstPasswords: firstpasswords }),
        ),
      }),
    }),
  ];
}

function told({ secondFactor, firstPasswords }: SignInPolicy) {
  return { secondfactor: secondFactor, firstpasswords: firstPasswords };
}
